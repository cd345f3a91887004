"""The demo's stage: a small git project and a home of its own in a temporary folder, and the truth about the project's files.

Also chooses, from the seed, when the daemon dies. Pure but for `build`, `read` and `git`.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from standfast.model.demo_story import PROJECT
from standfast.places import Places, find_places

WRITE_MOMENTS = (
    "before_effect=kill@4",
    "before_exchange=kill@1",
    "after_exchange=kill@1",
    "mid_effect=kill@1",
    "after_exchange=kill@2",
    "after_effect=kill@4",
    "before_result=kill@4",
)
"""Places in the write of two files where the daemon kills itself with SIGKILL (`failpoints`). Three reads come before it."""
WORDS = {
    "before_effect": "the intent is stored, no file is touched yet",
    "before_exchange": "the new content is on the disk, not yet in its place",
    "after_exchange": "a file has just been put in its place",
    "mid_effect": "one of two files is in its place",
    "after_effect": "both files are in their places, nobody was told",
    "before_result": "both files are in their places, the result is not stored",
}
LSP = (sys.executable, "-P", "-m", "standfast", "lsp")
HIDDEN = ("ANTHROPIC_", "FAILPOINTS", "XDG_", "GIT_")
"""The person's own settings stay out of the demo."""


@dataclass(frozen=True, slots=True)
class Moments:
    """When the daemon is killed, and what the person then chooses where there is a choice."""

    write: str
    command_s: float
    """After the command's start."""
    choice: str
    """`complete` or `undo` for a half-done write."""

    @property
    def write_words(self) -> str:
        return WORDS[self.write.split("=")[0]]


def choose(seed: int) -> Moments:
    """The same seed, the same moments. Seeds in a row go through all places of the write."""
    rng = random.Random(seed)
    return Moments(
        WRITE_MOMENTS[seed % len(WRITE_MOMENTS)], round(rng.uniform(0.2, 2.4), 2), rng.choice(("complete", "undo"))
    )


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the demo plays. Everything lies under `folder`."""

    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "shop"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def places(self) -> Places:
        return find_places({"STANDFAST_HOME": str(self.home)})

    def environment(self, failpoints: str = "") -> dict[str, str]:
        """For `standfast lsp` and the daemon that it starts."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(HIDDEN)}
        return {**kept, "STANDFAST_HOME": str(self.home), **({"FAILPOINTS": failpoints} if failpoints else {})}

    def read(self, path: str) -> bytes:
        return (self.project / path).read_bytes()


async def build(folder: Path) -> Stage:
    """Write the project, commit it, and write the configuration that names the scripted model."""
    stage = Stage(folder)
    for path, text in PROJECT.items():
        file = stage.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    stage.home.mkdir(mode=0o700)
    (stage.home / "config.toml").write_text('[model]\nprovider = "scripted"\n\n[daemon]\nidle_exit_s = 60\n')
    await git(stage, "init", "-q", "-b", "main")
    await git(stage, "add", ".")
    await git(stage, "commit", "-q", "-m", "A shop with two bugs")
    return stage


async def git(stage: Stage, *words: str) -> str:
    """Run git in the project, as nobody in particular and without the person's own configuration."""
    env = {
        **stage.environment(), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Demo", "GIT_AUTHOR_EMAIL": "demo@example.org",
        "GIT_COMMITTER_NAME": "Demo", "GIT_COMMITTER_EMAIL": "demo@example.org",
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        "git", *words, cwd=stage.project, env=env, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise OSError(process.returncode, f"git {words[0]} failed")
    return said.decode()


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def patched(path: str, before: str) -> str:
    """What a file is once the story's patch is applied; found here without the patch engine, so that it can judge it."""
    changes = {
        "shop/money.py": (
            "    return int(cents * (100 - percent) / 100)\n",
            "    return (cents * (100 - percent) + 50) // 100\n",
        ),
        "shop/cart.py": (
            "        total = sum(cents for _, cents, _ in self.items)\n",
            "        total = sum(cents * quantity for _, cents, quantity in self.items)\n",
        ),
    }
    old, new = changes[path]
    return before.replace(old, new)


TARGETS = ("shop/money.py", "shop/cart.py")


@dataclass(frozen=True, slots=True)
class FileTruth:
    """What a file is on the disk, by its hash, against what it was and what it was to be."""

    path: str
    before: str
    after: str
    actual: str

    @property
    def state(self) -> str:
        if self.actual == self.before:
            return "not_applied"
        return "applied" if self.actual == self.after else "torn"


def truths(stage: Stage) -> list[FileTruth]:
    """Look at the files themselves; asks nobody."""
    return [
        FileTruth(
            path,
            digest(PROJECT[path].encode()),
            digest(patched(path, PROJECT[path]).encode()),
            digest(stage.read(path)),
        )
        for path in TARGETS
    ]


def truth_of(files: list[FileTruth]) -> str:
    """The one word for all files together, as a verdict would say it."""
    states = {file.state for file in files}
    if "torn" in states:
        return "diverged"
    return states.pop() if len(states) == 1 else "partial"
