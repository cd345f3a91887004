"""The record directory of one command: what survives daemon and supervisor, and who wrote what in it.

    spec.json     launcher     what to run; read once by the supervisor
    control       launcher     FIFO: whoever holds its write end is the command's daemon; lines `adopt`, `stop`, `input …`
    claim         first wins   settles who decides: a supervisor that begins, or a verifier that judges
    record.json   supervisor   who runs (pid, start time, boot id): durable before the command's first instruction
    output        supervisor   all it printed, up to a cap
    exit.json     supervisor   how it ended: durable before the supervisor ends
    cursor        daemon       how far the output was polled

Standard library only: the supervisor imports it too. Every JSON file is put in place whole, and carries `version`.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from standfast.process.identity import Identity, identify

VERSION = 1
"""Of every file here. A later one is recognised and not judged (it comes from a newer Standfast)."""
SPEC, CONTROL, CLAIM, RECORD, OUTPUT, EXIT, CURSOR = (
    "spec.json",
    "control",
    "claim",
    "record.json",
    "output",
    "exit.json",
    "cursor",
)


class LaterVersion(Exception):
    """A record that a newer Standfast wrote; `str()` names its version."""


class Claim(NamedTuple):
    """Who decided whether the command runs: `supervisor` (it began) or `verifier` (it never will)."""

    by: str
    who: Identity


class Spec(NamedTuple):
    """What to run. Times are milliseconds, sizes bytes. The environment is the supervisor's own, never written down."""

    argv: list[str]
    command: str
    """As people read it."""
    cwd: str
    call_id: str
    session_id: str
    operation_id: str
    background: bool = False
    """Goes on after its call has a result; its input is a pipe, else /dev/null."""
    timeout_ms: int | None = None
    grace_ms: int = 60_000
    """How long it stays without a daemon."""
    output_max: int = 256 * 1024 * 1024
    umask: int = 0o022
    """The daemon's own is closed (files 0600); what a command makes is the person's."""
    confinement: tuple[object, ...] | None = None
    """A `confine.Confinement`; None: it runs with the person's own rights."""
    placeholders: tuple[str, ...] = ()
    """Directories that have to be there before it starts (`placeholders.py`); `placeholder_lock` says who needs them."""
    placeholder_lock: str = ""
    set_aside: tuple[str, ...] = ()
    """What is not there and is not to stay if the command makes it."""


class Record(NamedTuple):
    """A command that was begun."""

    process: Identity
    supervisor: Identity
    command: str
    cwd: str
    call_id: str
    session_id: str
    operation_id: str
    background: bool
    started_at_ms: int


class Exit(NamedTuple):
    """How a command ended. Exactly one of `exit_code` and `signal` is set, neither where nobody could see it."""

    exit_code: int | None
    signal: int | None
    started_at_ms: int
    ended_at_ms: int
    why: str
    """exited, timed_out, stopped, abandoned (nobody adopted it within the grace time)."""
    dropped_bytes: int = 0
    """Output beyond the cap that was thrown away."""
    left_behind: int = 0
    """Processes that outlived the command's own one and were ended."""
    set_aside: tuple[str, ...] = ()
    """New names of what it made where it must not."""

    @property
    def code(self) -> int | None:
        """As a shell tells it: 128 + signal for one that was ended by a signal."""
        return self.exit_code if self.signal is None else 128 + self.signal


def put(directory: str, name: str, value: dict[str, Any], *, durable: bool = True) -> None:
    """Write a JSON file whole: readers see the old one or the new one. `durable`: on the disk when this returns."""
    temporary = os.path.join(directory, f".{name}.{os.urandom(6).hex()}")
    _write(temporary, value, durable=durable)
    os.replace(temporary, os.path.join(directory, name))
    if durable:
        sync(directory)


