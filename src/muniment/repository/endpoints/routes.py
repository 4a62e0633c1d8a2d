"""Every address of the repository on one page: what answers it, what it takes and gives, and what it refuses."""

from starlette.routing import Route

from muniment.repository.endpoints import acls, contents, discovery, objects, parameters, search, types
from muniment.repository.endpoints.acls import AclBody
from muniment.repository.endpoints.context import ENTERING, Answering, RepositoryContext
from muniment.repository.endpoints.documents import (
    AclDocument,
    ContentDocument,
    Documents,
    IndexStatusDocument,
    ObjectDocument,
    PermissionSetDocument,
    RepositoryDocument,
    TypeDocument,
)
from muniment.repository.endpoints.object_body import JsonMetadata
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import (
    BadQuery,
    IndexBehind,
    IndexUnavailable,
    UnknownLink,
    UnknownProperty,
    UnknownType,
    WrongValue,
)
from muniment.web.addresses import BINARY, Address, AddressTable, AnswerDescription, Content, CredentialKind, Operation
from muniment.web.responses import ErrorCode, Table

SEARCH: Table = {
    **ENTERING,
    BadQuery: ErrorCode(400, "E_BAD_QUERY"),
    UnknownType: ErrorCode(400, "E_INVALID_TYPE_NAME"),
    UnknownProperty: ErrorCode(400, "E_INVALID_ATTR_NAME"),
    WrongValue: ErrorCode(400, "E_INVALID_ATTR_VALUE"),
    UnknownLink: ErrorCode(404, "E_UNKNOWN_SEARCH"),
    IndexBehind: ErrorCode(503, "E_INDEX_BEHIND"),
    IndexUnavailable: ErrorCode(503, "E_INDEX_UNAVAILABLE"),
}

BELOW = "/repositories/{repository}"
"""What the path of every address below a repository begins with, after the prefix."""

_PARTS = (parameters.REPOSITORY, parameters.OBJECT_ID, parameters.ACL, parameters.TYPE_NAME)
_WRITE = (parameters.PLAIN_POSITION,)
_CONDITIONAL_WRITE = (parameters.IF_MATCH, parameters.PLAIN_POSITION)
_MADE = (parameters.LOCATION, parameters.ETAG, parameters.POSITION)
_UNCHANGED = AnswerDescription(304, "The caller has it already.", headers=(parameters.ETAG,))

Operations = dict[str, Operation[RepositoryContext]]


def table(names: RepositoryNames) -> AddressTable[RepositoryContext]:
    """List every address below the repository's prefix."""
    wire = Documents(names)
    return AddressTable(
        "repository",
        f"/{names.prefix}",
        (
            Address(
                "/repositories",
                {"GET": _list(wire, discovery.listing, "List the repositories.", CredentialKind.NONE)},
                ENTERING,
            ),
            Address(
                BELOW,
                {
                    "GET": Operation(
                        discovery.repository_resource,
                        "Show a repository, and where its services are.",
                        answers=(_found("The repository.", wire.thing(RepositoryDocument, "repository")),),
                    )
                },
                ENTERING,
            ),
            Address(
                f"{BELOW}/search",
                {
                    "GET": Operation(
                        search.by_keywords,
                        "Search by keywords, or turn a page of a posted search.",
                        parameters=(*parameters.KEYWORD_SEARCH, parameters.PLAIN_POSITION),
                        answers=(_hits(wire),),
                    ),
                    "POST": Operation(
                        search.by_document,
                        "Search by a query document.",
                        parameters=(*parameters.SEARCH, parameters.PLAIN_POSITION),
                        body=wire.query,
                        answers=(_hits(wire),),
                    ),
                },
                SEARCH,
            ),
            *_objects(wire),
            *_contents(wire),
            *_acls(wire),
            Address(
                f"{BELOW}/types",
                {"GET": _list(wire, types.list_all, "List the object types.", typed=True)},
                types.TABLE,
            ),
            Address(
                f"{BELOW}/types/{{name}}",
                {
                    "GET": Operation(
                        types.read,
                        "Show an object type with its properties.",
                        answers=(_found("The object type.", wire.thing(TypeDocument, "type")),),
                    )
                },
                types.TABLE,
            ),
        ),
        wire.errors,
        CredentialKind.BEARER,
        _PARTS,
    )


