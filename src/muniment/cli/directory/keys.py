"""Commands about the keys with which tokens are signed."""

import time
from typing import Annotated, get_args

import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.directory.entries import describe_ended
from muniment.cli.running import Group, Rows
from muniment.directory.administration import key_decisions
from muniment.directory.entries import system
from muniment.directory.oauth import signing_keys
from muniment.ground.clock import timestamp
from muniment.installation.data_folder import DataFolder

key_commands = Group("directory", help="The keys with which tokens are signed.")


@key_commands.reads("list", "Key", "Algorithm", "Made", "Signs from", "Retired")
def list_keys(cx: Connection) -> Rows:
    """List the keys: those that sign, those that will, and those whose tokens may still live."""
    return [
        (
            key.kid,
            key.algorithm,
            timestamp(key.created),
            timestamp(key.signs_from),
            None if key.retired is None else timestamp(key.retired),
        )
        for key in signing_keys.every(cx)
    ]


@key_commands.acts("rotate")
def rotate_keys(
    data: DataFolder,
    at_once: Annotated[
        bool,
        typer.Option("--now", help="A key may be in the wrong hands: the new ones sign at once, and every grant ends."),
    ] = False,
) -> None:
    """Make new keys, without a restart and without a failed request: servers know each before it is used."""
    new_keys = [signing_keys.generate(algorithm) for algorithm in get_args(signing_keys.Algorithm)]
    with data.begin("directory") as cx:
        key_decisions.prepare(cx)
    if not at_once:
        time.sleep(2 * system.READ_AGAIN_SECONDS)
    with data.begin("directory") as cx:
        made, ended = key_decisions.rotate(cx, new_keys, data.now, at_once=at_once)
    terminal.line(f"The new keys sign from {timestamp(made[0].signs_from)} on. {describe_ended(ended)}".strip())
