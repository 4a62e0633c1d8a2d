"""Every command by its name, the options that come before it, and how an error becomes a message and an exit code."""

import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

import muniment.settings
from muniment import initialise
from muniment.cli import audit, backup, completion, terminal
from muniment.cli.demo import data as demo
from muniment.cli.demo import walk
from muniment.cli.directory import clients, groups, partitions, resources, system, users
from muniment.cli.repository import acls, importing, index, objects, repositories, search, types
from muniment.cli.repository.acls import callable_name
from muniment.data_folder import DataFolder
from muniment.exit_codes import Exit, as_failure
from muniment.server import logs, serve
from muniment.server.supervisor import Role, supervise

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

_ROOMS = (
    *(partitions, users, groups, clients, resources, system),
    *(repositories, types, objects, acls, index),
)
_GROUPS = {name: commands for room in _ROOMS for name, commands in room.COMMANDS.items()}

for name, commands in _GROUPS.items():
    app.add_typer(commands, name=name)


app.command("backup")(backup.backup_command)
app.command("restore")(backup.restore_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code. An error is one sentence on standard error, never a trace."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        code = app(_global_options_first(arguments), prog_name="muniment", standalone_mode=False)
    except TyperException as error:
        terminal.errors.print(_usage_error(error), markup=False)
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
        terminal.errors.print(f"muniment: {failure.sentence}", markup=False)
        return failure.code
    return code if isinstance(code, int) else Exit.OK


def _version(is_wanted: bool) -> None:
    if is_wanted:
        terminal.line(f"muniment {metadata.version('muniment')}, Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def start(
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


@app.command("init")
def init_command(context: typer.Context) -> None:
    """Make a data folder with an administrator, whose password is shown once, and a first repository."""
    data: DataFolder = context.obj
    initialisation = initialise.run(data)
    if initialisation.is_new_folder:
        terminal.line(f"Made {data.path}.")
    if initialisation.password:
        terminal.line(f"Administrator: {initialisation.administrator}")
        terminal.line(f"Password:      {initialisation.password}")
        terminal.line("Only a hash of the password is stored; the password is not shown again.")
    elif initialisation.administrator:
        terminal.line("The directory had been initialised before; nothing in it was changed.")
    if initialisation.repository:
        terminal.line(
            f"Repository:    {initialisation.repository}, guarded by the resource {initialisation.resource!r} "
            f"({initialisation.resource_id})"
        )
    if initialisation.password and initialisation.repository and not data.settings.repository.basic_client:
        terminal.line(
            f'HTTP Basic:    off; the setting repository.basic_client = "{initialise.BASIC_CLIENT}" offers it'
        )
    terminal.line(f"Next: muniment --data {data.path} serve")


@app.command("serve")
def serve_command(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="Port of the HTTPS listener.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=64, help="Worker processes.")] = None,
    agent: Annotated[bool, typer.Option(help="Also run the index agent and text extraction.")] = True,
) -> int:
    """Serve the data folder until Ctrl-C or SIGTERM."""
    data: DataFolder = context.obj
    _override_listener(data, host, port, workers)
    initialise.require_initialised(data)
    return serve.run(data, with_agent=agent)


@app.command("agent")
def agent_command(context: typer.Context) -> int:
    """Run the index agent and text extraction alone, beside servers started with --no-agent."""
    data: DataFolder = context.obj
    logs.start(data.settings)
    with data.database("repository"):
        installation = data.installation
    roles = [Role("agent", serve.agent_work(installation)), Role("extraction", serve.extraction_work(installation))]
    return supervise(roles, data.settings.web.stop_seconds, lambda: None)


@app.command("migrate")
def migrate_command(context: typer.Context) -> None:
    """Bring the databases to this release's schema."""
    data: DataFolder = context.obj
    data.must_exist()
    with data.lock():
        data.migrate()
        renamed_acls = data.settle_acls()
    terminal.line(f"At this release's schema: {', '.join(data.settings.halves)}.")
    if renamed_acls:
        terminal.line(
            "Now these bare ACL names mean the ACL to its owner only. Others call the ACL as the table shows:"
        )
        terminal.table(
            ("Repository", "Name", "Call it", "Id"),
            [(repository_name, acl.name, callable_name(acl), acl.shown_id) for repository_name, acl in renamed_acls],
        )


@app.command("settings")
def settings_command(
    context: typer.Context,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write docs/settings.md instead.")] = False,
    as_json: terminal.AsJson = False,
    header: terminal.WithHeader = None,
) -> None:
    """Show every setting with the value in force."""
    if markdown:
        sys.stdout.write(muniment.settings.markdown())
        return
    data: DataFolder = context.obj
    rows = muniment.settings.values_in_force(data.settings)
    terminal.table(("Setting", "Value", "Meaning"), rows, as_json=as_json, header=header)


app.command("import")(importing.import_command)
app.command("search")(search.search_command)
app.command("completion")(completion.completion_command)
app.command("demo", hidden=True)(demo.demo_command)
app.command("walk", hidden=True)(walk.walk_command)


for name, commands in {"": app, **_GROUPS}.items():
    audit.audit_commands(commands, name)


def _override_listener(data: DataFolder, host: str | None, port: int | None, workers: int | None) -> None:
    data.override("web.host", host)
    data.override("web.port", port)
    data.override("web.workers", workers)


def _usage_error(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().strip()
    if message.startswith("Usage:"):
        return message
    end = "" if message.endswith((".", "?")) else "."
    return f"muniment: {message}{end} See '{context.command_path if context else 'muniment'} --help'."


def _global_options_first(arguments: list[str]) -> list[str]:
    """Move --data, --config and --set before the command's name, so that a caller may write them anywhere."""
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
    return leading + following
