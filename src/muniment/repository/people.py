"""Which users and groups may come to a repository? What its endpoints know of them, wherever the directory is."""

from typing import Literal, NamedTuple, Protocol

import msgspec

from muniment.clock import Instant
from muniment.repository.cursors import Place, Stretch
from muniment.repository.filters.tree import Selection

Kind = Literal["user", "group"]


class Person(msgspec.Struct, frozen=True):
    """A user or a group. ``id`` is ``name@partition``."""

    kind: Kind
    id: str
    identity: str
    short_name: str
    description: str
    modified: Instant


class ListedPerson(NamedTuple):
    """A user or group of a list, with its place in the order."""

    person: Person
    place: Place


class People(Protocol):
    """The users and groups whom the resource of a repository lets in. Any thread may ask.

    ``group_id`` limits a list to the direct members of this group. Each method raises UnknownPerson if there is no such
    group, and DirectoryUnavailable.
    """

    def page(
        self, resource_id: str, kind: Kind, group_id: str | None, stretch: Stretch, selection: Selection
    ) -> list[ListedPerson]:
        """List a stretch of the users or groups that the selection wants, by partition and name unless it sorts them.

        Raises UnknownProperty, WrongValue, BadSort.
        """

    def count(self, resource_id: str, kind: Kind, group_id: str | None, selection: Selection) -> int:
        """Count all that ``page`` lists. Raises as ``page``."""

    def find(self, resource_id: str, kind: Kind, person_id: str) -> Person:
        """Find one of them by id. Raises UnknownPerson."""

    def describe(self, resource_id: str, user_id: str) -> bytes:
        """Return the tokeninfo document of a user, as if they called now. Raises UnknownPerson."""
