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
"""Returns the id of the user who asks for a change, at the moment of the call, in any thread.

Raises NotSignedIn, DirectoryUnavailable, UnknownRepository.
"""


class Person(msgspec.Struct, frozen=True):
    """A user or a group. ``id`` is ``name@partition``.

    ``second_name`` is the login name of a user, or the name of a group that is displayed. Nobody signs in by it, and it
    gives no right. ``address`` is that of a user's mailbox.
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
    second_name: str = ""
    address: str = ""


@dataclass(frozen=True)
class PersonChange:
    """A field that is None stays as it is, in a new user or group empty.

    ``state``, ``second_name`` and ``address`` are as in ``Person``. Only users have a state, an address and a password.
    """

    id: str | None = None
    description: str | None = None
    state: int | None = None
    password: str | None = field(default=None, repr=False)
    second_name: str | None = None
    address: str | None = None


class ListedPerson(NamedTuple):
    """A user or group of a list."""

    person: Person
    place: Place


class Membership(NamedTuple):
    """A group, with a direct member."""

    group: Person
    member: Person


class MemberFilter(NamedTuple):
    """Only groups with this direct member, or if ``recursive``, with it at any depth."""

    kind: Kind
    id: str
    recursive: bool = False


class PeopleFilter(NamedTuple):
    """Only the users or groups whom a resource lets in, and only direct members of the group, if one is named.

    ``having`` is for groups alone: all of these members.
    """

    resource_id: str
    kind: Kind
    group_id: str | None = None
    having: tuple[MemberFilter, ...] = ()


class People(Protocol):
    """The users and groups whom the resource of a repository lets in. Any thread may ask.

    Each method raises UnknownPerson if a group or member that it is told is not there, and DirectoryUnavailable.
    """

    def page(self, which: PeopleFilter, stretch: Stretch, selection: Selection) -> list[ListedPerson]:
        """List users or groups, those of one partition together, by name, unless sorted.

        Raises UnknownProperty, WrongValue, BadSort.
        """

    def count(self, which: PeopleFilter, selection: Selection) -> int:
        """Raises UnknownProperty, WrongValue."""

    def find(self, resource_id: str, kind: Kind, person_id: str, group_id: str | None = None) -> Person:
        """With a group, find only its direct members. Raises UnknownPerson."""

    def describe(self, resource_id: str, user_id: str) -> bytes:
        """Return JSON with the member ``user`` of a tokeninfo document, also of a disabled or locked user.

        Raises UnknownPerson.
        """


class PeopleChanges(Protocol):
    """Changes any users and groups of the directory, for a caller who administers it.

    Each opens transactions of its own and may wait: call it in a thread. In that of the change it asks ``who`` the
    caller is. Raises what ``who`` raises, Busy, Overloaded, and NoAdministratorLeft if nobody could administer the
    directory afterwards; NotPermitted comes before all else about users and groups.
    """

    def find(self, who: Who, kind: Kind, person_id: str, group_id: str | None) -> Person:
        """Find any user or group, with ``group_id`` only a direct member of this group. Raises UnknownPerson."""

    def add(self, who: Who, kind: Kind, person: PersonChange) -> Person:
        """Without a password nobody can sign in as the user.

        Raises WrongValue, NameTaken.
        """

    def change(self, who: Who, kind: Kind, person_id: str, change: PersonChange) -> Person:
        """Sessions that may not go on end.

        Raises UnknownPerson, WrongValue, NameTaken, and InUse if a repository knows the id that is to change.
        """

    def remove(self, who: Who, kind: Kind, person_id: str) -> str:
        """Remove it from the directory and all ACLs, and return its id. Its objects and ACLs stay, and no later user of
        the name inherits them.

        Raises UnknownPerson, InUse.
        """

    def add_member(self, who: Who, group_id: str, kind: Kind, member_id: str) -> Membership:
        """Change nothing for a member.

        Raises UnknownPerson.
        """

    def remove_member(self, who: Who, group_id: str, kind: Kind, member_id: str) -> Membership:
        """Raises UnknownPerson, also if it is no direct member."""
