"""Which folders does a query name? Only those that its caller may browse count, as if the others did not exist.

Source: docs/aql.md, "Where hits lie". A path names every folder of that name, because names are not unique.
"""

from collections.abc import Collection

from sqlalchemy.engine import Connection

from muniment.repository.aql.bind import naming_place
from muniment.repository.aql.conditions import Condition, ConditionSet, HasValue, OneOf, Unless
from muniment.repository.aql.tree import Location
from muniment.repository.objects import folders
from muniment.repository.objects.view import RepositoryView
from muniment.repository.refusals import WrongValue

MOST_FOLDERS = 10_000
"""How many folders the locations of one query may name together with their descendants."""

_FOLDER = "i_folder_id"


def condition(cx: Connection, view: RepositoryView, locations: Collection[Location]) -> Condition | None:
    """Return the condition that an object lies in one of these folders; None where they name the whole repository.

    Raises WrongValue for a folder that the caller cannot see, and for too many folders.
    """
    named: set[str] = set()
    roots = False
    for location in locations:
        with naming_place(location.place):
            if location.path.strip("/") or location.folder_id:
                named |= _named(cx, view, location)
            elif location.descendants:
                return None
            else:
                roots = True
            if len(named) > MOST_FOLDERS:
                raise WrongValue(f"The locations name more than {MOST_FOLDERS} folders: name folders further down.")
    within = OneOf(_FOLDER, tuple(sorted(named)))
    return ConditionSet("OR", (within, Unless(HasValue(_FOLDER)))) if roots else within


def _named(cx: Connection, view: RepositoryView, location: Location) -> set[str]:
    if location.folder_id:
        named = folders.find(cx, view, ids=[location.folder_id])
    else:
        first, *others = location.path.strip("/").split("/")
        named = folders.find(cx, view, name=first)
        for name in others:
            named = folders.find(cx, view, inside=named, name=name)
    if not named:
        text = location.path or location.folder_id
        raise WrongValue(f"There is no folder {text[:200]!r}, or you may not see it.")
    return folders.descendants(cx, view, named, MOST_FOLDERS) if location.descendants else named
