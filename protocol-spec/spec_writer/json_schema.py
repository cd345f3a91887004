"""schema.json and events.schema.json: JSON Schema 2020-12."""

from __future__ import annotations

import json

from spec_writer.shapes import Schema
from standfast.protocol.base import PROTOCOL_VERSION
from standfast.protocol.methods import METHODS

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def wire(definitions: Schema) -> str:
    """All payloads, and under `methods` which method takes and gives which."""
    methods = {
        method.name: {"params": _ref(method.params.__name__)}
        | ({"result": _ref(method.result.__name__)} if method.result is not None else {})
        for method in METHODS.values()
    }
    return _text(
        {
            "$schema": DRAFT,
            "title": f"Standfast protocol, version {PROTOCOL_VERSION}: payloads",
            "description": "Readers ignore unknown fields. Null and absent mean the same to a reader.",
            "x-methods": methods,
            "$defs": definitions,
        }
    )


def events(definitions: Schema) -> str:
    """The stored events, which are also those of the wire. A reader keeps a type that it does not know."""
    known = [name for name, definition in definitions.items() if "seq" in definition.get("properties", {})]
    return _text(
        {
            "$schema": DRAFT,
            "title": "Standfast events, as stored, exported and sent",
            "oneOf": [_ref(name) for name in known],
            "$defs": definitions,
        }
    )


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _text(value: Schema) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
