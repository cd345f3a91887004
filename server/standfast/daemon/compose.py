"""The composition root: the only place that builds concrete parts and joins them. Read it to see what the daemon consists of."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from standfast import __version__
from standfast.clock import Clock, RandomIds, SystemClock
from standfast.config import Settings, take_settings
from standfast.daemon import harden
from standfast.daemon.backups import keep_backups
from standfast.daemon.loop_lag import LoopLag
from standfast.daemon.unavailable import unavailable
from standfast.editor.buffers import OpenBuffers
from standfast.editor.connection import serve_client
from standfast.editor.core import Core, Measured, Status
from standfast.errors import StandfastError, StoreError
from standfast.events.journal import Journal
from standfast.files.completion import complete
from standfast.model.choose import make_model
from standfast.model.credentials import Credentials
from standfast.places import Places, private_directory, private_temporary
from standfast.process import sandbox
from standfast.process.environment import CERTIFICATES
from standfast.process.identity import boot_id
from standfast.process.launch import Commands
from standfast.session.parts import Parts
from standfast.session.sessions import Sessions
from standfast.store.base import Store
from standfast.store.sqlite import SqliteStore
from standfast.tools import registry
from standfast.tools.base import StartedCall, Tool, ToolContext, Verification
from standfast.tools.git_tool import GitTool
from standfast.tools.reconsider import reconsider
from standfast.tools.run_command import RunCommand

UMASK_VARIABLE = "STANDFAST_UMASK"
"""The person's own umask, octal: `__main__` notes it before it closes the daemon's. Commands get it back."""

RECORDS_KEPT_MS = 7 * 24 * 60 * 60 * 1000
"""How long the record of an ended command stays after its result is in the log."""

Trouble = tuple[str, str]
"""(code, sentence): what does not work as it should."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """The parts, joined."""

    core: Core
    sessions: Sessions
    commands: Commands
    clock: Clock
    log: logging.Logger
    idle_exit_s: float
    tasks: Tasks
    trouble: Callable[[str, str | None], None]
    """(code, sentence): something passing does not work as it should; None: it does again. Everybody is told."""

    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, until it goes or is dropped."""
        await serve_client(reader, writer, self.core)

    def busy(self) -> bool:
        """A run, an open question of a live run or a supervised command keeps the daemon."""
        return self.sessions.busy() or len(self.commands) > 0

    async def stop(self) -> None:
        """End what is going on. Runs stay without an end: the next daemon marks them interrupted."""
        await self.tasks.end()


@dataclass(slots=True)
class Tasks:
    """The session layer's tasks. They do not raise; they end with the daemon."""

    _all: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._all.add(task)
        task.add_done_callback(self._all.discard)
        return task

    async def end(self) -> None:
        """Cancel all and wait: a cancelled call ends its effect first."""
        while self._all:
            for task in self._all:
                task.cancel()
            await asyncio.wait(self._all)


