"""Commands about the data folder: make it, serve it, run its agent, migrate it, show its settings."""

import sys
from typing import Annotated

import typer

import muniment.installation.settings
from muniment.cli import terminal
from muniment.installation import initialise
from muniment.installation.data_folder import DataFolder
from muniment.server import logs, serve
from muniment.server.supervisor import supervise


def init_command(data: DataFolder) -> None:
    """Make a data folder with an administrator, whose password is shown once, and a first repository."""
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


def serve_command(
    data: DataFolder,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="Port of the HTTPS listener.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=64, help="Worker processes.")] = None,
    agent: Annotated[bool, typer.Option(help="Also run the index agent and text extraction.")] = True,
) -> int:
    """Serve the data folder until Ctrl-C or SIGTERM."""
    data.override("web.host", host)
    data.override("web.port", port)
    data.override("web.workers", workers)
    initialise.require_initialised(data)
    return serve.run(data, with_agent=agent)


def agent_command(data: DataFolder) -> int:
    """Run the index agent, text extraction and the embedder without a server. Start the servers with --no-agent."""
    logs.start(data.settings)
    with data.database("repository"):
        installation = data.installation
    return supervise(serve.agents(installation), data.settings.web.stop_seconds, lambda: None)


def migrate_command(data: DataFolder) -> None:
    """Bring the databases to this release's schema."""
    initialise.require_initialised(data)
    with data.lock():
        data.migrate()
        new_client = initialise.ensure_search_client(data)
    terminal.line(f"At this release's schema: {', '.join(data.settings.halves)}.")
    if new_client:
        terminal.line(f"Made the client {new_client}, by which the search page signs people in.")


def settings_command(
    data: DataFolder,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the text of docs/settings.md instead.")] = False,
    as_json: terminal.AsJson = False,
    header: terminal.WithHeader = None,
) -> None:
    """Show every setting with the value in force."""
    if markdown:
        sys.stdout.write(muniment.installation.settings.markdown())
        return
    rows = muniment.installation.settings.values_in_force(data.settings)
    terminal.table(("Setting", "Value", "Meaning"), rows, as_json=as_json, header=header)
