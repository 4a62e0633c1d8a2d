"""Which folders does a query name?

A folder that the caller may not browse counts as one that does not exist. Source: docs/aql.md, "Where hits lie".
"""

from collections.abc import Collection

from sqlalchemy.engine import Connection

from muniment.database.snapshots import of_snapshot
from muniment.ground.naming import is_storable
from muniment.repository.refusals import BadQuery, WrongValue
from muniment.repository.search.aql.bind import naming_place
from muniment.repository.search.aql.conditions import Condition, ConditionSet, HasValue, OneOf, Unless
from muniment.repository.search.aql.tree import Location
from muniment.repository.store.objects.folders import folders, paths
from muniment.repository.store.objects.listing.view import RepositoryView

MOST_FOLDERS = 10_000

MOST_LOCATIONS = 100

MOST_STEPS = 500
"""All paths of a query have so many names, each of which takes one or two statements."""

_FOLDER = "i_folder_id"


def condition(cx: Connection, view: RepositoryView, locations: Collection[Location]) -> Condition | None:
    """Return None for the whole repository. Raises BadQuery for too many locations, or names in their paths; WrongValue
    for a folder that does not exist or that the caller may not see, and for too many folders.
    """
    caller = view.principals
    about = caller.key, caller.accessors, caller.administrator, view.repository.id
    # One request asks several times: with all words and with any, and for each facet that is counted apart.
    return of_snapshot(cx, (condition, *about, tuple(locations)), lambda cx: _condition(cx, view, locations))


def _condition(cx: Connection, view: RepositoryView, locations: Collection[Location]) -> Condition | None:
    _check(locations)
    folder_ids: set[str] = set()
    with_descendants: set[str] = set()
    roots = False
    for location in locations:
        with naming_place(location.place):
            if location.folder_id or paths.split(location.path):
                (with_descendants if location.descendants else folder_ids).update(_folders_of(cx, view, location))
            elif location.descendants:
                return None
            else:
                roots = True
            _check_number(folder_ids | with_descendants)
    # One descent reads the descendants of all locations, so that a folder in several of them is read once.
    folder_ids |= folders.descendants(cx, view, with_descendants, MOST_FOLDERS)
    _check_number(folder_ids)
    in_folders = OneOf(_FOLDER, tuple(sorted(folder_ids)))
    return ConditionSet("OR", (in_folders, Unless(HasValue(_FOLDER)))) if roots else in_folders


def folder_ids(cx: Connection, view: RepositoryView, location: Location) -> set[str]:
    """The location must name a folder, not the whole repository.

    Raises what ``condition`` raises.
    """
    _check([location])
    with naming_place(location.place):
        ids = _folders_of(cx, view, location)
        if location.descendants:
            ids |= folders.descendants(cx, view, ids, MOST_FOLDERS)
        _check_number(ids)
    return ids


def _check(locations: Collection[Location]) -> None:
    if len(locations) > MOST_LOCATIONS:
        raise BadQuery(f"A query has at most {MOST_LOCATIONS} locations.")
    if sum(location.path.count("/") for location in locations) > MOST_STEPS:
        raise BadQuery(f"The paths of a query's locations have at most {MOST_STEPS} names together.")


def _check_number(folder_ids: Collection[str]) -> None:
    if len(folder_ids) > MOST_FOLDERS:
        raise WrongValue(f"The locations name more than {MOST_FOLDERS} folders: name folders further down.")


def _folders_of(cx: Connection, view: RepositoryView, location: Location) -> set[str]:
    text = location.path or location.folder_id
    # A name that a database cannot store is the name of no folder.
    if not is_storable(text):
        folder_ids: set[str] = set()
    elif location.folder_id:
        folder_ids = folders.find(cx, view, ids=[location.folder_id])
    else:
        folder_ids = paths.folders_at(cx, view, paths.split(location.path), MOST_FOLDERS)
    if not folder_ids:
        raise WrongValue(f"There is no folder {text[:200]!r}, or you may not see it.")
    return folder_ids
