"""Which users and groups may enter a repository, and how are they changed?"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from muniment.ground.clock import Instant
from muniment.repository.store.filters.cursors import Place, Stretch
from muniment.repository.store.filters.tree import Selection

Kind = Literal["user", "group"]

Who: TypeAlias = Callable[[], str]
"""Returns the id of the user who asks for a change, as of the moment of the call. Any thread may call it.

Raises NotSignedIn, DirectoryUnavailable, UnknownRepository.
"""


class Person(msgspec.Struct, frozen=True):
    """A user or a group. ``id`` is ``name@partition``.

    ``state`` is None unless the person is shown to somebody who may change it. For a user it is 1 if they are disabled,
    plus 2 if they are locked out.
    """

    kind: Kind
    id: str
    identity: str
    short_name: str
    description: str
    modified: Instant
    state: int | None = None


@dataclass(frozen=True)
class PersonChange:
    """The new facts of a user or a group. A field that is None stays as it is. In a new user or group it stays empty.

    ``state`` is as in ``Person``. Only users have a state and a password.
    """

    id: str | None = None
    description: str | None = None
    state: int | None = None
    password: str | None = field(default=None, repr=False)


class ListedPerson(NamedTuple):
    """A user or group of a list, with its place in the order."""

    person: Person
    place: Place


class Membership(NamedTuple):
    """A group, and a user or group that is its direct member."""

    group: Person
    member: Person


class People(Protocol):
    """The users and groups whom the resource of a repository lets in. Any thread may ask.

    With ``group_id``, ``page``, ``count`` and ``find`` know only the direct members of this group, and raise
    UnknownPerson if there is no such group. Each method may raise DirectoryUnavailable.
    """

    def page(
        self, resource_id: str, kind: Kind, group_id: str | None, stretch: Stretch, selection: Selection
    ) -> list[ListedPerson]:
        """List a stretch of the users or groups that meet the selection's filter.

        Unless the selection sorts them, those of one partition stand together, ordered by name. Raises UnknownProperty,
        WrongValue, BadSort.
        """

    def count(self, resource_id: str, kind: Kind, group_id: str | None, selection: Selection) -> int:
        """Count all that ``page`` lists. Raises UnknownProperty, WrongValue."""

    def find(self, resource_id: str, kind: Kind, person_id: str, group_id: str | None = None) -> Person:
        """Raises UnknownPerson."""

    def describe(self, resource_id: str, user_id: str) -> bytes:
        """Return what a repository would learn of this user from a ticket, as JSON. Raises UnknownPerson.

        The JSON has only the member ``user`` of a tokeninfo document. The user may be disabled or locked.
        """


class PeopleChanges(Protocol):
    """Changes any users and groups of the directory, for a caller who administers it.

    Each method opens transactions of its own and may wait: call it in a thread. In the transaction of the change it
    asks ``who`` the caller is. A method raises what ``who`` raises, Busy, Overloaded, and NoAdministratorLeft if nobody
    could administer the directory afterwards. If the caller does not administer the directory, it raises NotPermitted
    before it raises anything else about users and groups.
    """

    def add(self, who: Who, kind: Kind, person: PersonChange) -> Person:
        """Make a user or group. Without a password nobody can sign in as the user. Raises WrongValue, NameTaken."""

    def change(self, who: Who, kind: Kind, person_id: str, change: PersonChange) -> Person:
        """Change a user or group, and end the sessions that may not go on.

        Raises UnknownPerson, WrongValue, NameTaken, and InUse if a repository knows the id that is to change.
        """

    def remove(self, who: Who, kind: Kind, person_id: str) -> str:
        """Remove a user or group from the directory and from all ACLs, and return the id.

        The objects and ACLs of the user keep their owner, and no later user of the name inherits them. Raises
        UnknownPerson, InUse.
        """

    def add_member(self, who: Who, group_id: str, kind: Kind, member_id: str) -> Membership:
        """Put a user or group into a group. Change nothing if the group has this member. Raises UnknownPerson."""

    def remove_member(self, who: Who, group_id: str, kind: Kind, member_id: str) -> Membership:
        """Take a direct member out of a group. Raises UnknownPerson, also if the group has no such direct member."""
