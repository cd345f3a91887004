"""An ordinary LSP client with no code of ours, pytest-lsp, over `standfast lsp` (issue D, part 4): what LSP alone gives.

pytest-lsp checks what it gets against the capabilities that it offered, and warns; a warning fails the test.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

import pytest
from lsprotocol import types
from lsprotocol.converters import get_converter
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities
from pytest_lsp.client import register_lsp_features

from standfast.daemon import lock
from support import configure, end_daemon, environment
from support.daemon import places
from support.waiting import until

AMBIGUOUS = "/patch\n*** Begin Patch\n*** Update File: twice.py\n@@\n-x = 0\n+x = 1\n*** End Patch"


@dataclass
class Plain:
    """The client, and how its person answers a question."""

    client: LanguageClient
    folder: Path
    asked: list[types.ShowMessageRequestParams] = field(default_factory=list[types.ShowMessageRequestParams])
    answer: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    async def command(self, name: str, argument: Any) -> Any:
        """`workspace/executeCommand`; the answer's first field."""
        params = types.ExecuteCommandParams(command=name, arguments=[argument])
        return await self.client.workspace_execute_command_async(params)

    async def session(self, mode: str) -> str:
        made = await self.command("standfast.session.create", {"workspaceUri": self.folder.as_uri(), "mode": mode})
        return made["session"]["sessionId"]

    async def start(self, session_id: str, text: str) -> str:
        return (await self.command("standfast.run.start", {"sessionId": session_id, "text": text}))["runId"]

    def diagnostics(self, uri: str, code: str) -> list[types.Diagnostic]:
        return [found for found in self.client.diagnostics.get(uri, ()) if found.code == code]

    def progress(self, run_id: str) -> list[Any]:
        """What was reported of a run."""
        return self.client.progress_reports.get(f"standfast/{run_id}", [])

    async def actions(self, uri: str, at: types.Range) -> dict[str, types.CodeAction]:
        """By title; without echoing any diagnostic."""
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), at, types.CodeActionContext(diagnostics=[]))
        found = await self.client.text_document_code_action_async(params) or []
        return {action.title: action for action in found if isinstance(action, types.CodeAction)}

    async def ended(self, run_id: str) -> str:
        """Wait for the run's end, as progress shows it; how it ended."""
        await until(lambda: [one.kind for one in self.progress(run_id)][-1:] == ["end"], "the end of the run")
        return self.progress(run_id)[-1].message

    async def press(self, action: types.CodeAction) -> None:
        resolved = await self.client.code_action_resolve_async(action)
        assert resolved.command is not None
        await self.command(resolved.command.command, (resolved.command.arguments or [None])[0])


def converter() -> Any:
    """lsprotocol's, but for one thing: it takes any code action that holds a command for a bare `Command` (pygls_facts/)."""
    made: Any = get_converter()

    def action(value: Any, shape: Any) -> types.Command | types.CodeAction:
        return made.structure(value, types.Command if isinstance(value.get("command"), str) else types.CodeAction)

    made.register_structure_hook(types.Command | types.CodeAction, action)
    made.register_structure_hook(Union[types.Command, types.CodeAction], action)  # noqa: UP007 - another type to cattrs
    return made


