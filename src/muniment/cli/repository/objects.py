"""Commands about single objects: show, list, fetch, put, move and remove them.

They act as the data folder's administrator, as ``search`` without ``--user``: whoever can open the folder can read and
change everything in it anyway.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.repository.owners import find_owner
from muniment.cli.running import Group, Rows
from muniment.database.driver_errors import is_undone
from muniment.ground.clock import timestamp
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.repository.bulk.importing.media_types import media_type_of
from muniment.repository.refusals import NoContent, UnknownProperty
from muniment.repository.store import repositories
from muniment.repository.store.content.contract import PIECE
from muniment.repository.store.extraction import queue
from muniment.repository.store.filters.cursors import every_page
from muniment.repository.store.objects import inventory, objects, table
from muniment.repository.store.objects.contents import content_references
from muniment.repository.store.objects.decisions import creation, moving, subtrees
from muniment.repository.store.objects.listing import lists, object_acls
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

object_commands = Group(help="Single objects: documents, folders and cabinets.")

_AT_A_TIME = 500

ObjectId = Annotated[str, typer.Argument(metavar="OBJECT_ID")]


@object_commands.reads("show")
def show_object(
    cx: Connection, repository: Repository, principals: Principals, object_id: ObjectId
) -> dict[str, object]:
    """Show an object's properties."""
    stored, _ = objects.read(cx, repository, object_id, principals)
    return _values(cx, stored, RepositoryView.read(cx, repository, principals))


@object_commands.reads("list", "Object", "Type", "Name", "Owner", "Bytes", "Modified")
def list_objects(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    folder_id: Annotated[
        str, typer.Argument(metavar="[FOLDER_ID]", help="A folder or cabinet; otherwise what lies in no folder.")
    ] = "",
) -> Rows:
    """List what lies in a folder, or the cabinets and whatever else lies in no folder."""
    view = RepositoryView.read(cx, repository, principals)
    folder = objects.read(cx, repository, folder_id, principals, "folder")[0].id if folder_id else None
    members = lists.Folder(view, folder, "sysobject")
    for page in every_page(partial(lists.object_page, cx, members), _AT_A_TIME):
        for each, _ in page:
            size = each.content.size if each.content else None
            yield each.id, each.type, each.name, each.owner, size, timestamp(each.modified)


@object_commands.acts("get", recorded=False)
def get_content(
    data: DataFolder,
    repository_name: str,
    object_id: ObjectId,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write; otherwise standard output."),
    ] = None,
) -> None:
    """Write an object's content to a file or to standard output. The exit code is 3 if the content is damaged."""
    if output is None and sys.stdout.isatty():
        raise Failure("A terminal does not show every content: name a file with --output, or use a pipe.", Exit.USAGE)
    principals = initialise.administrator(data)
    with data.read("repository") as cx:
        stored = objects.readable(cx, repositories.find(cx, repository_name), object_id, principals)
    if stored.content is None:
        raise NoContent(f"The object {object_id} has no content.")
    pieces = backends.content(data.installation).read(stored.content)
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    unfinished_file = output.with_name(f".{output.name}.unfinished")
    try:
        with unfinished_file.open("wb") as file:
            file.writelines(pieces)
        unfinished_file.replace(output)
    finally:
        unfinished_file.unlink(missing_ok=True)


@object_commands.acts("put")
def put_object(
    data: DataFolder,
    repository_name: str,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The content; - for standard input.")],
    folder_id: Annotated[
        str, typer.Option("--in", metavar="FOLDER_ID", help="The folder to put it into; otherwise none.")
    ] = "",
    replace: Annotated[
        str, typer.Option(metavar="OBJECT_ID", help="Replace the content of this object instead of making one.")
    ] = "",
    name: Annotated[str, typer.Option(help="The object's name; otherwise the file's.")] = "",
    type_name: Annotated[str, typer.Option("--type", help="Object type of a new object.")] = "document",
    acl: Annotated[str, typer.Option(help="Its ACL: name, id or owner/name; otherwise its folder's.")] = "",
    owner: Annotated[str, typer.Option(metavar="NAME@PARTITION", help="Owner of a new object.")] = "",
    media_type: Annotated[str, typer.Option(help="Media type of the content; otherwise guessed by the name.")] = "",
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="NAME=VALUE", help="A property; repeat it for several values."),
    ] = None,
) -> None:
    """Make an object from a file and print its id; or replace an object's content and the given properties."""
    if replace and (folder_id or owner or type_name != "document"):
        raise Failure("--in, --owner and --type are for a new object: 'object move' moves one.", Exit.USAGE)
    if file == "-" and not (name or replace):
        raise Failure("Name the object with --name: standard input has no name.", Exit.USAGE)
    principals = find_owner(data, owner)
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, repository_name)
            view = RepositoryView.read(cx, repository, principals, unique_names=data.settings.repository.unique_names)
            former = objects.read(cx, repository, replace, principals)[0] if replace else None
        shown_name = name or (former.name if former else os.path.basename(file))
        values = _read_properties(properties or [], view.catalogue)
        values |= {key: text for key, text in (("acl_name", acl), ("object_name", name)) if text}
        content_type = media_type or (former.media_type if former and file == "-" else media_type_of(shown_name))
        store = backends.content(data.installation)
        with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as source:
            content = store.put(_pieces(source, data.settings.repository.max_content_bytes))
        try:
            with database.begin() as cx:
                if former is None:
                    values |= {"object_name": shown_name, "a_content_type": content_type}
                    stored = creation.create(cx, view, type_name, values, folder_id or None, content, data.now)
                else:
                    if values:
                        objects.change(cx, view, former.id, values, data.now)
                    stored = objects.replace_content(
                        cx, repository, principals, former.id, content, content_type, data.now
                    )
        except BaseException as error:
            if is_undone(error):
                store.remove(content.key)
            raise
        content_references.drop_spares(database, store, [content], [stored.content])
    for key in stored.freed:
        store.remove(key)
    terminal.line(stored.id)


