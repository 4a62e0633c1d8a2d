"""Sign a user in with a browser (given 5.2): a row of steps, each bound to the browser.

The first is the password. Who must choose a new one gets a text instead of a ticket, which the next step shows. Every
user may sign in to the administration (decision 0101), but an OAuth client must be in its access role; the console
checks the role at each use.
"""

import base64
import hmac
from collections.abc import Callable

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory import minting, version_stamps
from muniment.directory.entries import credentials, resources, system
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import NotSignedIn
from muniment.directory.sign_in import attempts, holders, tickets
from muniment.directory.sign_in.pauses import Origin
from muniment.directory.sign_in.tickets import Ticket
from muniment.ground.clock import SECOND, Instant

STEP_SECONDS = 600
"""So long after the password the next step may be taken."""

_OVER = "This sign-in took too long, or was begun elsewhere. Sign in again."


class FormOutcome(msgspec.Struct, frozen=True):
    """A ticket, and whether it ``opens`` anything; or the text for the step of a new password."""

    user: Entry
    ticket: str = ""
    opens: bool = False
    step: str = ""


class Step(msgspec.Struct, frozen=True):
    """A sign-in whose password was right, and whose new password is awaited."""

    user_id: int
    resource_id: str
    until: Instant


def resource_of(cx: Connection, resource_id: str | None) -> resources.Resource:
    """``resource_id`` is None for the administration. Raises UnknownResource, also before activation (given 2.2)."""
    return resources.administration(cx) if resource_id is None else resources.letting_in(cx, resource_id)


def begin(
    cx: Connection, options: DirectoryOptions, resource_id: str | None, username: str, origin: Origin, now: Instant
) -> attempts.SignInAttempt:
    """``resource_id`` is None for the administration. Raises UnknownResource."""
    resource = resource_of(cx, resource_id)
    opens: attempts.Opens = "people" if resource.built_in == resources.ADMINISTRATION else "role"
    return attempts.begin(cx, options, resource, username, origin, now, opens=opens)


def finish(
    cx: Connection,
    options: DirectoryOptions,
    attempt: attempts.SignInAttempt,
    password_ok: bool,
    browser: str,
    old_ticket: str,
    now: Instant,
) -> FormOutcome:
    """``browser`` is what only this browser sends. Raises SignInRefused; then the old ticket stays."""
    user = attempts.finish(cx, options, attempt, password_ok, now)
    if attempts.needs_new_password(user):
        until = now + STEP_SECONDS * SECOND
        key = system.key(cx, "tokens")
        step = _seal(key, Step(user.id, attempt.resource_id, until), attempt.password_hash, browser)
        return FormOutcome(user, step=step)
    return _let_in(cx, options, user, attempt.resource_id, old_ticket, now)


def read_step(
    cx: Connection, text: str, browser: str, now: Instant, *, lock: bool = False
) -> tuple[Step, credentials.Credentials]:
    """With ``lock`` the user's row is locked until the commit. Raises NotSignedIn unless this browser has shown the
    password moments ago, and it is still the user's.
    """
    try:
        step = msgspec.json.decode(base64.urlsafe_b64decode(text.partition(".")[0]), type=Step)
    except (ValueError, msgspec.MsgspecError) as error:
        raise NotSignedIn(_OVER) from error
    account = (credentials.lock if lock else credentials.by_id)(cx, step.user_id)
    if (
        account is None
        or not any(
            hmac.compare_digest(text.encode("utf-8"), _seal(key, step, account.password_hash, browser).encode())
            for key in system.accepted_keys(cx, "tokens")
        )
        or now >= step.until
        or not account.user.live
        or not attempts.needs_new_password(account.user)
    ):
        raise NotSignedIn(_OVER)
    return step, account


def take_step(
    cx: Connection,
    options: DirectoryOptions,
    text: str,
    browser: str,
    old_ticket: str,
    set_password: Callable[[Connection, Entry], object],
    now: Instant,
) -> FormOutcome:
    """``set_password`` decides it as for everybody. Raises NotSignedIn, and the refusals of ``set_password``."""
    version_stamps.lock_rights(cx)
    step, account = read_step(cx, text, browser, now, lock=True)
    set_password(cx, account.user)
    return _let_in(cx, options, account.user, step.resource_id, old_ticket, now)


def administrator_of(cx: Connection, names: DirectoryNames, ticket: str, now: Instant) -> Entry:
    """Raises NotSignedIn if there is none."""
    holder = holders.of_sign_in(cx, names, ticket, now)
    if not holder.opens or holder.resource_id != resources.administration(cx).id:
        raise NotSignedIn("Sign in to the administration first.")
    return holder.user


def _seal(key: bytes, step: Step, password_hash: str | None, browser: str) -> str:
    content = base64.urlsafe_b64encode(msgspec.json.encode(step)).decode()
    return f"{content}.{minting.seal(key, 'step', content, password_hash or '', browser)}"


def _let_in(
    cx: Connection, options: DirectoryOptions, user: Entry, resource_id: str, old_ticket: str, now: Instant
) -> FormOutcome:
    tickets.end(cx, options.names, old_ticket)
    ticket = Ticket(user_id=user.id, resource_id=resource_id, expires=now + options.ticket_seconds * SECOND)
    text = tickets.issue(cx, options.names, ticket, options.live_tickets, now)
    return FormOutcome(user, text, holders.opens(cx, resource_id, user.id))