def routes(context: RepositoryContext) -> list[Route]:
    """List every route of the repository, under its prefix."""
    return table(context.options.names).routes(context)


def _objects(wire: Documents) -> tuple[Address[RepositoryContext], ...]:
    return (
        _collection(wire, f"{BELOW}/cabinets", "cabinet", "cabinets", filed=False),
        Address(f"{BELOW}/objects", {"POST": _create(wire, "sysobject", "an object", filed=False)}, objects.TABLE),
        *(_single(wire, kind) for kind in ("object", "document", "folder", "cabinet")),
        _collection(wire, f"{BELOW}/folders/{{id}}/folders", "folder", "folders", filed=True),
        _collection(wire, f"{BELOW}/folders/{{id}}/documents", "document", "documents", filed=True),
        _collection(wire, f"{BELOW}/folders/{{id}}/objects", "sysobject", "objects", filed=True),
    )


def _single(wire: Documents, kind: str) -> Address[RepositoryContext]:
    shown = _found(f"The {kind}.", wire.thing(ObjectDocument, kind))
    changed = AnswerDescription(200, shown.meaning, shown.content, (parameters.ETAG, parameters.POSITION))
    operations: Operations = {
        "GET": Operation(
            objects.reading(kind),
            f"Show {_a(kind)}.",
            parameters=(parameters.IF_NONE_MATCH,),
            answers=(AnswerDescription(200, shown.meaning, shown.content, (parameters.ETAG,)), _UNCHANGED),
        ),
        "POST": Operation(
            objects.changing(kind),
            f"Change properties of {_a(kind)}.",
            parameters=_CONDITIONAL_WRITE,
            body=wire.thing(JsonMetadata, kind),
            answers=(changed,),
        ),
        "DELETE": Operation(
            objects.deleting(kind),
            f"Delete {_a(kind)}.",
            parameters=(*parameters.DELETE, *_CONDITIONAL_WRITE),
            answers=(AnswerDescription(204, f"The {kind} is gone.", headers=(parameters.POSITION,)),),
        ),
    }
    return Address(f"{BELOW}/{kind}s/{{id}}", operations, objects.TABLE)


def _collection(wire: Documents, path: str, root: str, name: str, *, filed: bool) -> Address[RepositoryContext]:
    title = f"{name.capitalize()} under folder" if filed else name.capitalize()
    listed, where = objects.listing(root, name, title, filed=filed), " of a folder" if filed else ""
    operations: Operations = {
        "GET": _list(wire, listed, f"List the {name}{where}.", typed=True),
        "POST": _create(wire, root, _a(name.removesuffix("s")), filed=filed),
    }
    return Address(path, operations, objects.TABLE)


