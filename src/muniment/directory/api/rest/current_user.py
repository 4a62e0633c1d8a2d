"""Tell whoever calls who they are."""

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory.api.rest import entry_objects
from muniment.directory.api.rest.callers import Caller, RequiredRight
from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.entry_objects import UserObject
from muniment.directory.entries import entries
from muniment.directory.options import DirectoryNames


class CurrentUser(msgspec.Struct):
    """Who calls, and whether they administer the directory, in the two words of the field."""

    user: UserObject
    is_admin: bool
    is_sys_admin: bool


async def show(call: Call) -> Response:
    """Show who calls."""
    return call.answer(await call.read(_show, call.names, as_keys=call.flag("attrsAsKeys")))


def _show(cx: Connection, caller: Caller, names: DirectoryNames, *, as_keys: bool) -> CurrentUser:
    # When somebody signed in last is no part of what is remembered of a caller.
    present = entries.by_id(cx, caller.user.id) or caller.user
    (user,) = entry_objects.users(cx, names, [present], as_keys=as_keys)
    return CurrentUser(user, caller.administers, caller.administers)


ROWS = (
    Row(
        "/currentuser",
        {"GET": Method(show, CurrentUser, right=RequiredRight.SIGNED_IN, parameters=(entry_objects.AS_KEYS,))},
    ),
)
