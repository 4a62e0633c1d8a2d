"""Every address of the repository on one page: what answers it, what it takes and gives, and what it refuses."""

import re

from starlette.requests import Request
from starlette.routing import Route

from muniment.repository.endpoints import (
    acls,
    catalogues,
    contents,
    discovery,
    facets,
    folder_links,
    index_report,
    new_objects,
    objects,
    parameters,
    people,
    saved_routes,
    search_routes,
    spelling,
    types,
)
from muniment.repository.endpoints.acls import AclBody
from muniment.repository.endpoints.context import ENTERING, Answering, RepositoryContext
from muniment.repository.endpoints.discovery import LinkTarget
from muniment.repository.endpoints.documents import (
    AclDocument,
    ContentDocument,
    Documents,
    FolderLinkDocument,
    FormatDocument,
    HomeDocument,
    IndexReportDocument,
    IndexStatusDocument,
    ObjectDocument,
    PermissionSetDocument,
    PersonDocument,
    ProductInfoDocument,
    RepositoryDocument,
    TypeDocument,
)
from muniment.repository.endpoints.object_body import JsonMetadata, JsonReference
from muniment.repository.options import RepositoryNames
from muniment.repository.people import Kind
from muniment.web.addresses import BINARY, Address, AddressTable, AnswerDescription, Content, CredentialKind, Operation

BELOW = "/repositories/{repository}"
"""What the path of every address below a repository begins with, after the prefix."""

_NOTE = (
    "Every address that answers a document also takes `.json` or `.xml` after it, which chooses the media type. "
    "Every address answers OPTIONS with its methods in `Allow`. A query parameter that an address does not know is "
    f"ignored, and the header `{parameters.IGNORED.name}` names it."
)
_PARTS = (
    parameters.REPOSITORY,
    parameters.OBJECT_ID,
    parameters.ACL,
    parameters.TYPE_NAME,
    parameters.FORMAT_NAME,
    parameters.OTHER_END,
    parameters.PERSON,
    parameters.SAVED_SEARCH,
    parameters.SEARCH_TEMPLATE,
)
_WRITE = (parameters.PLAIN_POSITION,)
_CONDITIONAL_WRITE = (parameters.IF_MATCH, parameters.PLAIN_POSITION)
_MADE = (parameters.LOCATION, parameters.ETAG, parameters.POSITION)
_UNCHANGED = AnswerDescription(304, "The caller has it already.", headers=(parameters.ETAG,))

_NAME = re.compile(r"[a-z-]+")

Operations = dict[str, Operation[RepositoryContext]]
Addresses = tuple[Address[RepositoryContext], ...]


def table(names: RepositoryNames) -> AddressTable[RepositoryContext]:
    """List every address below the repository's prefix."""
    wire = Documents(names)
    further_addresses = (
        *search_routes.of_one(wire, BELOW),
        *_objects(wire),
        *_folder_links(wire),
        *_contents(wire),
        *_acls(wire),
        *_people(wire),
        *saved_routes.addresses(wire, BELOW),
        _index_report(wire),
        *_catalogues(wire),
        Address(
            f"{BELOW}/supported-facets",
            {"GET": _list(wire, facets.list_all, "List the properties by whose values hits can be counted.")},
            facets.LISTING,
        ),
        Address(
            f"{BELOW}/types",
            {"GET": _list(wire, types.list_all, "List the object types.", typed=True)},
            types.TABLE,
        ),
        Address(
            f"{BELOW}/types/{{name}}",
            {
                "GET": _show(
                    types.read,
                    "Show an object type with its properties.",
                    _answer_of("The object type.", wire.thing(TypeDocument, "type")),
                )
            },
            types.TABLE,
        ),
    )
    return AddressTable(
        "repository",
        f"/{names.prefix}",
        (*_beginning(wire, further_addresses), *further_addresses),
        wire.errors,
        CredentialKind.CALLER,
        _PARTS,
        note=_NOTE,
        check=_check,
        options=True,
        suffixed=True,
        finders={"repository": discovery.has_name, "acl": acls.has_name, "person": people.has_name},
    )


def _check(request: Request, operation: Operation[RepositoryContext], context: RepositoryContext) -> None:
    parameters.check(request, operation, strict=context.options.strict_parameters)
    spelling.check_body(request, operation.body)


