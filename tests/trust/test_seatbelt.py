"""The profile for macOS: what its text says, by a reading of it like the kernel's (the last rule that fits). Not tried on a Mac."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from standfast.process.bubblewrap import Bounds
from standfast.process.exposure import Exposure, beneath
from standfast.process.seatbelt import PROGRAM, command_line, profile

EXPOSURE = Exposure(
    home="/Users/me",
    home_link="",
    system=("/usr", "/private/etc"),
    tools=("/Users/me/.pyenv",),
    caches=("/Users/me/go/pkg",),
    write=("/Users/me/Library/Caches/pip",),
    hidden=("/Users/me/.ssh", "/Users/me/work/shop/state"),
)
BOUNDS = Bounds(
    "/Users/me/work/shop",
    read_only=("/Users/me/work/shop/.git", "/Users/me/work/shop/inner/.git"),
    stand_ins=("/Users/me/work/shop/.vscode",),
)
TEMPORARY = "/Users/me/work/shop/state/commands/call_1/tmp"
Tree = list["str | Tree"]


def tree(text: str) -> Tree:
    """The rules, as nested lists."""
    words: Iterator[str] = iter(re.findall(r'[()]|#?"[^"]*"|[^\s()]+', text))

    def inner() -> Tree:
        found: Tree = []
        for word in words:
            if word == ")":
                return found
            found.append(inner() if word == "(" else word)
        return found

    assert text.count("(") == text.count(")")
    return inner()


def allowed(operation: str, path: str, bounds: Bounds = BOUNDS) -> bool:
    """What the text says of an operation on a path."""
    text, paths = profile(EXPOSURE, bounds, temporary=TEMPORARY)
    verdict = "deny"
    for rule in tree(text)[1:]:
        operations = [word for word in rule[1:] if isinstance(word, str)]
        filters = [word for word in rule[1:] if isinstance(word, list)]
        fits = any(operation == one or (one.endswith("*") and operation.startswith(one[:-1])) for one in operations)
        if fits and (not filters or any(_fits(one, path, paths) for one in filters)):
            verdict = rule[0]
    return verdict == "allow"


def _fits(one: Tree, path: str, paths: dict[str, str]) -> bool:
    kind, what = one[0], one[1]
    named = paths[what[1].strip('"')] if isinstance(what, list) else what.strip('"')
    return (kind == "literal" and path == named) or (kind == "subpath" and beneath(path, named))


@pytest.mark.parametrize(
    ("path", "read", "write"),
    [
        ("/Users/me/work/shop/a.py", True, True),
        ("/Users/me/work/shop/.git/hooks/pre-commit", True, False),
        ("/Users/me/work/shop/inner/.git/config", True, False),
        ("/Users/me/work/shop/.vscode/tasks.json", True, False),
        ("/Users/me/work/shop/state/sessions.db", False, False),
        (f"{TEMPORARY}/x", True, True),
        ("/Users/me/work/other/a.py", False, False),
        ("/Users/me/.ssh/id_ed25519", False, False),
        ("/Users/me/.zshrc", False, False),
        ("/Users/me/.pyenv/bin/python", True, False),
        ("/Users/me/Library/Caches/pip/x", True, True),
        ("/usr/lib/libSystem.dylib", True, False),
        ("/private/tmp/x", False, False),
    ],
)
def test_files_are_open_as_in_the_sandboxes_that_are_tested(path: str, read: bool, write: bool) -> None:
    assert (allowed("file-read-data", path), allowed("file-write-data", path)) == (read, write)


def test_a_directory_above_a_protected_one_cannot_be_moved_away() -> None:
    assert not allowed("file-write-unlink", "/Users/me/work/shop/inner")
    assert allowed("file-write-unlink", "/Users/me/work/shop/other")


def test_without_the_network_no_socket_is_open_and_with_it_no_other_programs() -> None:
    assert "network" not in profile(EXPOSURE, BOUNDS, temporary=TEMPORARY)[0]
    text, paths = profile(EXPOSURE, BOUNDS._replace(network=True), temporary=TEMPORARY)
    assert "(allow network-outbound (remote ip))" in text
    assert [path for path in paths.values() if "run" in path] == ["/private/var/run/mDNSResponder"]
    assert allowed("file-read-data", "/Users/me/go/pkg/x")
    assert not allowed("file-read-data", "/Users/me/go/pkg/x", BOUNDS._replace(network=True))


def test_a_path_can_end_no_string_and_add_no_rule() -> None:
    evil = '/Users/me/work/x")) (allow default) (deny nothing (literal "'
    text, paths = profile(EXPOSURE, Bounds(evil), temporary=TEMPORARY)
    assert "allow default" not in text
    assert evil in paths.values()
    words = command_line(EXPOSURE, Bounds(evil), ["/bin/sh", "-c", "true"], temporary=TEMPORARY)
    assert words[:2] == [PROGRAM, "-p"]
    assert words[-4:] == ["--", "/bin/sh", "-c", "true"]
    assert all(re.match(r"P\d+=", word) for word in words if word.endswith(evil)), "each one word, after a -D"
