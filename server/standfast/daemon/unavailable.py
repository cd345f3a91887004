"""In place of a store that cannot be opened: the daemon lives and says why, so that editors do not restart it for ever (d12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from standfast.errors import StoreError
from standfast.store.base import Store


class _Unavailable:
    """Every operation of a store raises the error that kept it from opening. Nothing is kept elsewhere meanwhile."""

    def __init__(self, error: StoreError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def refuse(*_: Any, **__: Any) -> Any:
            raise StoreError(self._error.reason, self._error.message, **self._error.data)

        return refuse


def unavailable(error: StoreError) -> Store:
    return cast("Store", _Unavailable(error))
