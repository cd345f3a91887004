"""Whatever a client puts into params: an answer that the reference foresees, never a defect; and the daemon goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from editor.desk import do, number, session
from standfast.protocol.errors import CODES, FAMILIES
from standfast.protocol.methods import REQUESTS
from support import configure, start_daemon
from support.daemon import places
from wire.raw import Json, Raw, connect_to

SCHEMA = json.loads((Path(__file__).parents[2] / "protocol-spec" / "schema.json").read_text())
METHODS = {name: SCHEMA["$defs"][SCHEMA["x-methods"][name]["params"]["$ref"].split("/")[-1]] for name in REQUESTS}
"""Method → the schema of its params."""
ODD: list[Any] = [
    None, True, 0, -1, 1.5, 2.0, 2**53 - 1, 2**53, 2**63 - 1, 2**63, 2**64, [], [None], {}, {"kind": "text"},
    "", " ", "x", "a\0b", "\u202e", "%", "file://[", "file:///a%00b", "file:", "x" * 2_000, "y" * 60_000,
]  # fmt: skip
"""Values of every kind; each stands once in each field of each method."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """The home of a daemon that all tests here talk to."""
    home = tmp_path_factory.mktemp("odd") / "home"
    home.mkdir()
    configure(home, model={"provider": "scripted"})
    running = start_daemon(home)
    yield home
    assert running.process.poll() is None, "it went on to the end"
    running.kill()


@pytest.fixture
async def raw(home: Path) -> AsyncGenerator[Raw]:
    async with connect_to(places(home).socket) as raw:
        await raw.initialize()
        yield raw


async def refused(raw: Raw, method: str, **params: Any) -> tuple[int, Any]:
    """(code, reason) of a refusal; of -32602 the places instead."""
    raw.request(message_id := number(), f"standfast/{method}", params)
    error = (await raw.answer(message_id)).get("error")
    assert error is not None, f"{method} {params} was taken"
    data = error["data"]
    return error["code"], data["reason"] if "reason" in data else [fault["loc"] for fault in data["errors"]]


def sound(method: str, session_id: str, folder: Path) -> Json:
    """Params that fit, as far as a name tells; ids other than the session's name nothing."""
    known = {
        "sessionId": session_id, "workspaceUri": folder.as_uri(), "directoryUri": (folder / "out" / "x").as_uri(),
        "uri": (folder / "none").as_uri(), "text": "hello", "query": "x", "title": "t", "objective": "o", "line": 1,
        "provider": "anthropic", "key": None, "trusted": False, "position": 0,
    }  # fmt: skip
    choices = METHODS[method].get("properties", {})
    required = METHODS[method].get("required", [])
    return {name: known.get(name, choices[name].get("enum", ["no_such_id"])[0]) for name in required}


@pytest.mark.parametrize("method", METHODS)
async def test_no_value_in_any_field_is_a_defect(raw: Raw, tmp_path: Path, method: str) -> None:
    session_id = await session(raw, tmp_path, attach=False)
    for field in METHODS[method].get("properties", {}):
        for value in ODD:
            params = {**sound(method, session_id, tmp_path), field: value}
            asked = {"jsonrpc": "2.0", "id": (message_id := number()), "method": method, "params": params}
            raw.send(json.dumps(asked).encode())  # orjson would not write 2**64
            error = (await raw.answer(message_id)).get("error")
            if error is None:
                continue
            about = f"{method} {field} = {str(value)[:80]!r}: {error}"
            if error["code"] == -32602:
                assert all(fault.keys() == {"loc", "msg"} for fault in error["data"]["errors"]), about
            else:
                assert error["code"] in FAMILIES, about
                assert CODES[error["data"]["reason"]] == error["code"], about
    assert (await raw.ask(number(), "standfast/daemon/status"))["running"]


