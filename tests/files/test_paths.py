"""Paths: nothing outside the workspace is read or written, whatever is named or swapped (ATK-09 … ATK-16, e06, e09)."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from files_desk import Desk, snapshot

from standfast.files import kernel
from standfast.files.paths import Root
from standfast.files.protected import is_git, is_secret, starts_programs
from standfast.files.refusal import Refused
from standfast.files.transaction import Step, execute

SWAPS = 10_000
WRITES = 100
"""So many writes have to succeed, and as many to be refused, while the directory is swapped."""


@pytest.mark.scenario("ATK-09")
@pytest.mark.requirement("R2.1")
@pytest.mark.parametrize(
    "path",
    [
        "../outside/x", "a/../../outside/x", "/etc/x", "~root/x", "~/x", "//host/share/x", "\\\\host\\x", "C:\\x", "C:/x",
        "file:///etc/x", "file://host/x", "http://x/y", "a\0b", "a\nb", "a\x7fb", "a\ud800b", "..", "d/../..",
    ],
)  # fmt: skip
@pytest.mark.parametrize("tool", ["write_file", "read_file"])
async def test_a_path_that_is_not_beneath_the_workspace_is_refused(path: str, tool: str, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    before = snapshot(tmp_path)
    args = {"path": path, "content": "x"} if tool == "write_file" else {"path": path}
    outcome = await Desk(folder).call(tool, **args)
    assert (outcome.status, outcome.reason) in {("error", "outside_workspace"), ("error", "malformed")}
    assert snapshot(tmp_path) == before


@pytest.mark.scenario("ATK-09")
async def test_percent_signs_in_a_path_are_no_encoding(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    assert (await Desk(folder).call("write_file", path="%2e%2e%2fx", content="x")).status == "ok"
    assert snapshot(tmp_path) == {"w/%2e%2e%2fx": (b"x", 0o644)}


@pytest.mark.scenario("e06")
@pytest.mark.scenario("ATK-10")
@pytest.mark.parametrize("link", ["../outside", "absolute", "chain", "loop", "/proc/self/root/etc", "dangling"])
async def test_a_link_that_leads_out_is_neither_read_nor_written(link: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "w", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "f").write_text("SECRET")
    targets = {"absolute": str(outside), "chain": "second", "loop": "link", "dangling": "../nowhere"}
    (folder / "link").symlink_to(targets.get(link, link))
    (folder / "second").symlink_to("../outside")
    before = snapshot(tmp_path)
    desk = Desk(folder)
    for name, args in (
        ("write_file", {"path": "link/f", "content": "x"}),
        ("write_file", {"path": "link/new", "content": "x"}),
        ("write_file", {"path": "link", "content": "x"}),
        ("edit_file", {"path": "link/f", "old_text": "SECRET", "new_text": "x"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: link/new\n+x\n*** End Patch"}),
        ("read_file", {"path": "link/f"}),
        ("list_files", {"path": "link"}),
        ("search", {"path": "link", "pattern": "SECRET"}),
    ):
        outcome = await desk.call(name, **args)
        assert (outcome.status, outcome.reason) == ("error", "symlink_escape"), (name, outcome)
        assert "SECRET" not in outcome.content
    listing = await desk.call("list_files")
    assert "link/f" not in listing.content
    assert snapshot(tmp_path) == before


async def test_links_inside_the_workspace_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a").write_text("1\n")
    (tmp_path / "dir").symlink_to("real")
    (tmp_path / "abs").symlink_to(tmp_path / "real/a")
    desk = Desk(tmp_path)
    assert (await desk.call("edit_file", path="dir/a", old_text="1", new_text="2")).status == "ok"
    assert (await desk.call("edit_file", path="abs", old_text="2", new_text="3")).status == "ok"
    assert snapshot(tmp_path) == {"abs": f"-> {tmp_path}/real/a", "dir": "-> real", "real/a": (b"3\n", 0o644)}


async def test_deleting_a_link_leaves_its_target_and_undo_brings_it_back(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "link").symlink_to("a")
    before = snapshot(tmp_path)
    desk = Desk(tmp_path)
    outcome = await desk.call("apply_patch", patch="*** Begin Patch\n*** Delete File: link\n*** End Patch")
    assert snapshot(tmp_path) == {"a": (b"1\n", 0o644)}
    assert (await desk.undo(outcome)).status == "ok"
    assert snapshot(tmp_path) == before


@pytest.mark.scenario("ATK-12")
async def test_a_link_planted_between_plan_and_write_is_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "w", tmp_path / "outside"
    (folder / "d").mkdir(parents=True)
    outside.mkdir()
    (folder / "d/f").write_text("old\n")
    (outside / "f").write_text("old\n")
    desk = Desk(folder)
    started = await desk.start("edit_file", path="d/f", old_text="old", new_text="new")
    (folder / "d").rename(folder / "gone")
    (folder / "d").symlink_to(outside)
    outcome = await desk.finish(started)
    assert outcome.status == "error"
    assert (outside / "f").read_text() == "old\n"
    assert [path.name for path in outside.iterdir()] == ["f"]


@pytest.mark.scenario("ATK-12")
def test_10_000_swaps_of_a_directory_for_a_link_lead_to_no_escape(tmp_path: Path) -> None:
    folder, outside = tmp_path / "w", tmp_path / "outside"
    (folder / "real").mkdir(parents=True)
    outside.mkdir()
    (folder / "trap").symlink_to(outside)
    (folder / "d").mkdir()
    enough = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        while not (enough.is_set() and swaps >= SWAPS):
            assert kernel.exchange(fd, "d", "trap")
            swaps += 1
        os.close(fd)

    thread = threading.Thread(target=swap)
    thread.start()
    tries = written = refused = 0
    with Root(folder) as root:
        while thread.is_alive():
            tries += 1
            try:
                path = root.resolve(f"d/f{tries}")
                failed = execute(root, [Step(path, None, b"x", f".standfast-race-{tries}.tmp~")])
                written, refused = written + (failed is None), refused + (failed is not None)
            except Refused:
                refused += 1
            if written >= WRITES and refused >= WRITES:
                enough.set()
    thread.join()
    assert swaps >= SWAPS
    assert list(outside.iterdir()) == [], "a write escaped"
    left = [path.name for path in (folder / "d", folder / "trap") if not path.is_symlink() for path in path.iterdir()]
    assert not [name for name in left if name.endswith("~")], "a temporary name was left"
    assert len(left) == written


@pytest.mark.scenario("ATK-13")
async def test_a_hard_link_is_asked_about_and_the_file_outside_keeps_its_content(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (tmp_path / "outside").write_text("1\n")
    os.link(tmp_path / "outside", folder / "a")
    desk = Desk(folder)
    started = await desk.start("edit_file", path="a", old_text="1", new_text="2")
    assert "hard link" in started.plan.risks[0]
    assert (await desk.finish(started)).status == "ok"
    assert ((tmp_path / "outside").read_text(), (folder / "a").read_text()) == ("1\n", "2\n")


@pytest.mark.scenario("ATK-15")
@pytest.mark.scenario("e09")
@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit", "vendor/sub/.git/hooks/x", ".GIT/config", ".Git/x", ".git\u200b/x", ".git./x", ".git /x",
        "git~1/x", ".\uff47\uff49\uff54/x", "a/.git", "a/../.git/x", ".g\u0131t/../.git/x",
    ],
)  # fmt: skip
async def test_git_is_refused_at_any_depth_in_any_spelling(path: str, tmp_path: Path) -> None:
    outcome = await Desk(tmp_path).call("write_file", path=path, content="x")
    assert (outcome.status, outcome.reason) == ("error", "protected_path")
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"
    assert (await Desk(tmp_path).call("apply_patch", patch=patch)).reason == "protected_path"
    assert snapshot(tmp_path) == {}


@pytest.mark.scenario("ATK-15")
async def test_git_is_refused_through_a_link(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(".git/hooks")
    outcome = await Desk(tmp_path).call("write_file", path="alias/post-commit", content="x")
    assert outcome.reason == "protected_path"


@pytest.mark.scenario("ATK-16")
async def test_special_files_are_refused_without_waiting_for_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    listener.close()
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(10 << 30)
    desk = Desk(tmp_path)
    for name in ("fifo", "socket", "sparse"):
        for tool, args in (
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("edit_file", {"old_text": "a", "new_text": "b"}),
        ):
            outcome = await desk.call(tool, path=name, **args)
            assert outcome.status == "error", (name, tool)
            assert outcome.reason in {"not_a_file", "too_large"}
    assert (await desk.call("search", pattern="x")).status == "ok"


@pytest.mark.scenario("ATK-16")
async def test_names_that_are_no_utf8_are_listed_escaped(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xffb")).write_text("x\n")
    outcome = await Desk(tmp_path).call("list_files")
    assert outcome.content == "a\ufffdb"
    outcome.content.encode()


@pytest.mark.scenario("ATK-18")
@pytest.mark.scenario("ATK-19")
@pytest.mark.scenario("ATK-22")
@pytest.mark.parametrize(
    "path",
    [
        ".vscode/settings.json", ".VsCode/Settings.json", "sub/.vscode/tasks.json", ".vscode/launch.json", ".idea/x.xml",
        ".zed/settings.json", ".standfast/config.toml", ".mcp.json", ".claude/settings.json", ".codex/config.toml",
        ".cursor/mcp.json", ".envrc", ".nvim.lua", ".exrc", ".npmrc", "pip.conf", "sitecustomize.py", "a/__pycache__/a.pyc",
        ".husky/pre-commit", ".github/workflows/ci.yml", ".bashrc", ".gitlab-ci.yml",
    ],
)  # fmt: skip
async def test_a_file_that_starts_programs_is_asked_about_by_name(path: str, tmp_path: Path) -> None:
    started = await Desk(tmp_path).start("write_file", path=path, content="x")
    assert started.plan.risks and path in started.plan.risks[0]


@pytest.mark.scenario("ATK-18")
@pytest.mark.parametrize("path", ["src/a.py", "README.md", "git/x", "vscode/settings.json", ".vscode/notes.md"])
async def test_an_ordinary_file_is_no_risk(path: str, tmp_path: Path) -> None:
    assert (await Desk(tmp_path).start("write_file", path=path, content="x")).plan.risks == ()


@pytest.mark.scenario("e06")
def test_secrets_are_known_by_name_and_examples_are_none() -> None:
    assert all(map(is_secret, (".env", "a/.ENV", ".env.local", "id_rsa", "x/server.key", ".aws/credentials", ".netrc")))
    assert not any(map(is_secret, (".env.example", "env.py", "id_rsa.pub", "key.py", "secrets.py")))
    assert not is_git("git/x")
    assert starts_programs("src/main.py") is None


async def test_reading_a_secret_is_a_risk_and_searching_leaves_it_out(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=canary\n")
    (tmp_path / "link").symlink_to(".env")
    desk = Desk(tmp_path)
    assert (await desk.start("read_file", path=".env")).plan.risks
    assert (await desk.start("read_file", path="link")).plan.risks
    assert "canary" not in (await desk.call("search", pattern="KEY")).content


@pytest.mark.scenario("b16")
async def test_git_repositories_in_the_workspace_are_left_as_they_are(tmp_path: Path) -> None:
    for place in (".git", "sub/.git"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "a").write_text("1\n")
    desk = Desk(tmp_path)
    started = await desk.start("edit_file", path="a", old_text="1", new_text="2")
    await started.tool.verify(started.call, started.ctx)
    await desk.finish(started)
    await started.tool.settle("undo", started.call, started.ctx)
    wanted = (b"ref: refs/heads/main\n", 0o644)
    assert snapshot(tmp_path) == {"a": (b"1\n", 0o644), ".git/HEAD": wanted, "sub/.git/HEAD": wanted}


async def test_the_listing_respects_ignore_files_as_git_does(tmp_path: Path) -> None:
    files = {
        ".gitignore": "*.log\nbuild/\n!keep.log\n/only-top\n", "a.log": "", "keep.log": "", "build/x": "", "only-top": "",
        "d/only-top": "", "d/.gitignore": "!a.log\nx\n", "d/a.log": "", "d/x": "", "é/ü.txt": "needle\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    listed = (await Desk(tmp_path).call("list_files")).content.split("\n")
    assert listed == [".gitignore", "d/", "d/.gitignore", "d/a.log", "d/only-top", "keep.log", "é/", "é/ü.txt"]
    assert (await Desk(tmp_path).call("list_files", path="d", glob="*.log")).content == "d/a.log"
    assert (await Desk(tmp_path).call("search", pattern="ne+dle")).content == "é/ü.txt:1: needle"
    assert (await Desk(tmp_path).call("search", pattern="(n+e+)+dle")).content == "é/ü.txt:1: needle"
    assert (await Desk(tmp_path).call("search", pattern="(")).reason == "malformed"


async def test_an_expression_that_runs_away_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("standfast.files.searching.SECONDS_MAX", 1.5)
    (tmp_path / "a").write_text("a" * 60 + "b\n")
    outcome = await Desk(tmp_path).call("search", pattern="(a+)+$")
    assert "took too long" in outcome.content
