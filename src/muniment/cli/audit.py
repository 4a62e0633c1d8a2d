"""A change by the command line leaves one security event: which command, by whom, to what, with which result."""

import functools
import os
import pwd
from collections.abc import Callable, Mapping
from typing import Any

import typer

from muniment.data_folder import DataFolder
from muniment.events import Event, Recorder
from muniment.exit_codes import Exit, as_failure

READING = frozenset(
    {
        "acl list", "agent", "client list", "client sessions", "content check", "demo", "group list", "group members",
        "index check", "index status", "partition list", "repository list", "repository usage", "resource list",
        "resource members",
        "search", "serve", "settings", "type list", "unit list", "user list", "user sessions", "user show", "walk",
    }
)  # fmt: skip
"""The commands that change nothing themselves: no event. Whatever is not listed here is told of."""

_OMISSIONS = {"values", "description", "from_stdin", "random"}
"""Parameters whose values are free text, or say nothing."""


def tell(group: typer.Typer, name: str = "") -> None:
    """Let each command of a group, or of the program itself, that may change something leave an event."""
    for command in group.registered_commands:
        assert command.callback is not None  # noqa: S101 - typer registers functions
        path = f"{name} {command.name}".strip()
        if path not in READING:
            command.callback = _recording(path, command.callback)


def _recording(path: str, command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def run(**given: Any) -> Any:
        data: DataFolder = given["context"].obj
        event = Event("command", who=_user(), origin="command line", on=path, how=_shown(given))
        event.result = "failed"
        try:
            code = command(**given)
        except Exception as error:
            failure = as_failure(error)
            if failure is not None and failure.code != Exit.FAILED:
                event.result = "refused"
            raise
        else:
            event.result = "failed" if isinstance(code, int) and code != Exit.OK else "done"
            return code
        finally:
            if data.path.is_dir():
                recorder = Recorder(data.installation.events, log=False, limited=False)
                recorder.record(event, data.now)

    return run


def _shown(given: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in given.items() if name != "context" and name not in _OMISSIONS}
    return {name: _plain(value) for name, value in shown.items() if value not in (None, "", False, [])}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, bool | int) else str(value)[:500]


def _user() -> str:
    """Name the user of the operating system, whatever the environment says."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