def claim(directory: str, by: str) -> bool:
    """Try to be the one who decides whether this command runs. True for the first only, for ever."""
    own = identify(os.getpid())
    assert own is not None, "this process lives"
    temporary = os.path.join(directory, f".{CLAIM}.{os.urandom(6).hex()}")
    claimed = {"version": VERSION, "by": by, "pid": own.pid, "startTime": own.start, "bootId": own.boot}
    _write(temporary, claimed, durable=False)
    try:
        os.link(temporary, os.path.join(directory, CLAIM))
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def read_claim(directory: str) -> Claim | None:
    """Who won the claim, None if it is still open. Raises LaterVersion."""
    found = _load(directory, CLAIM)
    return None if found is None else Claim(found["by"], Identity(found["pid"], found["startTime"], found["bootId"]))


def sync(path: str) -> None:
    """Make a file, or a directory's entries, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put_spec(directory: str, spec: Spec) -> None:
    """Say what to run. Needs no durability: a command that the disk forgot was never begun."""
    put(directory, SPEC, {"version": VERSION, **spec._asdict()}, durable=False)


def read_spec(directory: str) -> Spec | None:
    """What was asked for, None if the launcher did not get that far. Raises LaterVersion."""
    found = _load(directory, SPEC)
    return None if found is None else Spec(**{name: found[name] for name in Spec._fields})


def put_record(directory: str, record: Record) -> None:
    """Say who runs, durably."""
    put(
        directory,
        RECORD,
        {
            "version": VERSION,
            "pid": record.process.pid,
            "startTime": record.process.start,
            "bootId": record.process.boot,
            "supervisor": {"pid": record.supervisor.pid, "startTime": record.supervisor.start},
            "command": record.command,
            "cwd": record.cwd,
            "callId": record.call_id,
            "sessionId": record.session_id,
            "operationId": record.operation_id,
            "background": record.background,
            "startedAtMs": record.started_at_ms,
        },
    )


def read_record(directory: str) -> Record | None:
    """Who runs or ran, None if it never began. Raises LaterVersion."""
    found = _load(directory, RECORD)
    if found is None:
        return None
    boot = str(found["bootId"])
    supervisor = found["supervisor"]
    return Record(
        process=Identity(found["pid"], found["startTime"], boot),
        supervisor=Identity(supervisor["pid"], supervisor["startTime"], boot),
        command=found["command"],
        cwd=found["cwd"],
        call_id=found["callId"],
        session_id=found["sessionId"],
        operation_id=found["operationId"],
        background=found["background"],
        started_at_ms=found["startedAtMs"],
    )


def put_exit(directory: str, end: Exit) -> None:
    """Say how it ended, durably."""
    put(
        directory,
        EXIT,
        {
            "version": VERSION,
            "exitCode": end.exit_code,
            "signal": end.signal,
            "startedAtMs": end.started_at_ms,
            "endedAtMs": end.ended_at_ms,
            "why": end.why,
            "droppedBytes": end.dropped_bytes,
            "leftBehind": end.left_behind,
            "setAside": list(end.set_aside),
        },
    )


def read_exit(directory: str) -> Exit | None:
    """How it ended, None if it has not, or nobody lived to say it. Raises LaterVersion."""
    found = _load(directory, EXIT)
    if found is None:
        return None
    return Exit(
        exit_code=found["exitCode"],
        signal=found["signal"],
        started_at_ms=found["startedAtMs"],
        ended_at_ms=found["endedAtMs"],
        why=found["why"],
        dropped_bytes=found["droppedBytes"],
        left_behind=found["leftBehind"],
        set_aside=tuple(found.get("setAside", ())),  # not in the records of earlier versions
    )


def put_cursor(directory: str, offset: int) -> None:
    """Remember how far the output was polled. Losing it means to read some of it again."""
    put(directory, CURSOR, {"version": VERSION, "offset": offset}, durable=False)


def read_cursor(directory: str) -> int:
    """How far the output was polled, in bytes."""
    found = _load(directory, CURSOR)
    return 0 if found is None else int(found["offset"])


def _write(path: str, value: dict[str, Any], *, durable: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(json.dumps(value).encode())
        if durable:
            file.flush()
            os.fsync(handle)


def _load(directory: str, name: str) -> dict[str, Any] | None:
    try:
        with open(os.path.join(directory, name), "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            found: dict[str, Any] = json.loads(file.read())
    except FileNotFoundError:
        return None
    if int(found["version"]) > VERSION:
        raise LaterVersion(f"version {found['version']}")
    return found
