"""Every address of the repository in one list: what answers it, what it takes and gives, and what it refuses."""

import re

from starlette.requests import Request
from starlette.routing import Route

from muniment.repository.endpoints import catalogues, discovery, parameters, spelling
from muniment.repository.endpoints.batches import batch_routes
from muniment.repository.endpoints.contents import content_routes
from muniment.repository.endpoints.context import ENTERING, RepositoryContext
from muniment.repository.endpoints.discovery import LinkTarget
from muniment.repository.endpoints.documents import (
    Documents,
    FormatDocument,
    HomeDocument,
    IndexReportDocument,
    ProductInfoDocument,
    RepositoryDocument,
)
from muniment.repository.endpoints.objects import object_routes, relation_routes, version_routes
from muniment.repository.endpoints.operations import BELOW, Addresses, Operations, answer_of, listing, showing
from muniment.repository.endpoints.people import people, people_routes
from muniment.repository.endpoints.permissions import acl_routes, acls
from muniment.repository.endpoints.saved import saved_routes
from muniment.repository.endpoints.search import dql, facets, index_report, search_routes
from muniment.repository.endpoints.types import type_routes
from muniment.repository.options import RepositoryNames
from muniment.web.addresses import Address, AddressTable, AnswerDescription, CredentialKind, Operation

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
    parameters.RELATION_TYPE,
    parameters.FORMAT_NAME,
    parameters.OTHER_END,
    parameters.PERSON,
    parameters.MEMBER,
    parameters.SAVED_SEARCH,
    parameters.SEARCH_TEMPLATE,
)

_NAME = re.compile(r"[a-z-]+")


def table(names: RepositoryNames) -> AddressTable[RepositoryContext]:
    """List every address below the repository's prefix."""
    wire = Documents(names)
    further_addresses = (
        *search_routes.of_one(wire, BELOW),
        *object_routes.addresses(wire),
        *content_routes.addresses(wire),
        *version_routes.addresses(wire),
        *acl_routes.addresses(wire),
        *people_routes.addresses(wire),
        *saved_routes.addresses(wire, BELOW),
        *relation_routes.addresses(wire),
        *batch_routes.addresses(wire),
        _index_report(wire),
        *_catalogues(wire),
        Address(
            f"{BELOW}/supported-facets",
            {"GET": listing(wire, facets.list_all, "List the properties by whose values hits can be counted.")},
            facets.LISTING,
        ),
        *type_routes.addresses(wire),
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
        finders={
            "repository": discovery.has_name,
            "acl": acls.has_name,
            "person": people.has_name,
            "member": people.has_name,
        },
    )


def _check(request: Request, operation: Operation[RepositoryContext], context: RepositoryContext) -> None:
    parameters.check(request, operation, strict=context.options.strict_parameters)
    spelling.check_body(request, operation.body)


def _beginning(wire: Documents, further_addresses: Addresses) -> Addresses:
    """List the addresses with which a client begins.

    The document of a repository links to those ``further_addresses`` that ``_link_targets`` lists.
    """
    info = showing(
        discovery.product_info,
        "Show the name and the release of the product.",
        answer_of("The product.", wire.thing(ProductInfoDocument, "product-info")),
    )
    targets = _link_targets(further_addresses, BELOW)
    repositories = listing(wire, discovery.listing_of(targets), "List the repositories.")
    searching = search_routes.of_several(wire)
    addresses = (
        Address("/product-info", {"GET": info}, ENTERING, credentials=CredentialKind.NONE),
        Address("/repositories", {"GET": repositories}, discovery.LISTING, credentials=CredentialKind.NONE),
    )
    home = showing(
        discovery.home(_link_targets((*addresses, searching), "")),
        "Show where a client begins.",
        answer_of("The home document.", wire.home(HomeDocument)),
    )
    single = Operation(
        dql.answering(discovery.repository_resource(targets)),
        "Show a repository, and where its services are; or the rows that a statement in DQL selects.",
        parameters=parameters.REPOSITORY_PARAMETERS,
        refused=parameters.REPOSITORY_REFUSED,
        answers=(answer_of("The repository, or the rows.", wire.thing_or_rows(RepositoryDocument, "repository")),),
    )
    return (
        Address("/services", {"GET": home}, ENTERING, credentials=CredentialKind.NONE),
        *addresses,
        searching,
        Address(BELOW, {"GET": single}, search_routes.DQL),
    )


def _link_targets(addresses: Addresses, base: str) -> tuple[LinkTarget, ...]:
    """List the addresses to which a document can link: those with one fixed name, and no more, after ``base``."""
    return tuple(
        LinkTarget(name, sorted(address.operations), _read_as(address))
        for address in addresses
        if _NAME.fullmatch(name := address.path.removeprefix(f"{base}/"))
    )


def _read_as(address: Address[RepositoryContext]) -> tuple[str, ...]:
    """List the media types in which an address answers a GET."""
    answers = address.operations["GET"].answers if "GET" in address.operations else ()
    return tuple(dict.fromkeys(media_type for answer in answers for media_type in answer.content))


def routes(context: RepositoryContext) -> list[Route]:
    """List every route of the repository, under its prefix."""
    return table(context.options.names).routes(context)


def _index_report(wire: Documents) -> Address[RepositoryContext]:
    report = wire.thing(IndexReportDocument, "index-report")
    operations: Operations = {
        "GET": showing(
            index_report.read, "Show the results of the checks of the index.", answer_of("The results.", report)
        ),
        "POST": Operation(
            index_report.want,
            "Start a check of the index.",
            parameters=(parameters.REPAIR,),
            answers=(AnswerDescription(202, "The index agents will check it.", report),),
        ),
    }
    return Address(f"{BELOW}/index-report", operations, ENTERING)


def _catalogues(wire: Documents) -> tuple[Address[RepositoryContext], ...]:
    single = showing(
        catalogues.read_format,
        "Show a format of contents.",
        answer_of("The format.", wire.thing(FormatDocument, "format")),
    )
    empty = (
        Address(
            f"{BELOW}/{name}",
            {"GET": listing(wire, catalogues.nothing(name), f"List the {title.lower()}, of which there are none.")},
            catalogues.LISTING,
        )
        for name, title in catalogues.EMPTY.items()
    )
    return (
        Address(
            f"{BELOW}/formats",
            {"GET": listing(wire, catalogues.list_formats, "List the names of formats.")},
            catalogues.LISTING,
        ),
        Address(f"{BELOW}/formats/{{format}}", {"GET": single}, catalogues.SINGLE),
        *empty,
    )
