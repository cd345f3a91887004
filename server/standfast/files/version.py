"""The version of a content is its hash, so that a touched file is the same file (R11.2, scenarios c01, c02). Pure."""

from __future__ import annotations

from hashlib import sha256


def version_of(data: bytes) -> str:
    """sha256 in hex. The id of the blob with the same bytes, too."""
    return sha256(data).hexdigest()


def text_version(text: str) -> str:
    """The version of an editor's text: that of the bytes it would be saved as."""
    return version_of(text.encode("utf-8", "surrogatepass"))
