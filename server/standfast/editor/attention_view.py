"""What a person must look at, as LSP diagnostics (design.md "Editor surface", "Diagnostics"). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lsprotocol import types

from standfast.projections.attention import AttentionItem

SOURCE = "standfast"

_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
}

LineEnd = Callable[[int], int | None]
"""Line from 0 → its length in the client's units, None where the text is not known."""


def unknown_text(line: int) -> int | None:
    """The document is not open: nothing is known of its lines."""
    return None


def line_range(line: int, line_end: LineEnd = unknown_text) -> types.Range:
    """A line (from 1), whole. Where its length is not known, up to the next line's start, which is the same in any encoding."""
    line = max(0, line - 1)
    end = line_end(line)
    after = types.Position(line + 1, 0) if end is None else types.Position(line, end)
    return types.Range(types.Position(line, 0), after)


def subject(item: AttentionItem) -> dict[str, Any]:
    """`data` of a diagnostic and of its actions: whose matter it is, by id only (ATK-46)."""
    ids = {"sessionId": item.session_id}
    if item.call_id is not None:
        ids["callId"] = item.call_id
    elif item.conflict_id is not None:
        ids["conflictId"] = item.conflict_id
    elif item.run_id is not None:
        ids["runId"] = item.run_id
    return ids


def diagnostic(item: AttentionItem, line_end: LineEnd = unknown_text, *, uri: str | None = None) -> types.Diagnostic:
    """One item as a diagnostic. `uri`: the document as the client spells it, where it can show other places beside the first."""
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(uri, line_range(line, line_end)), f"The refused change could belong here, at line {line}."
        )
        for line in item.candidates
        if uri is not None
    ]
    return types.Diagnostic(
        range=line_range(item.line, line_end),
        message=visible(item.message),
        severity=_SEVERITY[item.severity],
        code=item.code,
        source=SOURCE,
        related_information=related or None,
        data=subject(item),
    )


def diagnostics(
    items: Iterable[AttentionItem], line_end: LineEnd = unknown_text, *, uri: str | None = None
) -> list[types.Diagnostic]:
    """All items of one document, in the order of its lines."""
    return [diagnostic(item, line_end, uri=uri) for item in sorted(items, key=lambda item: (item.line, item.code))]


def visible(text: str) -> str:
    """Control, bidi and tag characters made visible: what a model or a tool wrote must not steer a terminal (ATK-43, ATK-45)."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
