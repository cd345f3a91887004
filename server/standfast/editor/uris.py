"""URIs as keys: two spellings of one file are one document (d23). Pure. What is sent back is always the client's own spelling."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import quote, unquote, urlsplit

_DRIVE = re.compile(r"^/([A-Za-z]):")

SESSION_SCHEME = "standfast"


def path_of(uri: str) -> str | None:
    """The path of a `file:` URI, decoded and normalised; None for any other. A drive's letter is lower-case."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # a bracket that is not closed in the place of the host
        return None
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = posixpath.normpath(unquote(parts.path)) if parts.path else "/"
    if path.startswith("//"):
        path = path[1:]
    return _DRIVE.sub(lambda drive: f"/{drive[1].lower()}:", path)


def key_of(uri: str) -> str:
    """What a document is found by, whatever its spelling."""
    return path_of(uri) or uri


def uri_of(path: str) -> str:
    """A `file:` URI of an absolute path, spelt as pathlib does."""
    return "file://" + quote(path, safe="/~!$&'()*+,;=:@-._")


def within(path: str, folder: str) -> bool:
    """Whether a path is the folder or lies in it."""
    return path == folder or folder == "/" or path.startswith(folder + "/")


def session_document(session_id: str) -> str:
    """The transcript document of a session."""
    return f"{SESSION_SCHEME}:/session/{quote(session_id, safe='')}"


def session_of_document(uri: str) -> str | None:
    """The session of a transcript document, None for any other URI."""
    prefix = f"{SESSION_SCHEME}:/session/"
    return unquote(uri[len(prefix) :]) if uri.startswith(prefix) else None
