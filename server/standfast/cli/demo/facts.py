"""What the demo found out, as values: printed for people by `screen`, as JSON for scripts. `ok` is judged here, by hashes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from standfast.cli.demo.stage import FileTruth, truth_of

Json = dict[str, Any]


@dataclass(slots=True)
class Kill:
    """One SIGKILL and what came of it."""

    during: str
    moment: str
    pid_before: int
    pid_after: int = 0
    files: list[FileTruth] = field(default_factory=list[FileTruth])
    """The files right after the kill, before anybody touched them."""
    call: Json = field(default_factory=dict[str, Any])
    """The call as `recovery.calls` shows it first."""
    verdicts: list[str] = field(default_factory=list[str])
    diagnostics: list[Json] = field(default_factory=list[Json])
    """{file, line (from 1), code, message}"""
    actions: list[str] = field(default_factory=list[str])
    choice: str | None = None

    @property
    def verdict(self) -> str:
        return self.verdicts[0] if self.verdicts else ""

    @property
    def torn(self) -> bool:
        return any(file.state == "torn" for file in self.files)

    @property
    def truth(self) -> str:
        """Of a write: what the hashes say. Of a command: that it was still running, or had ended."""
        if self.during == "write":
            return truth_of(self.files)
        return self.verdict if self.verdict in ("running", "finished") else "running or finished"

    @property
    def agrees(self) -> bool:
        each = {target.get("uri", "").rsplit("/", 1)[-1]: target["verdict"] for target in self.call.get("targets", [])}
        files_agree = all(each.get(file.path.rsplit("/", 1)[-1]) == file.state for file in self.files)
        return self.verdict == self.truth and files_agree and self.pid_before != self.pid_after and not self.torn

    def json(self) -> Json:
        return {
            "during": self.during,
            "moment": self.moment,
            "pidBefore": self.pid_before,
            "pidAfter": self.pid_after,
            "verdict": self.verdict,
            "verdicts": self.verdicts,
            "truth": self.truth,
            "agrees": self.agrees,
            "torn": self.torn,
            "evidence": self.call.get("evidence", ""),
            "targets": self.call.get("targets", []),
            "files": [
                {
                    "path": file.path,
                    "before": file.before,
                    "after": file.after,
                    "actual": file.actual,
                    "state": file.state,
                }
                for file in self.files
            ],
            "diagnostics": self.diagnostics,
            "actions": self.actions,
            "choice": self.choice,
        }


@dataclass(slots=True)
class Facts:
    """The whole demo."""

    seed: int
    session_id: str = ""
    kills: list[Kill] = field(default_factory=list[Kill])
    run_status: str = ""
    tests_passed: bool = False
    final_diff: str = ""
    files: list[FileTruth] = field(default_factory=list[FileTruth])
    quiet_after_crash: bool = True
    """Between each reattach and the person's choice nothing reached the model and no tool ran."""

    @property
    def ok(self) -> bool:
        return (
            len(self.kills) == 2
            and all(kill.agrees for kill in self.kills)
            and self.quiet_after_crash
            and self.run_status == "succeeded"
            and self.tests_passed
            and all(file.state == "applied" for file in self.files)
        )

    def json(self) -> Json:
        return {
            "ok": self.ok,
            "seed": self.seed,
            "model": "scripted",
            "sessionId": self.session_id,
            "pids": [self.kills[0].pid_before, *(kill.pid_after for kill in self.kills)] if self.kills else [],
            "torn": any(kill.torn for kill in self.kills),
            "kills": [kill.json() for kill in self.kills],
            "quietAfterCrash": self.quiet_after_crash,
            "runStatus": self.run_status,
            "testsPassed": self.tests_passed,
            "finalDiff": self.final_diff,
        }
