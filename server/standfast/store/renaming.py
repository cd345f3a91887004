"""New ids for a copy of a history: the same old id always gets the same new one."""

from __future__ import annotations

from typing import Any, ClassVar

from standfast.clock import Ids


class Renamed:
    """One copy's ids. The model's own ids (`providerCallId`) and the client's (`clientMessageId`) stay."""

    _KINDS: ClassVar = {
        "callId": "call",
        "runId": "run",
        "messageId": "msg",
        "conflictId": "conf",
        "resumesRunId": "run",
    }

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._new: dict[str, str] = {}

    def rename(self, value: dict[str, Any]) -> dict[str, Any]:
        """An event's fields with new ids."""
        return {key: self.of(key, found) for key, found in value.items()}

    def of(self, key: str, value: Any) -> Any:
        """One field's value; only ids of ours change."""
        kind = self._KINDS.get(key)
        if kind is None or not isinstance(value, str):
            return value
        if value not in self._new:
            self._new[value] = self._ids.new(kind)
        return self._new[value]
