"""metaModel.json is in LSP's own format: checked with the schema that LSP's makers publish (issue D, "What must be shown" 5)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "protocol-spec/metaModel.json"
NEEDED = ("vscode-languageserver-protocol@3", "ajv@8")
CHECK = """
const [schema, model] = process.argv.slice(1, 3).map((path) => JSON.parse(require('fs').readFileSync(path, 'utf8')));
const Ajv = require('ajv').default;
// The schema only defines: as it stands it takes anything.
const check = new Ajv({ allErrors: true, strict: false }).compile({ ...schema, $ref: "#/definitions/MetaModel" });
check(model);
console.log(JSON.stringify((check.errors ?? []).map((e) => `${e.instancePath}: ${e.message}`)));
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the published schema and a checker in it."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("NOT RUN: node or npm is missing, so that LSP's meta model schema cannot be had")
    folder = tmp_path_factory.mktemp("schema")
    words = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", *NEEDED]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode != 0:
        pytest.skip(
            f"NOT RUN: npm cannot be reached, so that LSP's meta model schema cannot be had: {done.stderr[-200:]}"
        )
    return folder


def complaints(modules: Path, model: Path) -> list[str]:
    schema = modules / "node_modules/vscode-languageserver-protocol/metaModel.schema.json"
    words = ["node", "-e", CHECK, str(schema), str(model)]
    done = subprocess.run(words, cwd=modules, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_the_meta_model_is_valid_by_the_schema_of_lsp(modules: Path) -> None:
    assert complaints(modules, MODEL) == []


def test_a_meta_model_that_is_not_is_found_out(modules: Path, tmp_path: Path) -> None:
    model = json.loads(MODEL.read_text())
    model["requests"][0]["messageDirection"] = "sideways"
    bent = tmp_path / "metaModel.json"
    bent.write_text(json.dumps(model))
    assert any("/requests/0/messageDirection" in complaint for complaint in complaints(modules, bent))