def asking(plain: Callable[[], Plain]) -> LanguageClient:
    """pytest-lsp's client, with a person who is asked."""
    client = LanguageClient(converter_factory=converter)
    register_lsp_features(client)

    @client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
    async def ask(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        plain().asked.append(params)
        title = await asyncio.shield(plain().answer)
        return next((action for action in params.actions or [] if action.title == title), None)

    return client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project's folder, and a home whose model is the scripted one."""
    (tmp_path / "home").mkdir(mode=0o700)
    configure(tmp_path / "home", model={"provider": "scripted"})
    made = tmp_path / "project"
    made.mkdir()
    return made


def server_of(client: LanguageClient) -> asyncio.subprocess.Process:
    """The process that pytest-lsp started."""
    process = client._server  # pyright: ignore[reportPrivateUsage]
    assert process is not None
    return process


@contextlib.asynccontextmanager
async def opened(folder: Path, *, virtual_documents: bool = False) -> AsyncGenerator[Plain]:
    """The folder in pytest-lsp's client, as capable as Neovim says it is, through `standfast lsp`."""
    made: list[Plain] = []
    config = ClientServerConfig(
        server_command=[sys.executable, "-P", "-m", "standfast", "lsp"],
        server_env=environment(folder.parent / "home"),
        client_factory=lambda: asking(lambda: made[0]),
    )
    client = await config.start()
    assert isinstance(client, LanguageClient)
    plain = Plain(client, folder)
    made.append(plain)
    offered = client_capabilities("neovim")
    if virtual_documents:
        assert offered.workspace is not None
        offered.workspace.text_document_content = types.TextDocumentContentClientCapabilities()
    uri = folder.as_uri()
    here = [types.WorkspaceFolder(uri, "project")]
    try:
        await client.initialize_session(
            types.InitializeParams(capabilities=offered, root_uri=uri, workspace_folders=here)
        )
        yield plain
        await client.shutdown_session()
    finally:
        plain.answer.cancel()
        process = server_of(client)
        if process.returncode is None:
            process.terminate()  # a test that failed said no goodbye
        await client.stop()


@pytest.fixture
async def plain(folder: Path) -> AsyncGenerator[Plain]:
    async with opened(folder, virtual_documents=True) as made:
        yield made
    await asyncio.to_thread(end_daemon, folder.parent / "home")


async def test_a_run_is_begun_asked_shown_reviewed_read_and_stopped_by_lsp_alone(plain: Plain) -> None:
    session_id = await plain.session("ask")
    run_id = await plain.start(session_id, "/write new.txt\nhello\n/end")
    await until(lambda: plain.asked, "the question")
    assert "new.txt" in plain.asked[0].message
    assert [action.title for action in plain.asked[0].actions or []] == ["Allow", "Deny", "Allow for this session"]
    assert not (plain.folder / "new.txt").exists()
    plain.answer.set_result("Allow")
    assert await plain.ended(run_id) == "succeeded"
    begun = plain.progress(run_id)[0]
    assert begun.kind == "begin" and begun.cancellable and begun.title.startswith("Standfast")
    assert (plain.folder / "new.txt").read_text() == "hello\n"

    document = types.TextDocumentIdentifier((plain.folder / "new.txt").as_uri())
    review, undo = await plain.client.text_document_code_lens_async(types.CodeLensParams(document)) or []
    assert review.command is not None and undo.command is not None
    difference = await plain.command(review.command.command, (review.command.arguments or [])[0])
    assert difference["files"] == [{"uri": document.uri, "before": None, "after": "hello\n"}]
    await plain.command(undo.command.command, (undo.command.arguments or [])[0])
    assert not (plain.folder / "new.txt").exists()

    uri = f"standfast:/session/{session_id}"
    shown = await plain.client.workspace_text_document_content_async(types.TextDocumentContentParams(uri))
    assert "new.txt" in shown.text and "hello" in shown.text

    held = await plain.start(session_id, "/run sleep 60")
    plain.asked.clear()
    stopped = await plain.command("standfast.run.cancel", {"runId": held})
    assert stopped["run"]["status"] == "cancelled"
    assert await plain.ended(held) == "cancelled"


async def test_a_refused_patch_is_a_diagnostic_and_its_code_action_settles_it(plain: Plain) -> None:
    twice = plain.folder / "twice.py"
    twice.write_text("x = 0\nx = 0\n")
    await plain.start(await plain.session("auto"), AMBIGUOUS)
    await until(lambda: plain.diagnostics(twice.as_uri(), "patch-conflict"), "the diagnostic")
    (found,) = plain.diagnostics(twice.as_uri(), "patch-conflict")
    assert (found.source, found.severity) == ("standfast", types.DiagnosticSeverity.Warning)
    actions = await plain.actions(twice.as_uri(), found.range)
    assert {"Apply here: line 1", "Apply here: line 2", "Show difference", "Dismiss"} <= set(actions)
    await plain.press(actions["Apply here: line 2"])
    assert twice.read_text() == "x = 0\nx = 1\n"
    await until(lambda: not plain.diagnostics(twice.as_uri(), "patch-conflict"), "its end")


async def test_after_a_crash_the_interrupted_run_is_shown_on_a_copy_and_resumed_by_its_action(folder: Path) -> None:
    home = folder.parent / "home"
    async with opened(folder) as plain:
        run_id = await plain.start(await plain.session("auto"), "/run sleep 1.5")
        await until(lambda: len(plain.progress(run_id)) > 1, "the command")
        pid = lock.signature(places(home).lock)["pid"]
        os.kill(pid, signal.SIGKILL)
        assert await server_of(plain.client).wait() == 1, "the language server says that it lost the daemon"
        plain.client.error = RuntimeError("nobody is there to say goodbye to")
    async with opened(folder) as plain:
        await until(lambda: any(plain.client.diagnostics.values()), "the diagnostic")
        ((uri, (found,)),) = [item for item in plain.client.diagnostics.items() if item[1]]
        assert found.code == "interrupted-run"
        copy = Path(uri.removeprefix("file://"))
        assert copy.is_relative_to(home) and "sleep 1.5" in copy.read_text()
        actions = await plain.actions(uri, found.range)
        await plain.press(actions["Resume the run"])
        await until(lambda: not any(plain.client.diagnostics.values()), "its end")
        (token,) = plain.client.progress_reports
        assert await plain.ended(str(token).removeprefix("standfast/")) == "succeeded"
    await asyncio.to_thread(end_daemon, home)