@contextlib.asynccontextmanager
async def compose(places: Places, *, clients: Callable[[], int]) -> AsyncGenerator[Daemon]:
    """Build everything, ready to serve; on leaving, close it in the opposite order.

    Raises StandfastError (`ConfigInvalid`). A store or credentials that cannot be used are degraded modes, not failures.
    """
    clock, ids, log, tasks = SystemClock(), RandomIds(), logging.getLogger("standfast.daemon"), Tasks()
    settings = take_settings(places.config, os.environ)
    troubles: list[Trouble] = [("SettingUnknown", warning) for warning in settings.warnings]
    passing: dict[str, str] = {}
    looking = asyncio.ensure_future(asyncio.to_thread(_find_sandbox, places, settings))  # while the store is opened
    credentials = _take_credentials(places, troubles)
    store, opened = await _open_store(places, clock, troubles)
    journal, buffers, lag = Journal(store), OpenBuffers(), LoopLag()
    confined = await looking
    if any(sandbox.below(confined.level, wanted) for wanted in (settings.sandbox.minimum, settings.sandbox.at_most)):
        troubles.append(_weak_sandbox(confined, settings.sandbox.minimum))
    commands = Commands(
        grace_ms=round(settings.daemon.grace_s * 1000), umask=_persons_umask(), clock=clock,
        sandbox=confined, network=settings.sandbox.network,
    )  # fmt: skip
    model = make_model(settings, credentials, clock)
    offered = registry.offered(commands)
    sessions = Sessions(
        Parts(
            store=store,
            journal=journal,
            model=model,
            model_name=settings.model.model,
            max_tokens=settings.model.max_tokens,
            retry_base_ms=settings.run.retry_base_ms,
            window=settings.model.window,
            tools={tool.name: tool for tool in (*offered, *registry.internal())},
            offered=offered,
            buffers=buffers,
            clock=clock,
            ids=ids,
            spawn=tasks.spawn,
            spool=private_directory(places.commands),
            worker_id=ids.new("worker"),
            boot_id=boot_id(),
            user_id=getpass.getuser(),
            sandbox=confined.level,
            sandbox_minimum=settings.sandbox.minimum,
            wait=_waiter(offered),
            reconsider=reconsider,
            list_files=complete,
        )
    )
    core = Core(
        sessions=sessions,
        feed=journal,
        clock=clock,
        ids=ids,
        version=__version__,
        sandbox=confined.level,
        transcripts=private_directory(places.transcripts),
        set_credentials=_setter(credentials),
        degraded=lambda: [
            *troubles,
            *passing.items(),
            *((one["code"], one["message"]) for one in (opened.degraded() if opened else ())),
        ],
        status=_status(places, settings, sessions, lambda: _measured(opened, journal, lag)),
        buffers=buffers,
        folder=settings.session.folder,
    )

    def trouble(code: str, sentence: str | None) -> None:
        passing.pop(code, None)
        if sentence is not None:
            passing[code] = sentence
        core.publisher.degraded(core.degraded())

    try:
        if opened is not None:
            opened.on_degraded(lambda _: core.publisher.degraded(core.degraded()))
            await commands.adopt_all(places.commands)
            await _begin(sessions, opened, troubles)
            tasks.spawn(keep_backups(opened, settings.daemon.backup_every_s), "backups")
            tasks.spawn(_sweep(commands, places, store, clock), "sweep records of commands")
        harden.settle_memory()
        tasks.spawn(lag.watch(), "loop lag")
        async with core.publisher:
            yield Daemon(core, sessions, commands, clock, log, settings.daemon.idle_exit_s, tasks, trouble)
    finally:
        await tasks.end()
        commands.close()
        await model.close()
        await store.close()


def _find_sandbox(places: Places, settings: Settings) -> sandbox.Sandbox:
    """What confines commands here, tried out. The daemon's own places are out of their reach."""
    with contextlib.suppress(OSError):
        places.config.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # what is not there cannot be taken away
    own = [str(place) for place in (places.state, places.runtime, places.config.parent, private_temporary())]
    roots = [os.environ.get(name, "") for name in sandbox.TOOL_ROOTS]
    authorities = [path for name in CERTIFICATES if os.path.isfile(path := os.environ.get(name, ""))]
    exposure = sandbox.expose(
        os.path.expanduser("~"), own=own, path=":".join([os.environ.get("PATH", ""), *roots]),
        read=[*settings.sandbox.read, *authorities], write=settings.sandbox.write,
    )  # fmt: skip
    found = sandbox.detect(exposure, best=settings.sandbox.at_most)
    return found._replace(memory=settings.sandbox.memory_mb * 1024 * 1024)


def _weak_sandbox(found: sandbox.Sandbox, minimum: str) -> Trouble:
    """What a person must know where commands are confined less than they want (I13)."""
    what = "Commands run without a sandbox" if found.level == "none" else "Commands run in a partial sandbox"
    asked = ""
    if sandbox.below(found.level, minimum):
        asked = f'; every command is asked, unless `[sandbox] level = "{found.level}"` in your own settings says that it is enough'
    return (
        "SandboxMissing" if found.level == "none" else "SandboxPartial",
        f"{what}: {found.why}{asked}. Nothing else is affected. Install bubblewrap for the full one and restart the daemon.",
    )


