"""The protocol as plain structures, read from pydantic's JSON Schema: what every output format is written from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from spec_writer.field_docs import field_docs
from standfast.events import types as facts
from standfast.protocol.base import Wire
from standfast.protocol.methods import METHODS
from standfast.protocol.notices import ClientCapability, ServerCapability

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Type:
    """A type of the wire. `kind`: string, integer, number, boolean, null, any, literal, ref, array, map, union."""

    kind: str
    name: str = ""
    """Of a ref; the value of a literal."""
    inner: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    type: Type
    optional: bool
    doc: str


@dataclass(frozen=True, slots=True)
class Structure:
    name: str
    doc: str
    properties: tuple[Property, ...]
    open: bool = False
    """Other keys may be there, and mean something."""


def wire_schema() -> Schema:
    """JSON Schema definitions of all payloads: params as a reader takes them, the rest as a writer sends them."""
    wanted: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = []
    for method in METHODS.values():
        theirs = method.direction == "clientToServer"
        wanted.append((method.params, "validation" if theirs else "serialization"))
        if method.result is not None:
            wanted.append((method.result, "serialization" if theirs else "validation"))
    wanted += [(ClientCapability, "validation"), (ServerCapability, "serialization")]
    _, schema = models_json_schema(list(dict.fromkeys(wanted)), ref_template="#/$defs/{model}")
    says = field_docs(Wire)
    return {
        name: _tidy(_described(definition, says.get(name, {})), _wire_optional)
        for name, definition in sorted(schema["$defs"].items())
    }


def event_schema() -> Schema:
    """JSON Schema definitions of the stored events; `…Event` for each type, with what the log adds to it."""
    union = get_args(get_args(facts.KnownFact)[0])
    _, schema = models_json_schema([(fact, "serialization") for fact in union], ref_template="#/$defs/{model}")
    names = {name: _event_name(name, definition) for name, definition in schema["$defs"].items()}
    found: Schema = {}
    for name, definition in schema["$defs"].items():
        tidy = _tidy(_renamed(definition, names), _event_optional)
        found[names[name]] = _with_envelope(tidy) if _is_event(definition) else tidy
    return dict(sorted(found.items()))


ENVELOPE: Schema = {
    "seq": {"type": "integer", "minimum": 1, "description": "Place in the session, gapless from 1."},
    "atMs": {"type": "integer", "description": "When it was stored, ms since 1970, UTC."},
    "sessionId": {"type": "string"},
    "runId": {"type": "string", "description": "Absent where the event belongs to no run."},
    "hash": {"type": "string", "description": "sha256 over the previous hash and the stored bytes of this event."},
}


def structures(definitions: Schema) -> list[Structure]:
    """Definitions as structures, in order of name."""
    return [_structure(name, definition) for name, definition in definitions.items()]


def _structure(name: str, definition: Schema) -> Structure:
    required = set(definition.get("required", []))
    properties = tuple(
        Property(key, _type(value), key not in required, value.get("description", ""))
        for key, value in definition.get("properties", {}).items()
    )
    return Structure(name, definition.get("description", ""), properties, bool(definition.get("additionalProperties")))


_PLAIN = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "null": "null"}


def _type(schema: Schema) -> Type:
    if "$ref" in schema:
        return Type("ref", schema["$ref"].rsplit("/", 1)[-1])
    if "const" in schema:
        return Type("literal", str(schema["const"])) if isinstance(schema["const"], str) else Type("boolean")
    if "enum" in schema:
        return Type("union", inner=tuple(Type("literal", value) for value in schema["enum"]))
    if "anyOf" in schema:
        return Type("union", inner=tuple(_type(one) for one in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        return Type("array", inner=(_type(schema.get("items", {})),))
    if kind == "object":
        values = schema.get("additionalProperties", True)
        return Type("map", inner=(Type("any") if values is True else _type(values),))
    return Type(_PLAIN[kind]) if kind in _PLAIN else Type("any")


def _wire_optional(key: str, value: Schema, definition: Schema) -> bool:
    """Left out where it has nothing to say: has a default."""
    return key not in definition.get("required", [])


def _event_optional(key: str, value: Schema, definition: Schema) -> bool:
    """The log leaves out what is None by default, and writes everything else."""
    return "default" in value and value["default"] is None


def _tidy(definition: Schema, optional: Any) -> Schema:
    """Without pydantic's titles and null defaults; an optional property is absent, never null, when written."""
    found = {key: value for key, value in definition.items() if key not in ("title", "required")}
    properties: Schema = {}
    required: list[str] = []
    for key, value in definition.get("properties", {}).items():
        is_optional = optional(key, value, definition)
        if not is_optional:
            required.append(key)
        properties[key] = _tidy_property(value, without_null=is_optional)
    if properties:
        found["properties"] = properties
    if required:
        found["required"] = required
    return found


def _tidy_property(value: Schema, *, without_null: bool) -> Schema:
    found = {key: part for key, part in value.items() if key not in ("title", "default")}
    if without_null and "anyOf" in found:
        rest = [one for one in found.pop("anyOf") if one != {"type": "null"}]
        found |= rest[0] if len(rest) == 1 else {"anyOf": rest}
    return found


def _described(definition: Schema, says: dict[str, str]) -> Schema:
    """With what the source says beneath each field, as its description."""
    properties = {
        key: value | {"description": says[key]} if key in says else value
        for key, value in definition.get("properties", {}).items()
    }
    return definition | {"properties": properties} if properties else definition


def _is_event(definition: Schema) -> bool:
    return "const" in definition.get("properties", {}).get("type", {})


def _event_name(name: str, definition: Schema) -> str:
    bare = name.removesuffix("Happened")
    return f"{bare}Event" if _is_event(definition) else f"Event{bare}"


def _with_envelope(definition: Schema) -> Schema:
    properties = ENVELOPE | definition["properties"]
    required = ["seq", "atMs", "sessionId", *definition.get("required", []), "hash"]
    return definition | {"properties": properties, "required": list(dict.fromkeys(required))}


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """References under their new names."""
    if isinstance(value, dict):
        return {
            key: f"#/$defs/{names[part.rsplit('/', 1)[-1]]}" if key == "$ref" else _renamed(part, names)
            for key, part in value.items()
        }
    return [_renamed(part, names) for part in value] if isinstance(value, list) else value
