"""The method table, what is generated from it, and what a released version promised."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from standfast.editor.handlers import HANDLERS
from standfast.protocol.errors import CODES, FAMILIES, code_of
from standfast.protocol.methods import COMMANDS, METHODS, REQUESTS

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "protocol-spec"
GENERATE = [sys.executable, str(SPEC / "generate.py")]

DESIGN = (
    "session/list session/create session/attach session/detach session/events session/update "
    "session/rebind session/fork session/delete session/compact session/export session/import run/start "
    "run/steer run/cancel run/resume run/undo run/list queue/list queue/edit queue/move queue/remove "
    "queue/resume recovery/get recovery/resolve conflict/get diff/get conflict/resolve transcript/get "
    "goal/set goal/update goal/get goal/clear message/history workspace/files workspace/trust "
    "credentials/set permission/request event delta session/changed attention/changed permission/resolved "
    "daemon/changed "
)
"""The names of design.md, without their common beginning."""


def load(name: str) -> Any:
    return json.loads((SPEC / name).read_text())


def test_generated_files_are_fresh() -> None:
    checked = subprocess.run([*GENERATE, "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_a_stale_file_is_named_with_the_command_to_run(tmp_path: Path) -> None:
    sys.path.insert(0, str(SPEC))
    try:
        import generate
    finally:
        sys.path.remove(str(SPEC))
    path = tmp_path / "reference.md"
    assert generate.stale({path: "text"}) == [path]
    path.write_text("text")
    assert generate.stale({path: "text"}) == []
    path.write_text("another")
    assert generate.stale({path: "text"}) == [path]


def test_every_method_of_the_design_is_there() -> None:
    assert {f"standfast/{name}" for name in DESIGN.split()} <= set(METHODS)


def test_every_request_has_a_handler_and_every_handler_a_request() -> None:
    assert set(HANDLERS) == set(REQUESTS)
    assert set(COMMANDS.values()) <= set(REQUESTS)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method_is_documented(method: Any) -> None:
    reference = (SPEC / "reference.md").read_text()
    assert method.doc.endswith((".", "?")) and len(method.doc) > 10
    section = reference.split(f"\n### {method.name}\n")[1].split("\n### ")[0]
    assert method.doc in section
    for shape in (method.params, method.result):
        assert shape is None or ((shape.__doc__ or "").strip() and f"\n### {shape.__name__}\n" in reference)
    assert all(reason in CODES for reason in method.errors)


def test_reasons_have_one_code_each_and_the_fixed_ones_are_as_fixed() -> None:
    listed = [reason for _, reasons in FAMILIES.values() for reason in reasons]
    assert len(listed) == len(set(listed))
    assert all(-32099 <= code <= -32050 for code in FAMILIES)
    for reason in ("SessionNotFound", "RunNotFound", "CallNotFound", "ConflictNotFound"):
        assert code_of(reason) == -32050
    assert code_of("SomethingNew") == -32059


RAISES = {"StandfastError", "NotFound", "WorkspaceError", "Busy", "NotAvailable", "StoreError", "ModelError"}
NOT_ON_THE_WIRE = {
    "BackupDamaged",
    "ProviderUnknown",
    "DaemonForeign",
    "DaemonNotStarted",
    "DaemonRunning",
    "DaemonSilent",
}
"""Said by commands that look after the store or the daemon itself, beside `cli/`."""


def test_every_reason_that_the_daemon_gives_stands_in_the_reference() -> None:
    server = ROOT / "server" / "standfast"
    given = {
        argument.value: path.name
        for path in server.rglob("*.py")
        if path.relative_to(server).parts[0] != "cli"
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in RAISES
        for argument in call.args[:1]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert len(given) > 30
    assert {reason: where for reason, where in given.items() if reason not in {*CODES, *NOT_ON_THE_WIRE}} == {}


def test_every_reference_of_the_schemas_leads_somewhere() -> None:
    for name in ("schema.json", "events.schema.json"):
        schema = load(name)
        text = json.dumps(schema)
        for part in text.split('"$ref": "#/$defs/')[1:]:
            assert part.split('"')[0] in schema["$defs"]


def test_the_meta_model_names_only_what_is_defined() -> None:
    model = load("metaModel.json")
    defined = {structure["name"] for structure in model["structures"]} | {"LSPAny"}

    def named(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["name"]] if value.get("kind") == "reference" else []
            return own + [name for part in value.values() for name in named(part)]
        return [name for part in value for name in named(part)] if isinstance(value, list) else []

    assert set(named(model)) <= defined
    methods = [entry["method"] for entry in model["requests"] + model["notifications"]]
    assert sorted(methods) == sorted(METHODS)


@pytest.mark.parametrize("name", ["schema.json", "events.schema.json"])
def test_what_a_version_promised_still_holds(name: str) -> None:
    """Additions only: every method, type and field of the frozen copy is there, of the same type, and as sure to be there."""
    for frozen in sorted((SPEC / "versions").iterdir()):
        old, new = json.loads((frozen / name).read_text()), load(name)
        for method, shapes in old.get("x-methods", {}).items():
            assert new["x-methods"][method] == shapes
        for type_name, definition in old["$defs"].items():
            now = new["$defs"][type_name]
            was, is_now = set(definition.get("required", [])), set(now.get("required", []))
            assert was <= is_now, type_name
            assert not type_name.endswith("Params") or is_now <= was, "an older client does not send it"
            for key, value in definition.get("properties", {}).items():
                kept = {k: v for k, v in now["properties"][key].items() if k not in ("description", "enum")}
                assert kept == {k: v for k, v in value.items() if k not in ("description", "enum")}, (type_name, key)
                assert set(value.get("enum", [])) <= set(now["properties"][key].get("enum", []))
