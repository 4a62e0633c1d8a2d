"""Every command by its name, the options that come before it, and how an error becomes a message and an exit code.

Usually only the module of the command that runs is loaded: to load all takes longer than most commands.
"""

import gc
import platform
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import structlog
import typer
from typer.exceptions import TyperException

from muniment.cli import terminal
from muniment.cli.running import Group
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, as_failure

_MODULES = {
    "backup": ("backup", "restore"),
    "data_folder": ("init", "serve", "agent", "migrate", "settings"),
    "repository.importing": ("import",),
    "repository.search": ("search",),
    "completion": ("completion",),
    "demo.data": ("demo",),
    "demo.tour": ("tour",),
    "directory.partitions": ("partition", "unit"),
    "directory.users": ("user", "session"),
    "directory.groups": ("group",),
    "directory.clients": ("client",),
    "directory.resources": ("resource",),
    "directory.system": ("system",),
    "directory.keys": ("key",),
    "repository.repositories": ("repository",),
    "repository.types": ("type",),
    "repository.acls": ("acl",),
    "repository.objects": ("object",),
    "repository.wastebasket": ("wastebasket",),
    "repository.index": ("index",),
    "repository.content": ("content",),
}

_HIDDEN = {"demo", "tour"}

_UNRECORDED = {"agent", "completion", "demo", "search", "serve", "settings", "tour"}

_OF_ALL_COMMANDS = {"completion"}


def main(arguments: Sequence[str] | None = None) -> None:
    """A known failure prints one sentence; only a bug prints a traceback."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that the locale cannot write ends no command
    # The server sends its log there, too. Without this, the log lines of a command stand among what it prints.
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    program(_command(given))
    gc.freeze()  # what is loaded by now never becomes garbage
    gc.enable()
    sys.exit(run(given))


def run(arguments: list[str]) -> int:
    try:
        leading, following = _global_options_first(arguments)
        code = program(_command(arguments))([*leading, *following], prog_name="muniment", standalone_mode=False)
    except TyperException as error:
        terminal.errors.print(_usage_error(error))
        return Exit.USAGE
    except (KeyboardInterrupt, typer.Abort):
        terminal.errors.print("Stopped.")
        return 130
    except BrokenPipeError:
        return Exit.FAILED
    except Exception as error:
        failure = as_failure(error)
        if failure is None:
            raise
        terminal.errors.print(terminal.harmless(f"muniment: {failure.sentence}"))
        return failure.code
    return code if isinstance(code, int) else Exit.OK


def program(word: str = "") -> typer.Typer:
    module = next((module for module, names in _MODULES.items() if word in names and word not in _OF_ALL_COMMANDS), "")
    app = Group(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_start)
    for each in [module] if module else _MODULES:
        loaded = import_module(f"muniment.cli.{each}")
        for name in _MODULES[each]:
            if commands := getattr(loaded, f"{name}_commands", None):
                app.add_typer(commands, name=name)
            else:
                command = getattr(loaded, f"{name}_command")
                app.acts(name, recorded=name not in _UNRECORDED, hidden=name in _HIDDEN)(command)
    return app


def _version(is_wanted: bool) -> None:
    if is_wanted:
        terminal.line(f"muniment {metadata.version('muniment')}, Python {platform.python_version()}")
        raise typer.Exit


def _start(
    context: typer.Context,
    data: Annotated[Path, typer.Option(envvar="MUNIMENT_DATA", help="The data folder.")] = Path("muniment-data"),
    config: Annotated[
        Path | None,
        typer.Option(envvar="MUNIMENT_CONFIG", help="The settings file; otherwise muniment.toml in the data folder."),
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set one setting; may be repeated.")
    ] = None,
    _version_wanted: Annotated[
        bool, typer.Option("--version", help="Say which release this is.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """A directory that says who may enter, and a repository that says what is held and how it is found."""
    context.obj = DataFolder(data, config, override or [])


def _usage_error(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().strip()
    if message.startswith("Usage:"):
        return message
    end = "" if message.endswith((".", "?")) else "."
    return f"muniment: {message}{end} See '{context.command_path if context else 'muniment'} --help'."


def _command(arguments: list[str]) -> str:
    """Name the command or the group of the arguments; empty for none."""
    _, following = _global_options_first(arguments)
    return next((argument for argument in following if not argument.startswith("-")), "")


def _global_options_first(arguments: list[str]) -> tuple[list[str], list[str]]:
    leading: list[str] = []
    following: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            following += [argument, *remaining]
        elif argument in {"--data", "--config", "--set"}:
            leading += [argument, *([value] if (value := next(remaining, None)) is not None else [])]
        elif argument.startswith(("--data=", "--config=", "--set=")):
            leading.append(argument)
        else:
            following.append(argument)
    return leading, following
