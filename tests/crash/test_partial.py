"""A patch over several files, killed between them: `partial` is seen where the files are, and both ways out are byte-exact (c05)."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash import oracle
from fake_api import FakeApi, Request, reply, tool
from fake_api.replies import Answer
from support import Editor, configure, open_editor, start_daemon
from support.tiers import tier

PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-1
+2
*** Add File: sub/b.txt
+2
*** Delete File: c.txt
*** Update File: d.txt
*** Move to: e.txt
@@
-1
+2
*** End Patch
"""
OLD = {"a.txt": "1\n", "c.txt": "1\n", "d.txt": "1\n"}
NEW = {"a.txt": "2\n", "sub/b.txt": "2\n", "e.txt": "2\n"}
POINTS = [
    "before_exchange@1",
    "before_exchange@2",
    "before_exchange@3",
    "mid_effect@1",
    "mid_effect@2",
    "after_exchange@2",
    "after_effect@1",
]
WHOLE = ("before_exchange@1", "after_effect@1")
"""Where nothing is half done, so that there is no way to choose."""
ALL_WAYS = [(point, way) for point in POINTS for way in ("complete", "undo") if way == "undo" or point not in WHOLE]
WAYS = tier(ALL_WAYS[::2], ALL_WAYS)


def patches(request: Request) -> Answer:
    if request.last_text == "fix it":
        return reply(tools=[tool("apply_patch", patch=PATCH)])
    return reply("Done.")


def files(workspace: Path) -> dict[str, str]:
    return {
        str(path.relative_to(workspace)): path.read_text()
        for path in workspace.rglob("*")
        if path.is_file() and ".git" not in path.parts and path.name != "a.py" and not path.name.endswith(".tmp~")
    }


async def _actions(editor: Editor, uri: str) -> dict[str, oracle.Json]:
    """The code actions on a file's diagnostics, by title's first word."""
    found = await editor.request(
        "textDocument/codeAction",
        {
            "textDocument": {"uri": uri},
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
            "context": {"diagnostics": []},
        },
    )
    return {action["title"].split()[0].lower(): action for action in found}


@pytest.mark.scenario("c05")
@pytest.mark.parametrize(("point", "way"), WAYS)
async def test_a_patch_killed_half_way_is_completed_or_undone_to_the_byte(
    home: Path, workspace: Path, point: str, way: str
) -> None:
    for name, text in OLD.items():
        (workspace / name).write_text(text)
    name, _, n = point.partition("@")
    with FakeApi(patches) as api:
        configure(home, model={"base_url": api.url})
        seen = await oracle.until_death(home, workspace, api, f"{name}=kill@{n}")
        assert seen.died, f"{point} was never reached"
        found = files(workspace)
        daemon = start_daemon(home, oracle.environment_of(api))
        try:
            async with open_editor(home, [workspace]) as editor:
                attached = await editor.attach(seen.session_id or "")
                [call] = attached["recovery"]["calls"]
                truth = "applied" if found == NEW else "not_applied" if found == OLD else "partial"
                assert call["verdict"] == truth, (found, call)
                if truth == "partial":
                    by_file = {target["uri"].rsplit("/", 1)[1]: target["verdict"] for target in call["targets"]}
                    assert set(by_file.values()) == {"applied", "not_applied"}, call
                    await _settle(editor, workspace, call, way)
                    assert files(workspace) == (NEW if way == "complete" else OLD)
                assert (workspace / "sub").exists() == ("sub/b.txt" in files(workspace))
                assert oracle.leftovers(workspace) == []
                await editor.run_end(await editor.start(seen.session_id or "", "go on"))
                told = api.requests[-1].whole_text
                assert truth in told
                if truth == "partial":
                    assert ("completed it" if way == "complete" else "undid it") in told
            assert not api.refused
        finally:
            daemon.end()


async def _settle(editor: Editor, workspace: Path, call: oracle.Json, way: str) -> None:
    """By the code action on the file, as a person would; then nothing is left to look at."""
    uri = (workspace / "a.txt").as_uri()
    shown = await editor.wait_for(lambda: editor.diagnostics(uri), "the diagnostic")
    codes = {diagnostic["code"] for diagnostic in shown}
    assert "partial-write" in codes, shown
    assert all(diagnostic["source"] == "standfast" for diagnostic in shown)
    assert any(diagnostic["data"].get("callId") == call["callId"] for diagnostic in shown)
    assert all("partial" in diagnostic["message"] for diagnostic in shown), (
        "also where the file's own verdict is another"
    )
    actions = await _actions(editor, uri)
    action = actions[way]
    command = action.get("command") or (await editor.request("codeAction/resolve", action))["command"]
    assert command["command"] == "standfast.recovery.resolve"
    assert command["arguments"][0] == {"callId": call["callId"], "action": way}
    await editor.request("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})
    await editor.wait_for(
        lambda: not any(diagnostic["code"] == "partial-write" for diagnostic in editor.diagnostics(uri)),
        "it to be settled",
    )