@pytest.mark.parametrize(
    ("method", "params", "place"),
    [
        ("session/events", {"afterSeq": 2**53}, ["afterSeq"]),
        ("session/attach", {"afterSeq": 2**63}, ["afterSeq"]),
        ("session/attach", {"limit": 0}, ["limit"]),
        ("session/list", {"query": "x" * 60_000}, ["query"]),
        ("message/history", {"query": "x" * 60_000}, ["query"]),
        ("goal/set", {"objective": ""}, ["objective"]),
        ("goal/update", {"objective": " \n"}, ["objective"]),
        ("queue/edit", {"messageId": "m", "text": " "}, ["text"]),
        ("run/steer", {"runId": "r", "text": "", "clientMessageId": "c"}, ["text"]),
    ],
)
async def test_a_value_that_does_not_fit_is_refused_by_its_place(
    raw: Raw, tmp_path: Path, method: str, params: Json, place: list[str]
) -> None:
    session_id = await session(raw, tmp_path, attach=False)
    assert await refused(raw, method, **{"sessionId": session_id, **params}) == (-32602, [place])


async def test_a_queued_message_keeps_its_text_when_an_empty_one_is_refused(raw: Raw, tmp_path: Path) -> None:
    session_id = await session(raw, tmp_path, mode="ask")
    params = {"sessionId": session_id, "text": "/write a.txt\nx\n/end", "clientMessageId": number()}
    await raw.ask(number(), "standfast/run/start", params)
    await raw.told("standfast/permission/request")
    await raw.ask(number(), "standfast/run/start", {**params, "text": "next", "clientMessageId": number()})
    before = await raw.ask(number(), "standfast/queue/list", {"sessionId": session_id})
    message_id = before["queue"][0]["messageId"]
    assert (await refused(raw, "queue/edit", sessionId=session_id, messageId=message_id, text=""))[0] == -32602
    assert await raw.ask(number(), "standfast/queue/list", {"sessionId": session_id}) == before


@pytest.mark.parametrize("uri", ["relative", "http://x/y", "file://[", "file:///a%00b", ""])
async def test_what_is_no_file_uri_names_nothing(raw: Raw, tmp_path: Path, uri: str) -> None:
    session_id = await session(raw, tmp_path, attach=False)
    assert await refused(raw, "session/create", workspaceUri=uri) == (-32051, "WorkspaceNotFound")
    assert await refused(raw, "session/rebind", sessionId=session_id, workspaceUri=uri) == (-32051, "WorkspaceNotFound")
    assert await refused(raw, "session/export", sessionId=session_id, directoryUri=uri) == (-32057, "ExportFailed")
    assert await refused(raw, "session/import", uri=uri) == (-32057, "ImportFailed")
    raw.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "x", "version": 1, "text": "x"}})
    lenses = {"textDocument": {"uri": uri}}
    assert await raw.ask(number(), "textDocument/codeLens", lenses) == []


async def test_a_list_that_cannot_go_on_from_a_cursor_says_so(raw: Raw) -> None:
    for method in ("session/list", "run/list"):
        for cursor in ("", "x", "eyJ4IjoxfQ=="):
            assert await refused(raw, method, cursor=cursor) == (-32053, "CursorInvalid")


async def test_two_spellings_of_a_folder_are_one_workspace(raw: Raw, tmp_path: Path) -> None:
    folder = tmp_path / "sp ace ü"
    folder.mkdir()
    session_id = await session(raw, folder)
    run_id = await do(raw, session_id, "/list")
    spelt = folder.as_uri()
    for uri in (
        f"{spelt}/",
        f"file://{folder}",
        spelt.replace("file://", "file://localhost"),
        spelt.replace("%C3%BC", "%c3%bc"),
    ):
        listed = await raw.ask(number(), "standfast/session/list", {"workspaceUri": uri})
        assert [one["sessionId"] for one in listed["sessions"]] == [session_id], uri
        runs = await raw.ask(number(), "standfast/run/list", {"workspaceUri": uri})
        assert [one["runId"] for one in runs["runs"]] == [run_id], uri
