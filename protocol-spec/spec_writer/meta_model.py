"""metaModel.json: our methods in the format of LSP's own meta model, so that its generators make types for us.

To be read together with LSP's model, which defines `LSPAny` and `LSPObject`. Times and sizes are `decimal`: they pass 2^31.
"""

from __future__ import annotations

import json
from typing import Any

from spec_writer.shapes import Schema, Structure, Type, structures
from standfast.protocol.base import PROTOCOL_VERSION
from standfast.protocol.methods import METHODS, Method

_BASE = {"string": "string", "integer": "decimal", "number": "decimal", "boolean": "boolean", "null": "null"}


def write(definitions: Schema, events: Schema) -> str:
    methods = METHODS.values()
    model = {
        "metaData": {"version": "3.17.0"},
        "requests": [_request(method) for method in methods if method.kind == "request"],
        "notifications": [_notification(method) for method in methods if method.kind == "notification"],
        "structures": [_structure(one) for one in [*structures(definitions), *structures(events)]],
        "enumerations": [],
        "typeAliases": [],
    }
    return json.dumps(model, indent=2, ensure_ascii=False) + "\n"


def _common(method: Method) -> dict[str, Any]:
    found: dict[str, Any] = {
        "method": method.name,
        "typeName": type_name(method),
        "messageDirection": method.direction,
        "params": _ref(method.params.__name__),
        "documentation": method.doc,
        "since": f"Standfast protocol {method.since} (current: {PROTOCOL_VERSION})",
    }
    return found | ({"proposed": True} if method.stability == "proposed" else {})


def _request(method: Method) -> dict[str, Any]:
    assert method.result is not None
    return _common(method) | {"result": _ref(method.result.__name__)}


def _notification(method: Method) -> dict[str, Any]:
    return _common(method)


def type_name(method: Method) -> str:
    """`standfast/session/attach` → `SessionAttachRequest`."""
    words = method.name.removeprefix("standfast/").split("/")
    return "".join(word[:1].upper() + word[1:] for word in words) + method.kind.capitalize()


def _structure(structure: Structure) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": structure.name,
        "properties": [
            {"name": p.name, "type": _type(p.type)}
            | ({"optional": True} if p.optional else {})
            | ({"documentation": p.doc} if p.doc else {})
            for p in structure.properties
        ],
    }
    return found | ({"documentation": structure.doc} if structure.doc else {})


def _type(type_: Type) -> dict[str, Any]:
    if type_.kind in _BASE:
        return {"kind": "base", "name": _BASE[type_.kind]}
    if type_.kind == "literal":
        return {"kind": "stringLiteral", "value": type_.name}
    if type_.kind == "ref":
        return _ref(type_.name)
    if type_.kind == "array":
        return {"kind": "array", "element": _type(type_.inner[0])}
    if type_.kind == "map":
        return {"kind": "map", "key": {"kind": "base", "name": "string"}, "value": _type(type_.inner[0])}
    if type_.kind == "union":
        return {"kind": "or", "items": [_type(one) for one in type_.inner]}
    return _ref("LSPAny")


def _ref(name: str) -> dict[str, Any]:
    return {"kind": "reference", "name": name}
