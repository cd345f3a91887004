"""The commands and their options, in one table; each loads its module only when it is called."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from standfast import __version__
from standfast.cli import output
from standfast.cli.door import Door
from standfast.errors import StandfastError

app = typer.Typer(
    help="A coding agent that survives kill -9 and loses nobody's edit.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
daemon = typer.Typer(help="The one process behind all editors: start, stop, look.", no_args_is_help=True)
app.add_typer(daemon, name="daemon")

AsJson = Annotated[bool, typer.Option("--json", help="For scripts.")]


def main(words: list[str], door: Door) -> int:
    """Carry out one command; returns its exit code and never raises."""
    try:
        result = get_command(app)(words, standalone_mode=False, obj=door, prog_name="standfast")
    except StandfastError as error:
        output.complain(error, as_json="--json" in words)
        return output.ERROR
    except (typer.Abort, KeyboardInterrupt, asyncio.CancelledError):
        return output.INTERRUPTED
    except typer.Exit as exit_:
        return exit_.exit_code
    except OSError as error:
        output.complain(_system_error(error), as_json="--json" in words)
        return output.ERROR
    except Exception as error:  # noqa: BLE001 - the top: a person never meets a traceback
        return _usage_error(error)
    return result if isinstance(result, int) else output.DONE


def _usage_error(error: Exception) -> int:
    """click's own errors know how to show themselves; anything else is a defect and is said as one."""
    show = getattr(error, "show", None)
    if callable(show):
        show()
        return output.ERROR
    output.complain(
        StandfastError(
            "Defect",
            f"This should not happen ({type(error).__name__}: {error}). Your sessions are safe. Please report it.",
        )
    )
    return output.ERROR


def _system_error(error: OSError) -> StandfastError:
    where = f" ({error.filename})" if error.filename else ""
    return StandfastError("SystemError", f"{error.strerror or error}{where}. Nothing was changed.")


def _run(work: Coroutine[Any, Any, int]) -> int:
    return asyncio.run(work)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        output.out.print(f"standfast {__version__}")
        raise typer.Exit


@app.command(help="What an editor starts: the language server on stdin and stdout.")
def lsp() -> int:
    raise StandfastError("Usage", "`standfast lsp` takes no options.")  # `__main__` serves the plain form


@app.command("apply-patch", help="Apply a patch from stdin to a folder. Needs no daemon.")
def apply_patch() -> int:
    raise StandfastError("Usage", "See `standfast apply-patch --help`.")  # `__main__` serves it


@daemon.command("start", help="Start it if it is not running; returns when its socket answers.")
def daemon_start(ctx: typer.Context, as_json: AsJson = False) -> int:
    from standfast.cli import daemon_commands

    return _run(daemon_commands.start(ctx.obj, as_json=as_json))


@daemon.command("stop", help="End it in order. While a run goes on it needs --wait (for an upgrade) or --force.")
def daemon_stop(
    ctx: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Interrupt runs; they can be resumed.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Let runs come to their end first.")] = False,
) -> int:
    from standfast.cli import daemon_commands

    return _run(daemon_commands.stop(ctx.obj, force=force, wait=wait))


@daemon.command("status", help="Show it. Without a daemon: exit code 3, and none is started.")
def daemon_status(ctx: typer.Context, as_json: AsJson = False) -> int:
    from standfast.cli import daemon_commands

    return _run(daemon_commands.status(ctx.obj, as_json=as_json))


@app.command(help="List the sessions, newest first.")
def sessions(
    ctx: typer.Context,
    as_json: AsJson = False,
    all_: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    statistics: Annotated[bool, typer.Option("--statistics", help="Runs, tokens and what they cost instead.")] = False,
) -> int:
    from standfast.cli import session_commands, statistics_command

    if statistics:
        return _run(statistics_command.statistics(ctx.obj, as_json=as_json))
    return _run(session_commands.sessions(ctx.obj, archived=all_, as_json=as_json))


@app.command(help="Show a session's history.")
def show(ctx: typer.Context, session: str, as_json: AsJson = False) -> int:
    from standfast.cli import session_commands

    return _run(session_commands.show(ctx.obj, session, as_json=as_json))


@app.command(help="Send a message and follow the run. In ask mode it needs a terminal, to ask on.")
def run(
    ctx: typer.Context,
    text: Annotated[list[str], typer.Argument(help="What the agent is to do.")],
    session: Annotated[str | None, typer.Option("--session", help="Go on with this session.")] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="plan, ask, edit or auto.")] = None,
    workspace: Annotated[Path | None, typer.Option("--workspace", help="Folder of a new session.")] = None,
) -> int:
    from standfast.cli import run_command

    wanted = run_command.Wanted(" ".join(text), session, mode, (workspace or Path.cwd()).absolute())
    return _run(run_command.run(ctx.obj, wanted))


@app.command(help="Show what happens in all sessions.")
def events(
    ctx: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until interrupted.")] = False,
    session: Annotated[str | None, typer.Option("--session", help="Only this one.")] = None,
    as_json: AsJson = False,
) -> int:
    from standfast.cli import event_commands

    return _run(event_commands.events(ctx.obj, session, follow=follow, as_json=as_json))


@app.command(help="Check the store, with or without a daemon.")
def doctor(
    ctx: typer.Context,
    as_json: AsJson = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the tables anew from the log.")] = False,
    restore: Annotated[Path | None, typer.Option("--restore", help="Put a backup in the store's place.")] = None,
) -> int:
    from standfast.cli import doctor_command

    return _run(doctor_command.doctor(ctx.obj, rebuild=rebuild, restore=restore, as_json=as_json))


@app.command(help="Write a session into a folder as JSONL.")
def export(ctx: typer.Context, session: str, directory: Path) -> int:
    from standfast.cli import session_commands

    return _run(session_commands.export(ctx.obj, session, directory.absolute()))


@app.command(
    "import", help="Take sessions in: exported ones, or Codex', Claude Code's and pi's files, also a folder of them."
)
def import_(
    ctx: typer.Context,
    paths: list[Path],
    force: Annotated[bool, typer.Option("--force", help="Also a history that was damaged.")] = False,
    as_json: AsJson = False,
) -> int:
    from standfast.cli import import_command

    return _run(import_command.import_(ctx.obj, [path.absolute() for path in paths], force=force, as_json=as_json))


@app.command(help="Store the key of the model's service, readable by you only.")
def login(ctx: typer.Context, remove: Annotated[bool, typer.Option("--remove", help="Forget it.")] = False) -> int:
    from standfast.cli import login_command

    return _run(login_command.login(ctx.obj, remove=remove))


@app.command(help="See it survive: a small project, a scripted model, two kills.")
def demo(
    ctx: typer.Context,
    as_json: AsJson = False,
    seed: Annotated[int, typer.Option("--seed", help="Chooses the moments of the kills.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the project and the logs.")] = False,
) -> int:
    from standfast.cli.demo.play import play

    return _run(play(ctx.obj, seed=seed, as_json=as_json, keep=keep))
