"""Every attack and every case about permissions is held by a test that names it, or there is a reason why none can (issue G, shown 2)."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ATTACKS = "01 02 04 05 07 08 09 10 12 13 15 16 18 19 21 22 24 25 27 28 30 31 32 34 35 37 38 40 41 42 43 45 46 48 49 51 52 53 54 56 57"
"""The public collection of hostile inputs, by number."""
PERMISSIONS = "01 02 05 06 09 10 12 14 15 17"
"""The users' reports about permissions (topic e), by number."""
NOT_POSSIBLE = {
    "ATK-30": "no client registers a handler for URIs: there is nothing that a link could start (see the test below)",
    "ATK-41": "no tool fetches anything: the only requests go to the model's server, from the person's own configuration",
    "e15": "there is no TCP or HTTP mode, and none can be switched on; ATK-01 and ATK-02 hold that",
}
"""What cannot be tried, and why."""
_MARK = re.compile(r"\b(ATK-\d{2}|e\d{2})\b")


def named() -> set[str]:
    """All ids in marks of the tests, and in the names of the clients' own tests."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        if path != Path(__file__):
            marks = re.findall(r'mark\.scenario\(([^)]*)\)|scenario\("([^"]*)"\)', path.read_text())
            found.update(word for pair in marks for part in pair for word in _MARK.findall(part))
            found.update(_MARK.findall(" ".join(re.findall(r"marks=[^\n]*", path.read_text()))))
    for path in (ROOT / "editor-clients").glob("*/test/**/*.ts"):
        found.update(_MARK.findall(path.read_text()))
    return found


def test_no_attack_is_left_out_without_a_reason() -> None:
    wanted = {f"ATK-{number}" for number in ATTACKS.split()} | {f"e{number}" for number in PERMISSIONS.split()}
    assert wanted - named() - set(NOT_POSSIBLE) == set()


def test_a_reason_stands_only_where_it_is_needed() -> None:
    assert set(NOT_POSSIBLE) & named() == set()


def test_no_client_can_be_started_by_a_link() -> None:
    sources = [path for path in (ROOT / "editor-clients").glob("*/src/**/*.ts")] + [
        ROOT / "editor-clients/vscode/package.json"
    ]
    assert not [path for path in sources if re.search(r"registerUriHandler|\bonUri\b", path.read_text())]


def test_no_tool_reaches_the_network_by_itself() -> None:
    tools = list((ROOT / "server/standfast/tools").glob("*.py")) + list((ROOT / "server/standfast/files").glob("*.py"))
    assert tools
    reaching = re.compile(
        r"^\s*(?:import|from) (?:httpx|urllib\.request|http\.client|aiohttp|requests|socket)\b", re.MULTILINE
    )
    assert not [path.name for path in tools if reaching.search(path.read_text())]
