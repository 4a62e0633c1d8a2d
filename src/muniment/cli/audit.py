"""Who runs a command? Its decisions are theirs, and most commands that may change something leave a security event:
which command, who ran it, with which result.
"""

import functools
import os
import pwd
from collections.abc import Callable, Mapping
from typing import Any

import typer

from muniment.database.audit import Actor
from muniment.ground.events import Event, Recorder
from muniment.ground.naming import make_storable
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, as_failure

_PLACE = "command line"
_OMISSIONS = {"value", "values", "description", "properties", "from_stdin", "random"}


def recording(command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def run(context: typer.Context, **arguments: Any) -> Any:
        data: DataFolder = context.obj
        path = context.command_path.partition(" ")[2]
        event = Event("command", who=operator().who, origin=operator().place, on=path, how=_details(arguments))
        event.result = "failed"
        try:
            code = command(context, **arguments)
        except Exception as error:
            failure = as_failure(error)
            if failure is not None and failure.code != Exit.FAILED:
                event.result = "refused"
            raise
        else:
            event.result = "failed" if isinstance(code, int) and code != Exit.OK else "done"
            return code
        finally:
            # A command that was refused leaves no file in a folder that is no data folder.
            own_files = data.installation.events, data.installation.lock, data.path / data.settings_file.name
            if data.path.is_dir() and (event.result == "done" or any(file.exists() for file in own_files)):
                recorder = Recorder(data.installation.events, limited=False)
                recorder.record(event, data.now)

    return run


def _details(arguments: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in arguments.items() if name not in _OMISSIONS}
    return {name: _plain(value) for name, value in values.items() if value not in (None, "", False, [])}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int) else make_storable(str(value)[:500])


def operator() -> Actor:
    number = os.getuid()
    try:
        return Actor(pwd.getpwuid(number).pw_name, _PLACE)
    except KeyError:
        return Actor(str(number), _PLACE)
