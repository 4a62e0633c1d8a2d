"""The addresses of objects, folders and cabinets, of the links between them, and of the wastebasket.

Source: docs/interface.md, ours 2 and 18.
"""

from muniment.repository.endpoints import parameters
from muniment.repository.endpoints.context import RepositoryContext
from muniment.repository.endpoints.documents import DeletedObjectDocument, Documents, FolderLinkDocument, ObjectDocument
from muniment.repository.endpoints.object_body import JsonMetadata, JsonOptionalReference, JsonReference
from muniment.repository.endpoints.objects import folder_links, new_objects, object_paths, objects, wastebasket
from muniment.repository.endpoints.operations import (
    BELOW,
    CONDITIONAL_WRITE,
    UNCHANGED,
    WRITE,
    Addresses,
    Operations,
    answer_of,
    listing,
    showing,
    with_article,
)
from muniment.web.addresses import Address, AnswerDescription, Operation

_MADE = (parameters.LOCATION, parameters.ETAG, parameters.POSITION)


def addresses(wire: Documents) -> Addresses:
    """List the addresses."""
    return (*_objects(wire), _by_path(wire), *_folder_links(wire), *_wastebasket(wire))


def _by_path(wire: Documents) -> Address[RepositoryContext]:
    operation = Operation(
        object_paths.read,
        "Show the object that a path names, or list the objects if there are several.",
        parameters=(parameters.PATH, *parameters.LIST, parameters.IF_NONE_MATCH),
        refused=parameters.LIST_REFUSED,
        answers=(
            AnswerDescription(200, "The object, or a page of the list.", wire.thing_or_feed, (parameters.ETAG,)),
            UNCHANGED,
        ),
    )
    return Address(f"{BELOW}/object-by-path", {"GET": operation}, objects.TABLE)


def _objects(wire: Documents) -> Addresses:
    return (
        _collection(wire, f"{BELOW}/cabinets", "cabinet", "cabinets", filed=False),
        Address(f"{BELOW}/objects", {"POST": _create(wire, "sysobject", "an object", filed=False)}, objects.TABLE),
        *(_single(wire, kind) for kind in ("object", "document", "folder", "cabinet")),
        _collection(wire, f"{BELOW}/folders/{{id}}/folders", "folder", "folders", filed=True),
        _collection(wire, f"{BELOW}/folders/{{id}}/documents", "document", "documents", filed=True),
        _collection(wire, f"{BELOW}/folders/{{id}}/objects", "sysobject", "objects", filed=True),
    )


def _single(wire: Documents, kind: str) -> Address[RepositoryContext]:
    object_answer = answer_of(f"The {kind}.", wire.thing(ObjectDocument, kind))
    change_answer = AnswerDescription(
        200, object_answer.meaning, object_answer.content, (parameters.ETAG, parameters.POSITION)
    )
    operations: Operations = {
        "GET": Operation(
            objects.reading(kind),
            f"Show {with_article(kind)}.",
            parameters=(*parameters.SHOWING, parameters.IF_NONE_MATCH),
            refused=parameters.SHOWING_REFUSED,
            answers=(
                AnswerDescription(200, object_answer.meaning, object_answer.content, (parameters.ETAG,)),
                UNCHANGED,
            ),
        ),
        "POST": Operation(
            objects.changing(kind),
            f"Change properties of {with_article(kind)}.",
            parameters=CONDITIONAL_WRITE,
            body=wire.thing(JsonMetadata, kind),
            answers=(change_answer,),
        ),
        "DELETE": Operation(
            objects.deleting(kind),
            f"Delete {with_article(kind)}.",
            parameters=(*parameters.DELETE, *CONDITIONAL_WRITE),
            answers=(AnswerDescription(204, f"The {kind} is gone.", headers=(parameters.POSITION,)),),
        ),
    }
    return Address(f"{BELOW}/{kind}s/{{id}}", operations, objects.TABLE)


