"""The commands by name, the options that come before them, and how an error leaves."""

import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

import muniment.settings
from muniment.cli import (
    backup,
    clients,
    demo,
    directory,
    import_folder,
    initial,
    logs,
    migrating,
    repositories,
    repository,
    said,
    searching,
    serve,
    telling,
    walk,
)
from muniment.cli.opened import Opened
from muniment.cli.outcome import Exit, as_failure
from muniment.cli.repository import called
from muniment.cli.supervisor import Role, supervise

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

for name, commands in {**directory.COMMANDS, **clients.COMMANDS}.items():
    app.add_typer(commands, name=name)
for name, commands in {**repositories.COMMANDS, **repository.COMMANDS}.items():
    app.add_typer(commands, name=name)


app.command("backup")(backup.backup_command)
app.command("restore")(backup.restore_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code: an error is one sentence on standard error, never a trace."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str]) -> int:
    """Run one command and say its exit code."""
    try:
        code = app(_leading(arguments), prog_name="muniment", standalone_mode=False)
    except TyperException as error:
        said.errors.print(_misused(error), markup=False)
        return Exit.USAGE
    except (KeyboardInterrupt, typer.Abort):
        said.errors.print("Stopped.")
        return 130
    except BrokenPipeError:
        return Exit.FAILED
    except Exception as error:
        failure = as_failure(error)
        if failure is None:
            raise
        said.errors.print(f"muniment: {failure.sentence}", markup=False)
        return failure.code
    return code if isinstance(code, int) else Exit.OK


def _version(wanted: bool) -> None:
    if wanted:
        said.line(f"muniment {metadata.version('muniment')}, Python {platform.python_version()}")
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
    context.obj = Opened(data, config, override or [])


@app.command("init")
def init_command(context: typer.Context) -> None:
    """Make the data folder, its databases, the administrator (his password is shown once) and a first repository."""
    opened: Opened = context.obj
    begun = initial.begin(opened)
    if begun.made_folder:
        said.line(f"Made {opened.data}.")
    if begun.password:
        said.line(f"Administrator: {begun.administrator}")
        said.line(f"Password:      {begun.password}")
        said.line("The password is kept as a hash only and not shown again.")
    elif begun.administrator:
        said.line("The directory was initialised before; nothing was changed in it.")
    if begun.repository:
        said.line(
            f"Repository:    {begun.repository}, guarded by the resource {begun.resource!r} ({begun.resource_id})"
        )
    said.line(f"Next: muniment --data {opened.data} serve")


@app.command("serve")
def serve_command(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="Port of the HTTPS listener.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=64, help="Worker processes.")] = None,
    agent: Annotated[bool, typer.Option(help="Also run the index agent and text extraction.")] = True,
) -> int:
    """Serve the data folder until Ctrl-C or SIGTERM."""
    opened: Opened = context.obj
    _listening(opened, host, port, workers)
    initial.must_be_done(opened)
    return serve.run(opened, with_agent=agent)


@app.command("agent")
def agent_command(context: typer.Context) -> int:
    """Run the index agent and text extraction alone, beside servers started with --no-agent."""
    opened: Opened = context.obj
    logs.start(opened.settings)
    with opened.database("repository"):
        installation = opened.installation
    roles = [Role("agent", serve.agent_work(installation)), Role("extraction", serve.extraction_work(installation))]
    return supervise(roles, opened.settings.web.stop_seconds, lambda: None)


@app.command("migrate")
def migrate_command(context: typer.Context) -> None:
    """Bring the databases to this release's schema."""
    opened: Opened = context.obj
    opened.must_exist()
    with opened.held():
        opened.migrate()
        renamed = migrating.settle_acls(opened)
    said.line(f"At this release's schema: {', '.join(opened.settings.halves)}.")
    if renamed:
        said.line("These ACLs are called by their names alone by their owners only; others write what stands here:")
        said.table(
            ("Repository", "Name", "Call it", "Id"), [(of, one.name, called(one), one.shown_id) for of, one in renamed]
        )


@app.command("settings")
def settings_command(
    context: typer.Context,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write docs/settings.md instead.")] = False,
) -> None:
    """Show every setting with the value in force."""
    if markdown:
        sys.stdout.write(muniment.settings.markdown())
        return
    opened: Opened = context.obj
    said.table(("Setting", "Value", "Meaning"), muniment.settings.shown(opened.settings))


app.command("import")(import_folder.import_command)
app.command("search")(searching.search_command)
app.command("demo", hidden=True)(demo.demo_command)
app.command("walk", hidden=True)(walk.walk_command)


for name, commands in {
    "": app,
    **directory.COMMANDS,
    **clients.COMMANDS,
    **repositories.COMMANDS,
    **repository.COMMANDS,
}.items():
    telling.tell(commands, name)


def _listening(opened: Opened, host: str | None, port: int | None, workers: int | None) -> None:
    opened.override("web.host", host)
    opened.override("web.port", port)
    opened.override("web.workers", workers)


def _misused(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().strip()
    if message.startswith("Usage:"):
        return message
    end = "" if message.endswith((".", "?")) else "."
    return f"muniment: {message}{end} See '{context.command_path if context else 'muniment'} --help'."


def _leading(arguments: list[str]) -> list[str]:
    """Move --data, --config and --set before the command's name, so that they may stand anywhere."""
    leading: list[str] = []
    others: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            others += [argument, *left]
        elif argument in {"--data", "--config", "--set"}:
            leading += [argument, *([value] if (value := next(left, None)) is not None else [])]
        elif argument.startswith(("--data=", "--config=", "--set=")):
            leading.append(argument)
        else:
            others.append(argument)
    return leading + others
