"""``muniment backup`` and ``muniment restore``: copy a running installation, and put the copy back."""

from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from muniment.cli import terminal
from muniment.ground.clock import timestamp
from muniment.installation import initialise
from muniment.installation.backups import making, restoring
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit

_DIALECTS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def backup_command(
    data: DataFolder,
    folder: Annotated[Path, typer.Argument(help="The folder to make; it must not exist yet, or be empty.")],
) -> int:
    """Copy databases, content, certificates and settings into a new folder. A server may run meanwhile."""
    initialise.require_initialised(data)
    with ExitStack() as closing:
        databases = {half: closing.enter_context(data.database(half)) for half in data.settings.halves}
        source = making.BackupSource(data.installation, databases, data.settings_file)
        bar = closing.enter_context(terminal.Counting("Copying content", None))
        manifest = making.make(source, folder, metadata.version("muniment"), lambda: data.now, bar.reach)
    when = timestamp(manifest.taken_at, precision="seconds")
    kinds = (f"{half} ({_DIALECTS[copy.dialect]})" for half, copy in manifest.databases.items())
    terminal.line(f"{folder}: the databases {' and '.join(kinds)} as of {when}, {manifest.contents} contents")
    for name in manifest.external:
        terminal.line(f"Not in it: {_external(name)}. Copy what is not in it yourself.")
    return _damage(manifest.damaged, "was missing or altered before the backup, and is not in it")


def restore_command(
    data: DataFolder,
    backup: Annotated[Path, typer.Argument(help="The folder that 'muniment backup' has made.")],
    keep_sessions: Annotated[
        bool, typer.Option("--keep-sessions", help="Let the tokens and sign-ins of the backup hold again.")
    ] = False,
) -> int:
    """Put a backup into a new data folder, and rebuild the index of each repository."""
    source = restoring.inspect(backup)
    restoring.check_target(data.path)
    data.make_folder()
    with data.lock(for_restore=True):
        restoring.check_target(data.path)
        mark = restoring.begin(source, data.path)
        data.read_settings_again()
        with terminal.Counting("Restoring", None) as bar:

            def show(_what: str, count: int, total: int) -> None:
                bar.reach(count, total or None)

            result = restoring.finish(
                source, data.installation, mark, lambda: data.now, show, keep_sessions=keep_sessions
            )
    sessions = result.sessions
    terminal.line(f"{data.path}: restored from {backup}, {source.manifest.contents} contents")
    terminal.line(
        "The tokens and sign-ins of the backup hold again."
        if keep_sessions
        else f"Ended: {sessions.grants} grants and {sessions.tickets} browser sign-ins; everybody signs in again."
    )
    for name in source.manifest.external:
        terminal.line(f"Not in the backup: {_external(name)}. Put it in its place before you serve.")
    return _damage(result.damaged, "is missing or altered")


def _external(name: str) -> str:
    if name.endswith("_database"):
        return (
            f"files, such as certificates or a file of passwords, that the address in the setting {name} names; "
            "the database itself is in it"
        )
    return f"the file that the setting {name} names"


def _damage(damaged_ids: tuple[str, ...], what: str) -> int:
    for object_id in damaged_ids:
        terminal.line(f"{object_id}: its content {what}")
    return Exit.FAILED if damaged_ids else Exit.OK