def _beginning(wire: Documents, further_addresses: Addresses) -> Addresses:
    """List the addresses with which a client begins; they lead to each other and to the ``further_addresses``."""
    info = _show(
        discovery.product_info,
        "Show the name and the release of the product.",
        _answer_of("The product.", wire.thing(ProductInfoDocument, "product-info")),
    )
    targets = _link_targets(further_addresses, BELOW)
    repositories = _list(wire, discovery.listing_of(targets), "List the repositories.")
    searching = search_routes.of_several(wire)
    addresses = (
        Address("/product-info", {"GET": info}, ENTERING, credentials=CredentialKind.NONE),
        Address("/repositories", {"GET": repositories}, discovery.LISTING, credentials=CredentialKind.NONE),
    )
    home = _show(
        discovery.home(_link_targets((*addresses, searching), "")),
        "Show where a client begins.",
        _answer_of("The home document.", wire.home(HomeDocument)),
    )
    single = Operation(
        discovery.repository_resource(targets),
        "Show a repository, and where its services are.",
        parameters=(parameters.LINKS,),
        refused=parameters.REPOSITORY_REFUSED,
        answers=(_answer_of("The repository.", wire.thing(RepositoryDocument, "repository")),),
    )
    return (
        Address("/services", {"GET": home}, ENTERING, credentials=CredentialKind.NONE),
        *addresses,
        searching,
        Address(BELOW, {"GET": single}, ENTERING),
    )


def _link_targets(addresses: Addresses, base: str) -> tuple[LinkTarget, ...]:
    """List the addresses directly below ``base`` that have no placeholder, so that a document can link to them."""
    return tuple(
        LinkTarget(name, sorted(address.operations), _read_as(address))
        for address in addresses
        if _NAME.fullmatch(name := address.path.removeprefix(f"{base}/"))
    )


def _read_as(address: Address[RepositoryContext]) -> tuple[str, ...]:
    """List the media types in which an address is read."""
    answers = address.operations["GET"].answers if "GET" in address.operations else ()
    return tuple(dict.fromkeys(media_type for answer in answers for media_type in answer.content))