def _waiter(tools: Sequence[Tool]) -> Callable[[StartedCall, ToolContext], Awaitable[Verification]]:
    """Wait for a command that outlived its daemon: the tool that started it knows how; the intent's kind says which it was."""
    waits = {"command": RunCommand, "git": GitTool}
    by_kind = {kind: tool for kind, made in waits.items() for tool in tools if isinstance(tool, made)}

    async def wait(call: StartedCall, ctx: ToolContext) -> Verification:
        return await by_kind[call.intents[0].kind].wait(call, ctx)

    return wait


async def _begin(sessions: Sessions, store: SqliteStore, troubles: list[Trouble]) -> None:
    """Mark what the last daemon left unfinished. A store that can only be read stays as it is, and says so itself."""
    try:
        await sessions.start()
    except StoreError as error:
        if all(error.message not in one["message"] for one in store.degraded()):
            troubles.append((error.reason, error.message))


async def _sweep(commands: Commands, places: Places, store: Store, clock: Clock) -> None:
    """Remove records of commands that nobody will ask again: long ended, and their call has its result in the log."""

    async def settled(call_id: str) -> bool:
        call = await store.call(call_id)
        return call is not None and call.result_seq is not None

    try:
        await commands.sweep(places.commands, before_ms=clock.now_ms() - RECORDS_KEPT_MS, settled=settled)
    except (OSError, StandfastError) as error:
        logging.getLogger("standfast.daemon").warning("records_not_swept", extra={"why": type(error).__name__})


async def _open_store(places: Places, clock: Clock, troubles: list[Trouble]) -> tuple[Store, SqliteStore | None]:
    """The store; where it cannot be opened, one that refuses everything and says why (d12)."""
    try:
        opened = await SqliteStore.open(places.store, clock)
    except StoreError as error:
        closed = StoreError(error.reason, f"The store {places.store} cannot be opened. {error.message}", **error.data)
        troubles.append((closed.reason, closed.message))
        return unavailable(closed), None
    return opened, opened


def _take_credentials(places: Places, troubles: list[Trouble]) -> Credentials:
    credentials = Credentials.take(places.credentials, os.environ)
    try:
        credentials.reload()
    except StandfastError as error:  # the environment's key serves meanwhile
        troubles.append((error.reason, error.message))
    return credentials


def _setter(credentials: Credentials) -> Callable[[str, str | None], Coroutine[Any, Any, None]]:
    async def set_credentials(provider: str, key: str | None) -> None:
        await asyncio.to_thread(credentials.set, provider, key)

    return set_credentials


def _measured(store: SqliteStore | None, journal: Journal, lag: LoopLag) -> Measured:
    if store is None:
        return Measured(loop_lag_p99_ms=lag.p99_ms, loop_lag_max_ms=lag.max_ms)
    counts = store.counts
    return Measured(
        events=journal.emitted, commits=counts.commits, appends=counts.appends,
        commit_mean_ms=counts.durable_ms / max(1, counts.durable_commits), commit_max_ms=counts.durable_max_ms,
        writes_waiting=counts.waiting, loop_lag_p99_ms=lag.p99_ms, loop_lag_max_ms=lag.max_ms,
    )  # fmt: skip


def _status(
    places: Places, settings: Settings, sessions: Sessions, measured: Callable[[], Measured]
) -> Callable[[], Coroutine[Any, Any, Status]]:
    async def status() -> Status:
        return Status(
            pid=os.getpid(),
            socket=str(places.socket),
            store=str(places.store),
            base_url=settings.model.base_url if settings.model.provider == "anthropic" else "",
            runs=sessions.live_runs(),
            measured=measured(),
        )

    return status


def _persons_umask() -> int:
    try:
        return int(os.environ.get(UMASK_VARIABLE, "022"), 8) & 0o777
    except ValueError:
        return 0o022
