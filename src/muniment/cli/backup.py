"""``muniment backup`` and ``muniment restore``: a copy of a running installation, and its way back."""

from contextlib import ExitStack
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from muniment.backups import making, restoring
from muniment.cli import initial, said
from muniment.cli.opened import Opened
from muniment.cli.outcome import Exit
from muniment.db import SECOND


def backup_command(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder to make; it must not exist yet, or be empty.")],
) -> int:
    """Copy databases, content, certificates and settings into a new folder, also while a server runs."""
    opened: Opened = context.obj
    initial.must_be_done(opened)
    with ExitStack() as closing:
        databases = {half: closing.enter_context(opened.database(half)) for half in opened.settings.halves}
        source = making.BackupSource(opened.installation, databases, opened.settings_file)
        bar = closing.enter_context(said.counting("Copying content", None))
        made = making.make(source, folder, metadata.version("muniment"), lambda: opened.now, bar.reach)
    when = datetime.fromtimestamp(made.made / SECOND, UTC).isoformat(timespec="seconds")
    said.line(f"{folder}: {' and '.join(made.databases)} as of {when}, {made.contents} contents")
    for name in made.external:
        said.line(f"Not in it: the file that {name} names; keep that one yourself.")
    return _damage(made.damaged, "was missing or altered already, and is not in the backup")


def restore_command(
    context: typer.Context,
    backup: Annotated[Path, typer.Argument(help="The folder that 'muniment backup' has made.")],
    keep_sessions: Annotated[
        bool, typer.Option("--keep-sessions", help="Let tokens and sign-ins of that time hold again.")
    ] = False,
) -> int:
    """Put a backup into a new data folder, and make its index anew."""
    opened: Opened = context.obj
    found = restoring.inspect(backup)
    restoring.check_target(opened.data)
    opened.make_folder()
    with opened.held(for_restore=True):
        restoring.check_target(opened.data)
        mark = restoring.begin(found, opened.data)
        opened.read_settings_again()
        with said.counting("Restoring", None) as bar:

            def show(_what: str, done: int, total: int) -> None:
                bar.reach(done, total or None)

            restored = restoring.finish(
                found, opened.installation, mark, lambda: opened.now, show, keep_sessions=keep_sessions
            )
    ended = restored.ended
    said.line(f"{opened.data}: restored from {backup}, {found.manifest.contents} contents")
    said.line(
        "Tokens and sign-ins of that time hold again."
        if keep_sessions
        else f"Ended: {ended.grants} grants and {ended.tickets} browser sign-ins; everybody signs in anew."
    )
    for name in found.manifest.external:
        said.line(f"Not in the backup: the file that {name} names; put it there before you serve.")
    return _damage(restored.damaged, "is missing or altered")


def _damage(damaged: tuple[str, ...], what: str) -> int:
    for object_id in damaged:
        said.line(f"{object_id}: its content {what}")
    return Exit.FAILED if damaged else Exit.OK
