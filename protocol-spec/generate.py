"""The only writer of the generated protocol files: `python protocol-spec/generate.py [--check]`.

`--check` writes nothing and exits with 1 if a file is stale, naming the command to run. What a released version promised stands in
`versions/<n>/`: written once, never again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from spec_writer import json_schema, lua, meta_model, reference, typescript
from spec_writer.shapes import event_schema, wire_schema

from standfast.protocol.base import PROTOCOL_VERSION

SPEC = Path(__file__).resolve().parent
ROOT = SPEC.parent
COMMAND = "python protocol-spec/generate.py"
FROZEN = ("schema.json", "events.schema.json")


def outputs() -> dict[Path, str]:
    """Every generated file and what has to stand in it."""
    wire, events = wire_schema(), event_schema()
    return {
        SPEC / "reference.md": reference.write(wire, events),
        SPEC / "schema.json": json_schema.wire(wire),
        SPEC / "events.schema.json": json_schema.events(events),
        SPEC / "metaModel.json": meta_model.write(wire, events),
        ROOT / "editor-clients/vscode/src/generated/protocol.ts": typescript.write(wire, events),
        ROOT / "editor-clients/neovim/lua/standfast/generated/protocol.lua": lua.write(wire, events),
    }


def stale(wanted: dict[Path, str]) -> list[Path]:
    """The files whose text is another, or that are not there."""
    return [path for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text]


def freeze(wanted: dict[Path, str]) -> None:
    """Keep what this version promises, if it is not kept yet."""
    place = SPEC / "versions" / str(PROTOCOL_VERSION)
    for name in FROZEN:
        if not (place / name).exists():
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(wanted[SPEC / name], "utf-8")


def main(arguments: list[str]) -> int:
    """0: all is fresh (or was written); 1: stale; 2: not understood."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write(f"{COMMAND} [--check]\n")
        return 2
    wanted = outputs()
    behind = stale(wanted)
    if arguments == ["--check"]:
        for path in behind:
            sys.stderr.write(f"{path.relative_to(ROOT)} is stale. Run: {COMMAND}\n")
        return 1 if behind else 0
    for path in behind:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], "utf-8")
        sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")
    freeze(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
