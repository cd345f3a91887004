"""Error codes: JSON-RPC's, LSP's and ours. Ours carry `data.reason`; one code for each family of reasons (design.md "Errors").

A client decides by `reason`; the code is for clients that know numbers only.
"""

from __future__ import annotations

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800

FAMILIES: dict[int, tuple[str, tuple[str, ...]]] = {
    -32050: (
        "The id names nothing.",
        ("SessionNotFound", "RunNotFound", "CallNotFound", "ConflictNotFound", "MessageNotFound"),
    ),
    -32051: (
        "The session's folder is gone, moved or another one.",
        ("WorkspaceNotFound", "WorkspaceMoved", "WorkspaceReplaced"),
    ),
    -32052: ("Not now; the same request may succeed later.", ("SessionBusy", "Overloaded")),
    -32053: (
        "The request does not fit the state of things.",
        (
            "ActionNotAvailable",
            "RunKeepsCrashing",
            "FileChanged",
            "PatchConflict",
            "WorkspaceUntrusted",
            "CursorInvalid",
            "KeyInvalid",
        ),
    ),
    -32054: (
        "The store refuses; nothing was half written.",
        (
            "StoreReadOnly",
            "StorageFull",
            "StoreDamaged",
            "StoreBusy",
            "StoreFailed",
            "StoreForeign",
            "StoreUnsafe",
            "StoreClosed",
            "EventNotStorable",
            "HistoryDamaged",
        ),
    ),
    -32055: (
        "The model cannot be asked, or its answer was unusable.",
        (
            "KeyMissing",
            "KeyRefused",
            "ModelUnreachable",
            "RateLimited",
            "StreamBroken",
            "StreamStalled",
            "RequestRefused",
            "ContextTooLong",
            "OutputTooLong",
            "InvalidReply",
            "Refusal",
            "UnknownStop",
            "BudgetReached",
        ),
    ),
    -32056: ("Client and daemon speak different versions.", ("VersionMismatch",)),
    -32057: (
        "A file, folder or setting of the machine stands in the way.",
        (
            "PlaceNotPrivate",
            "PlaceNotUsable",
            "ConfigInvalid",
            "CredentialsNotUsable",
            "ImportFailed",
            "ExportFailed",
            "NotSynced",
            "RollbackFailed",
            "TooManyOpenFiles",
            "OutOfMemory",
            "NotVerified",
        ),
    ),
    -32059: ("Any other refusal; see `data.reason` and the message.", ()),
}
"""Code → (what it means, its reasons)."""

OTHER = -32059
VERSION_MISMATCH = -32056

CODES: dict[str, int] = {reason: code for code, (_, reasons) in FAMILIES.items() for reason in reasons}


def code_of(reason: str) -> int:
    """The code of a reason; a reason that has no family yet gets -32059."""
    return CODES.get(reason, OTHER)
