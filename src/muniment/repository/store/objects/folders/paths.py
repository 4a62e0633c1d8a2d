"""Which paths lead to a folder, and which objects does a path name? What the caller may not browse is left out.

Each name follows a slash. A slash in a name gets a backslash before it; so does a backslash before a slash, a backslash
or the end of the name. Accents may be composed or decomposed, as some systems write them in names of files.

Source: docs/interface.md, ours 2 (paths).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.database.statements import without_index
from muniment.ground.naming import compositions, is_storable
from muniment.repository.refusals import WrongValue
from muniment.repository.store.filters import cursors, pages, tree
from muniment.repository.store.objects.folders import folders
from muniment.repository.store.objects.listing.lists import ListedObject, browsable, properties_of, with_places
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Value
from muniment.repository.store.objects.table import IS_CURRENT, StoredObject, folder_links, objects, read_ids, read_row

MOST_PATHS = 100

MOST_CHARACTERS = 65_536

MOST_ABOVE = 1000

MOST_STEPS = 500

MOST_FOLDERS = 10_000
"""Each name of a path but the last may lead to so many."""

_MOST_READ = 10_000
_NAME = re.compile(r"(?:\\[/\\]|[^/])+")
_ESCAPED = re.compile(r"\\([/\\])")
_TO_ESCAPE = re.compile(r"/|\\(?=[/\\]|\Z)")


class Ancestry(NamedTuple):
    """``folder_ids`` has the folder itself, too."""

    paths: list[str]
    folder_ids: list[str]


NOWHERE = Ancestry([], [])

NAMES = frozenset({"r_folder_path", "i_ancestor_id"})


def split(path: str) -> list[str]:
    return [_ESCAPED.sub(r"\1", name) for name in _NAME.findall(path)]


def write(name: str) -> str:
    return "/" + _TO_ESCAPE.sub(lambda match: "\\" + match[0], name)


def ancestries(cx: Connection, view: RepositoryView, several: Sequence[StoredObject]) -> dict[str, Ancestry]:
    """Return where each folder lies, without folders above that the caller may not browse, and paths through these.

    Each statement reads up to 500 folders of one level; each folder gets at most ``MOST_PATHS`` paths and
    ``MOST_ABOVE`` ids.

    The work grows with the links that were read, not with the number of ways up, which may be immense.
    """
    if not several:
        return {}
    names = {each.id: each.name for each in several}
    parents = {each.id: each.folder_ids for each in several}
    edge = {folder_id for each in several for folder_id in each.folder_ids} - names.keys()
    while edge and len(names) <= _MOST_READ:
        ids = sorted(edge)[:_MOST_READ]
        edge = set()
        for some in portions(ids):
            columns = (objects.c.id, objects.c.name, objects.c.folder_id, objects.c.further_folders)
            portion = sa.select(*columns).where(objects.c.id.in_(some), browsable(view))
            for folder_id, name, first, further in cx.execute(portion):
                names[folder_id], parents[folder_id] = name, [first, *read_ids(further)] if first else []
                edge.update(parents[folder_id])
        edge -= names.keys()
    lengths: dict[str, int] = {}  # of the shortest path of each folder that has one
    for folder_id in TopologicalSorter(parents).static_order():
        above = [lengths[each] for each in parents.get(folder_id, ()) if each in lengths]
        if folder_id in names and (above or not parents[folder_id]):
            lengths[folder_id] = min(above, default=0) + len(write(names[folder_id]))
    return {
        each.id: Ancestry(_paths(each.id, names, parents, lengths), _with_all_above(each.id, names, parents))
        for each in several
    }


def values(place: Ancestry) -> dict[str, list[Value]]:
    every: dict[str, list[Value]] = {"r_folder_path": [*place.paths], "i_ancestor_id": [*place.folder_ids]}
    return {name: of_name for name, of_name in every.items() if of_name}


def folders_at(cx: Connection, view: RepositoryView, names: Sequence[str], most: int) -> set[str]:
    """Follow names that need not be unique; the first is that of a cabinet. A name that leads to more than ``most``
    folders ends the search: more than ``most`` ids are returned.
    """
    folder_ids = folders.find(cx, view, name=names[0], most=most + 1)
    for name in names[1:]:
        if not folder_ids or len(folder_ids) > most:
            break
        folder_ids = folders.find(cx, view, inside=folder_ids, name=name, most=most + 1)
    return folder_ids


def with_paths(cx: Connection, view: RepositoryView, ids: Collection[str], test: Callable[[str], bool]) -> set[str]:
    """Return those of these folders that have a path which meets a test."""
    found = set[str]()
    for some in portions(sorted(ids)):
        several = [read_row(row) for row in cx.execute(sa.select(objects).where(objects.c.id.in_(some)))]
        places = ancestries(cx, view, several)
        found.update(folder_id for folder_id, place in places.items() if any(map(test, place.paths)))
    return found


def path_page(
    cx: Connection,
    view: RepositoryView,
    path: str,
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
    *,
    type_prefix: str = "",
) -> list[ListedObject]:
    """List the objects in the order in which they were made, unless the selection sorts them.

    Raises WrongValue (also for a path that is too long or leads through too many folders), UnknownProperty, BadSort.
    """
    branches = _query_of(cx, view, path)
    if branches is None:
        return []
    order = pages.Order((pages.OrderKey(objects.c.seq),))
    members, further = branches
    rows = pages.fetch(cx, members, properties_of(cx, view, type_prefix), order, stretch, selection, further)
    return with_places(rows)


def count_path(
    cx: Connection, view: RepositoryView, path: str, selection: tree.Selection, *, type_prefix: str = ""
) -> int:
    """Raises what ``path_page`` raises, except BadSort."""
    branches = _query_of(cx, view, path)
    if branches is None:
        return 0
    members, further = branches
    return pages.count_members(cx, members, properties_of(cx, view, type_prefix), selection, further)


def _query_of(
    cx: Connection, view: RepositoryView, path: str
) -> tuple[sa.Select[tuple[object]], pages.Branch | None] | None:
    names = split(path)
    if len(names) > MOST_STEPS:
        raise WrongValue(f"A path has at most {MOST_STEPS} names.")
    if not names or not is_storable(path):
        return None
    inside = None if len(names) == 1 else folders_at(cx, view, names[:-1], MOST_FOLDERS)
    if inside is not None and len(inside) > MOST_FOLDERS:
        raise WrongValue(f"The path leads through more than {MOST_FOLDERS} folders of one name.")
    if inside is not None and not inside:
        return None
    written = compositions(names[-1])
    members = sa.select(objects).where(
        *(without_index(objects.c.repository_id) == view.repository.id, objects.c.name.in_(written)),
        *(IS_CURRENT, browsable(view)),
    )
    if inside is None:
        cabinets = objects.c.type.in_(sorted(view.catalogue.with_subtypes(["folder"])))
        return members.where(objects.c.folder_id.is_(None), cabinets), None
    linked = sa.select(folder_links.c.object_id).where(
        folder_links.c.folder_id.in_(inside),
        folder_links.c.former == sa.literal_column("0"),
        folder_links.c.name.in_(written),
    )
    # An object that lies in several of the folders is listed once.
    further = members.where(objects.c.id.in_(linked), sa.not_(objects.c.folder_id.in_(inside)))
    return members.where(objects.c.folder_id.in_(inside)), pages.Branch(further, {})


def _paths(
    folder_id: str, names: Mapping[str, str], parents: Mapping[str, Collection[str]], lengths: Mapping[str, int]
) -> list[str]:
    """Return the paths that reach a cabinet, each once.

    Each step goes to all folders above that have one name. Folders are left out if their shortest path would exceed
    ``MOST_CHARACTERS``, together with the paths collected already.
    """
    paths, room = list[str](), MOST_CHARACTERS
    steps = [("", {folder_id})] if folder_id in lengths else []
    while steps and len(paths) < MOST_PATHS:
        end, of_one_name = steps.pop()
        if min(lengths[each] for each in of_one_name) + len(end) > room:
            continue
        text = write(names[next(iter(of_one_name))]) + end
        if not all(parents[each] for each in of_one_name):
            paths.append(text)
            room -= len(text)
        above: dict[str, set[str]] = {}
        for parent in {parent for each in of_one_name for parent in parents[each] if parent in lengths}:
            above.setdefault(names[parent], set()).add(parent)
        steps += [(text, above[name]) for name in sorted(above, reverse=True)]
    own = write(names[folder_id])
    return sorted(paths, key=lambda path: path.removesuffix(own))


def _with_all_above(folder_id: str, names: Mapping[str, str], parents: Mapping[str, Sequence[str]]) -> list[str]:
    ids: dict[str, None] = {}
    left = [folder_id]
    while left and len(ids) < MOST_ABOVE:
        each = left.pop()
        if each not in ids:
            ids[each] = None
            left += [parent for parent in reversed(parents[each]) if parent in names and parent not in ids]
    return list(ids)
