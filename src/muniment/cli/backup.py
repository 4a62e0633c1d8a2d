"""``muniment backup`` and ``muniment restore``: a copy of a running installation, and its way back."""

from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from muniment import initialise
from muniment.backups import making, restoring
from muniment.cli import terminal
from muniment.clock import timestamp
from muniment.data_folder import DataFolder
from muniment.exit_codes import Exit


def backup_command(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder to make; it must not exist yet, or be empty.")],
) -> int:
    """Copy databases, content, certificates and settings into a new folder, also while a server runs."""
    data: DataFolder = context.obj
    initialise.require_initialised(data)
    with ExitStack() as closing:
        databases = {half: closing.enter_context(data.database(half)) for half in data.settings.halves}
        source = making.BackupSource(data.installation, databases, data.settings_file)
        bar = closing.enter_context(terminal.counting("Copying content", None))
        made = making.make(source, folder, metadata.version("muniment"), lambda: data.now, bar.reach)
    when = timestamp(made.made, precision="seconds")
    terminal.line(f"{folder}: {' and '.join(made.databases)} as of {when}, {made.contents} contents")
    for name in made.external:
        terminal.line(f"Not in it: the file that {name} names; keep that one yourself.")
    return _damage(made.damaged, "was missing or altered already, and is not in the backup")


def restore_command(
    context: typer.Context,
    backup: Annotated[Path, typer.Argument(help="The folder that 'muniment backup' has made.")],
    keep_sessions: Annotated[
        bool, typer.Option("--keep-sessions", help="Let tokens and sign-ins of that time hold again.")
    ] = False,
) -> int:
    """Put a backup into a new data folder, and make its index anew."""
    data: DataFolder = context.obj
    found = restoring.inspect(backup)
    restoring.check_target(data.path)
    data.make_folder()
    with data.held(for_restore=True):
        restoring.check_target(data.path)
        mark = restoring.begin(found, data.path)
        data.read_settings_again()
        with terminal.counting("Restoring", None) as bar:

            def show(_what: str, done: int, total: int) -> None:
                bar.reach(done, total or None)

            restored = restoring.finish(
                found, data.installation, mark, lambda: data.now, show, keep_sessions=keep_sessions
            )
    ended = restored.ended
    terminal.line(f"{data.path}: restored from {backup}, {found.manifest.contents} contents")
    terminal.line(
        "Tokens and sign-ins of that time hold again."
        if keep_sessions
        else f"Ended: {ended.grants} grants and {ended.tickets} browser sign-ins; everybody signs in anew."
    )
    for name in found.manifest.external:
        terminal.line(f"Not in the backup: the file that {name} names; put it there before you serve.")
    return _damage(restored.damaged, "is missing or altered")


def _damage(damaged: tuple[str, ...], what: str) -> int:
    for object_id in damaged:
        terminal.line(f"{object_id}: its content {what}")
    return Exit.FAILED if damaged else Exit.OK
