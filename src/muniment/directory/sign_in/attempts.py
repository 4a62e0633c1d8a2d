"""May this user sign in to this resource? Two decisions with one password check between them.

``begin`` looks the user up, the endpoint has the password checked at the gate, and ``finish`` decides. Whatever speaks
against it, a sign-in takes the same statements and one check, and gets the same sentence: the answer does not show
which users exist. The directory itself lets in more than its access role.
"""

from typing import Literal

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import credentials, resources
from muniment.directory.entries.table import CLIENTS, Entry
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import SignInRefused
from muniment.directory.sign_in import pauses
from muniment.directory.sign_in.line import Asker
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name

Opens = Literal["role", "people", "everybody"]
"""Who may sign in: only members of the access role, or also every person, or also every OAuth client."""

_NOBODY = -1
_REFUSED = "The user name or the password is wrong, or the user may not sign in to this resource."


class SignInAttempt(msgspec.Struct, frozen=True):
    """A sign-in under way.

    The endpoint has the password checked at the gate, exactly once, even without a ``password_hash``, for which none is
    right. ``user_id`` is None for an unknown user. ``known_browser``: a cookie shows that this browser signed in as
    this user before.
    """

    resource_id: str
    user_id: int | None
    password_hash: str | None
    origin: pauses.Origin
    known_browser: bool
    opens: Opens = "role"

    def asker(self, username: str) -> Asker:
        """Its account is the folded name, whether the user exists or not."""
        return Asker(pauses.neighbourhood(self.origin.address), fold_name(username), self.known_browser)


def begin(
    cx: Connection,
    options: DirectoryOptions,
    resource: resources.Resource,
    username: str,
    origin: pauses.Origin,
    now: Instant,
    *,
    opens: Opens = "role",
    bare: bool = False,
) -> SignInAttempt:
    """Look up the user and the pauses at the origin, without a write. With ``bare``, the name may lack its partition;
    at the token endpoint it may not (given 4.1).
    """
    account = credentials.find(cx, options, username, bare=bare)
    state = pauses.state_of(cx, account, origin, now)
    if account is None:
        return SignInAttempt(resource.id, None, None, origin, False, opens)
    password_hash = None if state.paused(options, now) else account.password_hash
    return SignInAttempt(resource.id, account.user.id, password_hash, origin, state.by_cookie, opens)


def finish(cx: Connection, options: DirectoryOptions, attempt: SignInAttempt, password_ok: bool, now: Instant) -> Entry:
    """Decide a sign-in (given 5.1, 5.2). Its result is stored even when this raises SignInRefused."""
    account = credentials.lock(cx, attempt.user_id)
    state = pauses.state_of(cx, account, attempt.origin, now)
    in_role = resources.admits(cx, attempt.resource_id, _NOBODY if attempt.user_id is None else attempt.user_id)
    # The hashes are compared, because the password may have been changed while the check waited.
    is_right = (
        password_ok
        and account is not None
        and account.password_hash is not None
        and account.password_hash == attempt.password_hash
    )
    may_enter = (
        account is not None
        and is_right
        and (in_role or _opens_without_role(attempt.opens, account.user))
        and account.user.live
        and not state.paused(options, now)
    )
    # The pause in which the attempt began may have ended while the check waited.
    was_checked = account is not None and (attempt.password_hash is not None or account.password_hash is None)
    tries, begins_pause = pauses.count_wrong_password(options, state, is_right, now, was_checked=was_checked)
    places = pauses.remember(state, now) if may_enter else pauses.encode(state.places)
    user_id = None if account is None else account.user.id
    credentials.note_sign_in(cx, user_id, tries, places, now, succeeded=may_enter)
    if account is None or not may_enter:
        reason = _reason(account, is_paused=state.paused(options, now), is_right=is_right)
        raise refused(reason, pauses=begins_pause)
    return account.user


def needs_new_password(user: Entry) -> bool:
    """Whether a further step follows the right password: a new one."""
    return user.must_change_password and not user.cannot_change_password


def _opens_without_role(opens: Opens, user: Entry) -> bool:
    return opens == "everybody" or (opens == "people" and user.partition_built_in != CLIENTS)


def refused(reason: str, *, pauses: bool = False) -> SignInRefused:
    """The same sentence for every reason."""
    return SignInRefused(_REFUSED, reason=reason, pauses=pauses)


def _reason(account: credentials.Credentials | None, *, is_paused: bool, is_right: bool) -> str:
    """The first one that an administrator has to end counts."""
    if account is None:
        return "unknown user"
    reasons = {
        "disabled": account.user.disabled,
        "locked": account.user.locked,
        "paused": is_paused,
        "no password": account.password_hash is None,
        "wrong password": not is_right,
    }
    return next((reason for reason, applies in reasons.items() if applies), "no access to the resource")