def routes(context: RepositoryContext) -> list[Route]:
    """List every route of the repository, under its prefix."""
    return table(context.options.names).routes(context)


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
    object_answer = _answer_of(f"The {kind}.", wire.thing(ObjectDocument, kind))
    change_answer = AnswerDescription(
        200, object_answer.meaning, object_answer.content, (parameters.ETAG, parameters.POSITION)
    )
    operations: Operations = {
        "GET": Operation(
            objects.reading(kind),
            f"Show {_a(kind)}.",
            parameters=(*parameters.SHOWING, parameters.IF_NONE_MATCH),
            refused=parameters.SHOWING_REFUSED,
            answers=(
                AnswerDescription(200, object_answer.meaning, object_answer.content, (parameters.ETAG,)),
                _UNCHANGED,
            ),
        ),
        "POST": Operation(
            objects.changing(kind),
            f"Change properties of {_a(kind)}.",
            parameters=_CONDITIONAL_WRITE,
            body=wire.thing(JsonMetadata, kind),
            answers=(change_answer,),
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
    endpoint, where = objects.listing(root, name, title, filed=filed), " of a folder" if filed else ""
    operations: Operations = {
        "GET": _list(wire, endpoint, f"List the {name}{where}.", typed=True, filed=filed),
        "POST": _create(wire, root, _a(name.removesuffix("s")), filed=filed),
    }
    return Address(path, operations, objects.TABLE)


def _folder_links(wire: Documents) -> Addresses:
    link, reference = wire.thing(FolderLinkDocument, "folder-link"), wire.thing(JsonReference, "an object's kind")
    link_answer = AnswerDescription(201, "The link.", link, (parameters.LOCATION, parameters.POSITION))

    def posting(end: folder_links.End, summary: str) -> Operation[RepositoryContext]:
        return Operation(folder_links.linking(end), summary, parameters=_WRITE, body=reference, answers=(link_answer,))

    def single(end: folder_links.End) -> Operations:
        no_folder = AnswerDescription(204, "The object lies in no folder.", headers=(parameters.POSITION,))
        return {
            "GET": _show(folder_links.reading(end), "Show a link.", _answer_of("The link.", link)),
            "DELETE": Operation(
                folder_links.unlinking(end), "Take an object out of a folder.", parameters=_WRITE, answers=(no_folder,)
            ),
        }

    moving = Operation(
        folder_links.move,
        "Move an object to another folder.",
        parameters=_WRITE,
        body=reference,
        answers=(AnswerDescription(200, "The new link.", link, (parameters.POSITION,)),),
    )
    parents: Operations = {
        "GET": _list(wire, folder_links.list_parents, "List the folder in which an object lies."),
        "POST": posting("parent", "Put an object into a folder."),
    }
    children: Operations = {
        "GET": _list(wire, folder_links.list_children, "List the links of a folder to what lies in it."),
        "POST": posting("child", "Put an object into this folder."),
    }
    return (
        Address(f"{BELOW}/objects/{{id}}/parent-links", parents, objects.TABLE),
        Address(f"{BELOW}/objects/{{id}}/parent-links/{{other}}", {**single("parent"), "PUT": moving}, objects.TABLE),
        Address(f"{BELOW}/folders/{{id}}/child-links", children, objects.TABLE),
        Address(f"{BELOW}/folders/{{id}}/child-links/{{other}}", single("child"), objects.TABLE),
    )


def _contents(wire: Documents) -> Addresses:
    content, status = wire.thing(ContentDocument, "content"), wire.thing(IndexStatusDocument, "index-status")
    replacement = AnswerDescription(
        201, "The content is replaced.", content, (parameters.LOCATION, parameters.POSITION)
    )
    operations: Operations = {
        "GET": _list(wire, contents.list_all, "List the content of an object."),
        "POST": Operation(
            contents.replace,
            "Replace the content of an object.",
            parameters=(*parameters.REPLACE, *_CONDITIONAL_WRITE),
            refused=parameters.REPLACE_REFUSED,
            body={"*/*": BINARY},
            answers=(replacement,),
        ),
    }
    media: Operations = {
        "GET": Operation(
            contents.media,
            "Download the content of an object, whole or one range of it.",
            parameters=(*parameters.MEDIA, parameters.IF_NONE_MATCH, parameters.RANGE, parameters.IF_RANGE),
            refused=parameters.MEDIA_REFUSED,
            answers=(
                AnswerDescription(200, "The content.", {"*/*": BINARY}, (parameters.ETAG,)),
                AnswerDescription(206, "The range that was asked for.", {"*/*": BINARY}, (parameters.ETAG,)),
                _UNCHANGED,
            ),
        )
    }
    content_operations: Operations = {
        "GET": Operation(
            contents.describe,
            "Describe the content of an object.",
            parameters=parameters.DESCRIPTION,
            refused=parameters.DESCRIPTION_REFUSED,
            answers=(_answer_of("The description.", content),),
        )
    }
    read: Operations = {
        "GET": _show(
            contents.index_status, "Show how far the text of an object is.", _answer_of("How far it is.", status)
        )
    }
    return (
        Address(f"{BELOW}/objects/{{id}}/contents", operations, contents.TABLE),
        Address(f"{BELOW}/objects/{{id}}/contents/content", content_operations, contents.TABLE),
        Address(f"{BELOW}/objects/{{id}}/content-media", media, contents.TABLE),
        Address(f"{BELOW}/objects/{{id}}/index-status", read, contents.TABLE),
    )


def _index_report(wire: Documents) -> Address[RepositoryContext]:
    report = wire.thing(IndexReportDocument, "index-report")
    operations: Operations = {
        "GET": _show(
            index_report.read, "Show what the checks of the index found.", _answer_of("What they found.", report)
        ),
        "POST": Operation(
            index_report.want,
            "Start a check of the index.",
            parameters=(parameters.REPAIR,),
            answers=(AnswerDescription(202, "The index agents will check it.", report),),
        ),
    }
    return Address(f"{BELOW}/index-report", operations, ENTERING)


def _acls(wire: Documents) -> Addresses:
    acl, acl_body = wire.thing(AclDocument, "acl"), wire.thing(AclBody, "acl")
    permissions = _answer_of("The permission set.", wire.thing(PermissionSetDocument, "permission-set"))
    new_acl = AnswerDescription(201, "The new ACL.", acl, (parameters.LOCATION,))
    every: Operations = {
        "GET": _list(wire, acls.list_all, "List the ACLs that the caller may see."),
        "POST": Operation(acls.make, "Make an ACL, which the caller owns.", body=acl_body, answers=(new_acl,)),
    }
    single: Operations = {
        "GET": _show(acls.read, "Show an ACL.", _answer_of("The ACL.", acl)),
        "POST": Operation(
            acls.change, "Replace the entries of an ACL.", body=acl_body, answers=(_answer_of("The changed ACL.", acl),)
        ),
        "DELETE": Operation(
            acls.remove,
            "Remove an ACL that no object carries.",
            parameters=(parameters.FORCE,),
            answers=(AnswerDescription(204, "The ACL is gone."),),
        ),
    }
    of_object: Operations = {
        "GET": _show(acls.permission_set, "Show the ACL of an object, and what it permits.", permissions),
        "PUT": Operation(
            acls.assign,
            "Assign another ACL to an object.",
            parameters=_WRITE,
            body=acl_body,
            answers=(AnswerDescription(200, permissions.meaning, permissions.content, (parameters.POSITION,)),),
        ),
    }
    return (
        Address(f"{BELOW}/acls", every, acls.TABLE),
        Address(f"{BELOW}/acls/{{acl}}", single, acls.TABLE),
        Address(f"{BELOW}/objects/{{id}}/permission-set", of_object, acls.ASSIGNING),
    )


def _catalogues(wire: Documents) -> tuple[Address[RepositoryContext], ...]:
    single = _show(
        catalogues.read_format,
        "Show a format of contents.",
        _answer_of("The format.", wire.thing(FormatDocument, "format")),
    )
    empty = (
        Address(
            f"{BELOW}/{name}",
            {"GET": _list(wire, catalogues.nothing(name), f"List the {title.lower()}, of which there are none.")},
            catalogues.LISTING,
        )
        for name, title in catalogues.EMPTY.items()
    )
    return (
        Address(
            f"{BELOW}/formats",
            {"GET": _list(wire, catalogues.list_formats, "List the names of formats.")},
            catalogues.LISTING,
        ),
        Address(f"{BELOW}/formats/{{format}}", {"GET": single}, catalogues.SINGLE),
        *empty,
    )


def _people(wire: Documents) -> tuple[Address[RepositoryContext], ...]:
    def single(kind: Kind) -> Address[RepositoryContext]:
        answers = (_answer_of(f"The {kind}.", wire.thing(PersonDocument, kind)),)
        reading = Operation(people.reader(kind), f"Show a {kind} whom the repository lets in.", answers=answers)
        return Address(f"{BELOW}/{kind}s/{{person}}", {"GET": reading}, people.TABLE)

    def every(kind: Kind, path: str, where: str, *, of_group: bool = False) -> Address[RepositoryContext]:
        listing = _list(wire, people.lister(kind, of_group=of_group), f"List the {kind}s {where}.")
        return Address(f"{BELOW}/{path}", {"GET": listing}, people.TABLE)

    current = Operation(
        people.current_user,
        "Show the user who asks.",
        answers=(_answer_of("The user.", wire.thing(PersonDocument, "user")),),
    )
    return (
        every("user", "users", "whom the repository lets in"),
        every("group", "groups", "whom the repository lets in"),
        every("user", "groups/{person}/users", "directly in a group", of_group=True),
        every("group", "groups/{person}/groups", "directly in a group", of_group=True),
        single("user"),
        single("group"),
        Address(f"{BELOW}/currentuser", {"GET": current}, people.TABLE),
    )


def _list(
    wire: Documents, endpoint: Answering, summary: str, *, typed: bool = False, filed: bool = False
) -> Operation[RepositoryContext]:
    return Operation(
        endpoint,
        summary,
        parameters=parameters.TYPED_LIST if typed else parameters.LIST,
        refused=parameters.FOLDER_REFUSED if filed else parameters.LIST_REFUSED,
        answers=(_answer_of("A page of the list.", wire.feed),),
    )


def _show(endpoint: Answering, summary: str, answer: AnswerDescription) -> Operation[RepositoryContext]:
    return Operation(endpoint, summary, refused=parameters.SINGLE_REFUSED, answers=(answer,))


def _create(wire: Documents, root: str, what: str, *, filed: bool) -> Operation[RepositoryContext]:
    return Operation(
        new_objects.creating(root, filed=filed),
        f"Create {what} in a folder." if filed else f"Create {what}.",
        parameters=(*parameters.CREATE, *_WRITE),
        refused=parameters.CREATE_REFUSED,
        body=wire.creation(JsonMetadata),
        answers=(AnswerDescription(201, "The new object.", wire.thing(ObjectDocument, "an object's kind"), _MADE),),
    )


def _answer_of(meaning: str, content: Content) -> AnswerDescription:
    return AnswerDescription(200, meaning, content)


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
