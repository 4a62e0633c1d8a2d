"""What do all decisions of an administrator stand on? Who may take them, and what holds after each."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.entries import entries, memberships
from muniment.directory.oauth import tokens
from muniment.directory.oauth.tokens import Party
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    NobodyAdministers,
    NotAdministrator,
    UnknownEntry,
)
from muniment.ground.clock import Instant

_COUNTED = 1000
"""Living grants are counted up to this number: "1000 or more"."""
_NO_ADMINISTRATOR = "Only an administrator of the directory may change users and groups."


def require_administrator(cx: Connection, names: DirectoryNames, caller_id: str) -> None:
    """Raises NotAdministrator unless the user (``name@partition``) may act and administers the directory."""
    try:
        user = entries.find_user(cx, names, caller_id)
    except UnknownEntry as refusal:
        raise NotAdministrator(_NO_ADMINISTRATOR) from refusal
    if not (user.live and memberships.administers(cx, user.id)):
        raise NotAdministrator(_NO_ADMINISTRATOR)


@contextmanager
def somebody_administers(cx: Connection) -> Iterator[None]:
    """Raises NobodyAdministers if after the block no administrator of the directory can sign in.

    All rights are locked first: of two changes at one time, the later one sees the earlier one.
    """
    version_stamps.lock_rights(cx)
    could_administer = _can_administer(cx)
    yield
    if could_administer and not _can_administer(cx):
        raise NobodyAdministers(
            "Nobody could sign in to the administration any more. Nothing was changed: first add an administrator."
        )


def living_grants(cx: Connection, party: Party, party_id: int | str, now: Instant) -> str:
    """How many live, in words; empty if none does."""
    count = len(tokens.live_grants(cx, party, party_id, now, _COUNTED))
    if count == _COUNTED:
        return f"{count} or more grants"
    return f"{count} grants" if count else ""


def _can_administer(cx: Connection) -> bool:
    return memberships.acting_in(cx, [entries.administrators(cx).id])
