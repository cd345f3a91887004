"""What the demo prints: chapters, a timeline, and after each kill the verdicts, diagnostics and actions. Shows; decides nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from standfast.cli.client import Json
from standfast.cli.demo.facts import Facts, Kill
from standfast.cli.output import plain
from standfast.cli.wording import VERDICT_STYLE, call_words

WHO_STYLE = {"you": "bold cyan", "agent": "bold", "tool": "blue", "daemon": "magenta", "editor": "cyan", "tests": "dim"}
READS = frozenset({"read_file", "list_files", "search"})
SHORT = 12
"""Characters of a hash that are shown."""


@dataclass(slots=True)
class Screen:
    """Prints to a terminal, plain when piped; prints nothing when `silent` (for --json)."""

    silent: bool
    console: Console = field(default_factory=lambda: Console(highlight=False))
    _begun: float = field(default_factory=time.monotonic)
    _chapter: int = 0
    _reading: dict[str, str] = field(default_factory=dict[str, str])
    """callId → what it is called, for reads that have no result yet."""

    def title(self, seed: int) -> None:
        self._print(
            Panel(
                Text.assemble(
                    ("Standfast", "bold"), " · demo · ", (f"seed {seed}", "dim"), "\n\n",
                    "The model is ", ("scripted", "bold yellow"),
                    ": no key, no network, no tokens. Everything else is real: the daemon, the editor protocol over "
                    "`standfast lsp`, the files, git, the processes, and the SIGKILLs.",
                ),
                padding=(1, 2),
            )
        )  # fmt: skip

    def chapter(self, title: str) -> None:
        self._chapter += 1
        self._print("")
        self._print(Rule(Text.assemble((f"{self._chapter}  ", "bold"), (title, "bold")), align="left", style="dim"))

    def line(self, who: str, what: str | Text, style: str = "") -> None:
        """One line of the timeline."""
        words = Text(plain(what), style=style) if isinstance(what, str) else what
        row = Table.grid(padding=(0, 2))
        row.add_column(width=8, justify="right", style="dim")
        row.add_column(width=6, style=WHO_STYLE.get(who, ""))
        row.add_column(overflow="fold")
        row.add_row(f"{time.monotonic() - self._begun:.2f} s", who, words)
        self._print(row)

    def event(self, event: Json) -> None:
        """A recorded event, if it is one that people follow."""
        match event["type"]:
            case "user_message":
                self.line("you", " ".join(part["text"] for part in event["content"]))
            case "assistant_message":
                for block in event["blocks"]:
                    if block["type"] == "text":
                        self.line("agent", block["text"])
            case "tool_call":
                self._call(event)
            case "tool_output":
                for text in event["text"].splitlines():
                    if text.strip():
                        self.line("tests", text)
            case "tool_result":
                self._result(event)
            case "tool_recovery":
                self.line("daemon", Text.assemble("the call is ", _verdict(event["status"])))
            case "run_finished":
                self.line("agent", Text.assemble("the run has ended: ", (event["status"], "bold")))
            case _:
                pass

    def _call(self, event: Json) -> None:
        """What only reads is told in one line, with its result."""
        words = call_words(event["tool"], event["args"])
        if event["tool"] in READS:
            self._reading[event["callId"]] = words
        else:
            self.line("tool", words)

    def _result(self, event: Json) -> None:
        style = "green" if event["status"] == "ok" else "yellow"
        code = "" if event.get("exitCode") is None else f", exit code {event['exitCode']}"
        recovered = ", found after the crash" if event.get("recovered") else ""
        words = plain(self._reading.pop(event["callId"], ""))
        self.line(
            "tool",
            Text.assemble(f"{words} " if words else "", ("→ ", "dim"), (event["status"], style), code, recovered),
        )

    def permission(self, permission: Json) -> None:
        self.line("you", Text.assemble(("allow? ", "yellow"), plain(permission["summary"]), ("  yes", "green")))
        for changed in permission["files"]:
            if changed.get("diff"):
                self.diff(changed["diff"])

    def kill(self, kill: Kill, words: str) -> None:
        self.line("", Text.assemble(("✗ SIGKILL ", "bold red"), f"daemon {kill.pid_before}: ", (words, "red")))

    def verdict(self, kill: Kill) -> None:
        """The verdict, beside what the disk itself says."""
        self._print("")
        self._indent(_files_table(kill) if kill.files else _commands_table(kill))
        self._print("")
        self._indent(Text.assemble(("evidence  ", "dim"), plain(str(kill.call.get("evidence", "")))))
        self._indent(Text.assemble(("verdict   ", "dim"), _verdict(kill.verdict), "  ", _judged(kill)))

    def attention(self, kill: Kill) -> None:
        """What the editor shows: diagnostics by place, and what can be done."""
        self._print("")
        self._indent(Text("in the editor", "dim"))
        for one in kill.diagnostics:
            place = f"{one['file']}:{one['line']}"
            self._indent(
                Text.assemble((place, "cyan"), "  ", (one["code"], "bold yellow"), "  ", plain(one["message"]))
            )
        for action in kill.actions:
            chosen = action == kill.choice
            self._indent(
                Text.assemble(("▸ " if chosen else "  ", "bold green"), (plain(action), "bold" if chosen else ""))
            )
        self._print("")

    def diff(self, text: str) -> None:
        self._indent(Syntax(plain(text.rstrip("\n")), "diff", background_color="default", word_wrap=True), 18)

    def end(self, facts: Facts) -> None:
        self._print("")
        good = Text.assemble(
            ("Two kills, no torn file, no wrong verdict, nothing done twice.", "bold green"), "\n",
            "After each crash nothing was sent to the model and nothing ran until the person chose. "
            "The model was scripted; with a key, `standfast run` and your editor do the same with a real one.",
        )  # fmt: skip
        bad = Text("The demo did not end as it should. --json shows the facts; please report them.", "bold red")
        self._print(Panel(good if facts.ok else bad, padding=(1, 2)))
        self._print(Text("\nThe difference in the end\n", "bold"))
        self._print(Syntax(facts.final_diff.rstrip("\n"), "diff", background_color="default", word_wrap=True))

    def _indent(self, what: Text | Table | Syntax, by: int = 10) -> None:
        self._print(Padding(what, (0, 0, 0, by)))

    def _print(self, what: object) -> None:
        if not self.silent:
            self.console.print(what)


def _files_table(kill: Kill) -> Table:
    """Each file: what the verdict says, and its hash beside the two that it could have."""
    table = _table("file", "verdict", "sha256 on disk", "before", "intended")
    for file in kill.files:
        told = next((t["verdict"] for t in kill.call.get("targets", []) if t.get("uri", "").endswith(file.path)), "?")
        hashes = (Text(file.actual[:SHORT]), _hash(file.before, file.actual), _hash(file.after, file.actual))
        table.add_row(file.path, _verdict(told), *hashes)
    return table


def _commands_table(kill: Kill) -> Table:
    table = _table("command", "verdict")
    for target in kill.call.get("targets", []):
        table.add_row(plain(str(target.get("command"))), _verdict(target["verdict"]))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column)
    return table


def _judged(kill: Kill) -> tuple[str, str]:
    """Whether the demo, which looked by itself, comes to the same."""
    if not kill.agrees:
        return ("the verdict is WRONG", "bold red")
    return ("and so says the disk" if kill.files else "by the record that its supervisor keeps", "green")


def _verdict(word: str) -> Text:
    return Text(word.replace("_", " "), VERDICT_STYLE.get(word, ""))


def _hash(expected: str, actual: str) -> Text:
    return Text(expected[:SHORT], "green" if expected == actual else "dim")