def _collection(wire: Documents, path: str, root: str, name: str, *, filed: bool) -> Address[RepositoryContext]:
    title = f"{name.capitalize()} under folder" if filed else name.capitalize()
    endpoint, where = objects.listing(root, name, title, filed=filed), " of a folder" if filed else ""
    operations: Operations = {
        "GET": listing(wire, endpoint, f"List the {name}{where}.", typed=True, filed=filed),
        "POST": _create(wire, root, with_article(name.removesuffix("s")), filed=filed),
    }
    return Address(path, operations, objects.TABLE)


def _create(wire: Documents, root: str, what: str, *, filed: bool) -> Operation[RepositoryContext]:
    return Operation(
        new_objects.creating(root, filed=filed),
        f"Create {what} in a folder." if filed else f"Create {what}.",
        parameters=(*parameters.CREATE, *WRITE),
        refused=parameters.CREATE_REFUSED,
        body=wire.creation(JsonMetadata),
        answers=(AnswerDescription(201, "The new object.", wire.thing(ObjectDocument, "an object's kind"), _MADE),),
    )


def _wastebasket(wire: Documents) -> Addresses:
    discard = wire.thing(DeletedObjectDocument, "deleted-object")
    single: Operations = {
        "GET": showing(wastebasket.read, "Show a deleted object.", answer_of("The deleted object.", discard)),
        "DELETE": Operation(
            wastebasket.remove,
            "Remove a deleted object for good.",
            answers=(AnswerDescription(204, "It cannot be restored any more."),),
        ),
    }
    restoring = Operation(
        wastebasket.restore,
        "Restore a deleted object to its folders, or to a named one.",
        parameters=WRITE,
        body=wire.thing(JsonOptionalReference, "an object's kind"),
        answers=(AnswerDescription(201, "The object.", wire.thing(ObjectDocument, "an object's kind"), _MADE),),
    )
    return (
        Address(
            f"{BELOW}/wastebasket",
            {"GET": listing(wire, wastebasket.list_all, "List the deleted objects that can be restored.")},
            objects.TABLE,
        ),
        Address(f"{BELOW}/wastebasket/{{id}}", single, objects.TABLE),
        Address(f"{BELOW}/wastebasket/{{id}}/restore", {"POST": restoring}, objects.TABLE),
    )


def _folder_links(wire: Documents) -> Addresses:
    link, reference = wire.thing(FolderLinkDocument, "folder-link"), wire.thing(JsonReference, "an object's kind")
    link_answer = AnswerDescription(201, "The link.", link, (parameters.LOCATION, parameters.POSITION))

    def posting(end: folder_links.End, summary: str) -> Operation[RepositoryContext]:
        return Operation(folder_links.linking(end), summary, parameters=WRITE, body=reference, answers=(link_answer,))

    def single(end: folder_links.End) -> Operations:
        taken_out = AnswerDescription(204, "The object no longer lies in the folder.", headers=(parameters.POSITION,))
        return {
            "GET": showing(folder_links.reading(end), "Show a link.", answer_of("The link.", link)),
            "DELETE": Operation(
                folder_links.unlinking(end), "Take an object out of a folder.", parameters=WRITE, answers=(taken_out,)
            ),
        }

    moving = Operation(
        folder_links.move,
        "Move an object to another folder.",
        parameters=WRITE,
        body=reference,
        answers=(AnswerDescription(200, "The new link.", link, (parameters.POSITION,)),),
    )
    parents: Operations = {
        "GET": listing(wire, folder_links.list_parents, "List the folders in which an object lies."),
        "POST": posting("parent", "Put an object into a folder."),
    }
    children: Operations = {
        "GET": listing(wire, folder_links.list_children, "List the links of a folder to the objects in it."),
        "POST": posting("child", "Put an object into this folder."),
    }
    return (
        Address(f"{BELOW}/objects/{{id}}/parent-links", parents, objects.TABLE),
        Address(f"{BELOW}/objects/{{id}}/parent-links/{{other}}", {**single("parent"), "PUT": moving}, objects.TABLE),
        Address(f"{BELOW}/folders/{{id}}/child-links", children, objects.TABLE),
        Address(f"{BELOW}/folders/{{id}}/child-links/{{other}}", single("child"), objects.TABLE),
    )