@object_commands.writes("move")
def move_object(
    data: DataFolder,
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: ObjectId,
    folder_id: Annotated[
        str, typer.Argument(metavar="[FOLDER_ID]", help="The folder or cabinet; without one, out of all folders.")
    ] = "",
    name: Annotated[str, typer.Option(help="Also rename it.")] = "",
) -> None:
    """Move an object into another folder. It keeps its ACL; what lies in a folder moves with it."""
    view = RepositoryView.read(cx, repository, principals, unique_names=data.settings.repository.unique_names)
    present = objects.read(cx, repository, object_id, principals)[0].folder_ids
    if present and folder_id:
        moving.move(cx, view, object_id, present[0], folder_id, data.now)
    elif folder_id:
        moving.link(cx, view, object_id, folder_id, data.now)
    else:
        for each in present:
            moving.unlink(cx, repository, principals, object_id, each, data.now)
    if name:
        objects.change(cx, view, object_id, {"object_name": name}, data.now)


@object_commands.acts("rm")
def remove_objects(
    data: DataFolder,
    repository_name: str,
    object_ids: Annotated[list[str], typer.Argument(metavar="OBJECT_ID...")],
    recursive: Annotated[
        bool,
        typer.Option("--recursive", help="With all that lies in a folder (repository.max_deleted_objects)."),
    ] = False,
) -> None:
    """Delete objects, all or none. A folder has to be empty, unless --recursive is given.

    The wastebasket keeps them for repository.wastebasket_days; with 0, they are gone with their content at once.
    """
    principals, most = initialise.administrator(data), data.settings.repository.max_deleted_objects
    days = data.settings.repository.wastebasket_days
    with data.begin("repository") as cx:
        repository = repositories.find(cx, repository_name)
        deleted_objects = list[table.StoredObject]()
        for object_id in object_ids:
            if recursive:
                deleted_objects += subtrees.delete(
                    cx, repository, principals, object_id, data.now, most, keep_days=days
                )
            else:
                deleted_objects.append(objects.delete(cx, repository, principals, object_id, data.now, keep_days=days))
    store = backends.content(data.installation)
    for key in (key for stored in deleted_objects for key in stored.freed):
        store.remove(key)
    terminal.line(f"Deleted: {terminal.number_of(len(deleted_objects), 'object')}.")


def _values(cx: Connection, stored: table.StoredObject, view: RepositoryView) -> dict[str, object]:
    definitions = view.catalogue.properties_of(stored.type)
    shown_values: dict[str, object] = {}
    acl_name = object_acls.shown_name(cx, stored, view.principals)
    for name, values in inventory.values(stored, view.catalogue, acl_name).items():
        texts = [timestamp(int(value)) if definitions[name].kind == "date" else value for value in values]
        shown_values[name] = texts if definitions[name].repeating else texts[0]
    shown_values["r_index_status"] = queue.status(cx, stored.id).state
    return shown_values


def _read_properties(texts: list[str], catalogue: Catalogue) -> dict[str, Given]:
    several: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise Failure(f"{text!r}: write a property as NAME=VALUE.", Exit.USAGE)
        several.setdefault(name, []).append(value)
    values_of: dict[str, Given] = {}
    for name, values in several.items():
        try:
            repeating = catalogue.property(name).repeating
        except UnknownProperty:
            repeating = False
        values_of[name] = values[0] if len(values) == 1 and not repeating else [value for value in values if value]
    return values_of


def _pieces(source: BinaryIO, largest: int) -> Iterator[bytes]:
    size = 0
    while piece := source.read(PIECE):
        size += len(piece)
        if size > largest:
            raise Failure(f"The content has more than {largest} bytes (repository.max_content_bytes).", Exit.REFUSED)
        yield piece