def _contents(wire: Documents) -> tuple[Address[RepositoryContext], ...]:
    content, status = wire.thing(ContentDocument, "content"), wire.thing(IndexStatusDocument, "index-status")
    replaced = AnswerDescription(201, "The content is replaced.", content, (parameters.LOCATION, parameters.POSITION))
    operations: Operations = {
        "GET": _list(wire, contents.list_all, "List the content of an object."),
        "POST": Operation(
            contents.replace,
            "Replace the content of an object.",
            parameters=(*parameters.REPLACE, *_CONDITIONAL_WRITE),
            body={"*/*": BINARY},
            answers=(replaced,),
        ),
    }
    media: Operations = {
        "GET": Operation(
            contents.media,
            "Download the content of an object, whole or one range of it.",
            parameters=(*parameters.MEDIA, parameters.IF_NONE_MATCH, parameters.RANGE, parameters.IF_RANGE),
            answers=(
                AnswerDescription(200, "The content.", {"*/*": BINARY}, (parameters.ETAG,)),
                AnswerDescription(206, "The range that was asked for.", {"*/*": BINARY}, (parameters.ETAG,)),
                _UNCHANGED,
            ),
        )
    }
    described: Operations = {
        "GET": Operation(
            contents.describe,
            "Describe the content of an object.",
            parameters=parameters.DESCRIPTION,
            answers=(_found("The description.", content),),
        )
    }
    read: Operations = {
        "GET": Operation(
            contents.index_status,
            "Show how far the text of an object is.",
            answers=(_found("How far it is.", status),),
        )
    }
    return (
        Address(f"{BELOW}/objects/{{id}}/contents", operations, contents.TABLE),
        Address(f"{BELOW}/objects/{{id}}/contents/content", described, contents.TABLE),
        Address(f"{BELOW}/objects/{{id}}/content-media", media, contents.TABLE),
        Address(f"{BELOW}/objects/{{id}}/index-status", read, contents.TABLE),
    )


def _acls(wire: Documents) -> tuple[Address[RepositoryContext], ...]:
    acl, sent = wire.thing(AclDocument, "acl"), wire.thing(AclBody, "acl")
    permissions = _found("The permission set.", wire.thing(PermissionSetDocument, "permission-set"))
    made = AnswerDescription(201, "The new ACL.", acl, (parameters.LOCATION,))
    every: Operations = {
        "GET": _list(wire, acls.list_all, "List the ACLs that the caller may see."),
        "POST": Operation(acls.make, "Make an ACL, which the caller owns.", body=sent, answers=(made,)),
    }
    single: Operations = {
        "GET": Operation(acls.read, "Show an ACL.", answers=(_found("The ACL.", acl),)),
        "POST": Operation(
            acls.change, "Replace the entries of an ACL.", body=sent, answers=(_found("The changed ACL.", acl),)
        ),
        "DELETE": Operation(
            acls.remove,
            "Remove an ACL that no object carries.",
            parameters=(parameters.FORCE,),
            answers=(AnswerDescription(204, "The ACL is gone."),),
        ),
    }
    of_object: Operations = {
        "GET": Operation(
            acls.permission_set, "Show the ACL of an object, and what it permits.", answers=(permissions,)
        ),
        "PUT": Operation(
            acls.assign,
            "Assign another ACL to an object.",
            parameters=_WRITE,
            body=sent,
            answers=(AnswerDescription(200, permissions.meaning, permissions.content, (parameters.POSITION,)),),
        ),
    }
    return (
        Address(f"{BELOW}/acls", every, acls.TABLE),
        Address(f"{BELOW}/acls/{{acl}}", single, acls.TABLE),
        Address(f"{BELOW}/objects/{{id}}/permission-set", of_object, acls.ASSIGNING),
    )


def _list(
    wire: Documents,
    endpoint: Answering,
    summary: str,
    credentials: CredentialKind | None = None,
    *,
    typed: bool = False,
) -> Operation[RepositoryContext]:
    return Operation(
        endpoint,
        summary,
        parameters=parameters.TYPED_LIST if typed else parameters.LIST,
        answers=(_found("A page of the list.", wire.feed),),
        credentials=credentials,
    )


def _create(wire: Documents, root: str, what: str, *, filed: bool) -> Operation[RepositoryContext]:
    return Operation(
        objects.creating(root, filed=filed),
        f"Create {what} in a folder." if filed else f"Create {what}.",
        parameters=(*parameters.CREATE, *_WRITE),
        body=wire.creation(JsonMetadata),
        answers=(AnswerDescription(201, "The new object.", wire.thing(ObjectDocument, "an object's kind"), _MADE),),
    )


def _hits(wire: Documents) -> AnswerDescription:
    return AnswerDescription(200, "A page of hits.", wire.feed, (parameters.POSITION,))


def _found(meaning: str, content: Content) -> AnswerDescription:
    return AnswerDescription(200, meaning, content)


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
