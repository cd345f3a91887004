"""An exception as the error of an answer: code, sentence, data (design.md "Errors"). Pure."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from standfast.errors import StandfastError
from standfast.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, code_of
from standfast.shortage import want_of


class WireFault(Exception):
    """A request that is refused by the protocol itself."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def error(self) -> dict[str, Any]:
        """The `error` member of the answer."""
        found: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            found["data"] = self.data
        return found


def invalid_params(error: ValidationError) -> WireFault:
    """-32602 that names each field: `data.errors: [{loc, msg}]`. Values are left out: they may be secret."""
    errors = [
        {"loc": list(found["loc"]), "msg": found["msg"].removeprefix("Value error, ")}
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    where = ", ".join(".".join(map(str, e["loc"])) or "params" for e in errors[:3])
    return WireFault(INVALID_PARAMS, f"The params do not fit: {where}.", {"errors": errors})


def fault_of(error: Exception) -> WireFault:
    """Any exception as a fault. What is not ours is a defect: -32603, without its text (it may hold anything)."""
    if isinstance(error, WireFault):
        return error
    if isinstance(error, ValidationError):
        return invalid_params(error)
    told = error if isinstance(error, StandfastError) else want_of(error)
    if told is not None:
        return WireFault(code_of(told.reason), told.message, {"reason": told.reason, **told.data})
    return WireFault(
        INTERNAL_ERROR,
        "The daemon made a mistake; nothing was half written. The daemon's log has the details.",
        {"reason": "InternalError"},
    )
