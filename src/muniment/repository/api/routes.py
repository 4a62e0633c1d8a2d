"""Every address of the repository in one list: what answers it, what it gives and takes, and what it refuses.

Sources: given 2.8 to 2.10; docs/interface.md, ours.
"""

import re
from functools import partial

from starlette.requests import Request
from starlette.routing import Route

from muniment.repository.api import rows
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.endpoints import discovery, protected_resource
from muniment.repository.api.endpoints.discovery import LinkTarget
from muniment.repository.api.endpoints.people import people
from muniment.repository.api.endpoints.permissions import acls
from muniment.repository.api.endpoints.protected_resource import ProtectedResource
from muniment.repository.api.endpoints.search import dql, federated_search
from muniment.repository.api.operations import BELOW, Addresses, Family, Form, Row, addresses, content
from muniment.repository.api.wire import codes, parameters, spelling
from muniment.repository.api.wire.documents import (
    ErrorDocument,
    FeedDocument,
    HomeDocument,
    ProductInfoDocument,
    RepositoryDocument,
)
from muniment.repository.options import RepositoryNames
from muniment.web.addresses import Address, AddressTable, AnswerDescription, CredentialKind, ErrorShape, Operation

_NOTE = (
    "Every address that answers a document also takes `.json` or `.xml` after it, which chooses the media type. "
    "Every address answers OPTIONS with its methods in `Allow`. A query parameter that an address does not know is "
    f"ignored, and the header `{parameters.IGNORED.name}` names it."
)

_NAME = re.compile(r"[a-z-]+")


def table(names: RepositoryNames) -> AddressTable[RepositoryContext]:
    further = addresses(rows.FAMILIES, names)
    return AddressTable(
        "repository",
        f"/{names.prefix}",
        (*_beginning(names, further), *further),
        ErrorShape("repository", spelling.error_shape(names), content(ErrorDocument, names), spelling.error_code),
        CredentialKind.CALLER,
        parameters.PARTS,
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


def _beginning(names: RepositoryNames, further: Addresses) -> Addresses:
    """Link a repository to those that ``_link_targets`` lists."""
    targets, anybody = _link_targets(further, BELOW), CredentialKind.NONE
    lister, show = (partial(each, targets=targets) for each in (discovery.list_repositories, discovery.show))
    beginning = addresses(
        (
            Family(codes.ENTERING, Row("GET /product-info", discovery.product_info, ProductInfoDocument), of=anybody),
            Family(codes.LISTING, Row("GET /repositories", lister, FeedDocument), of=anybody),
            Family(
                codes.SEARCHES,
                Row(
                    "GET /search",
                    federated_search.by_keywords,
                    FeedDocument,
                    parameters=parameters.KEYWORD_SEARCH_OF_SEVERAL,
                ),
                Row(
                    "POST /search",
                    federated_search.by_document,
                    FeedDocument,
                    Form.QUERY,
                    parameters=parameters.DOCUMENT_SEARCH_OF_SEVERAL,
                ),
            ),
        ),
        names,
        below="",
    )
    home = partial(discovery.home, targets=_link_targets(beginning, ""))
    return [
        *addresses((Family(codes.ENTERING, Row("GET /services", home, HomeDocument), of=anybody),), names, below=""),
        *beginning,
        *addresses(
            (
                Family(
                    codes.DQL,
                    Row(
                        "GET ",
                        partial(dql.show_repository, otherwise=show),
                        (RepositoryDocument, FeedDocument),
                        parameters=parameters.REPOSITORY,
                    ),
                ),
            ),
            names,
        ),
    ]


def _link_targets(addresses: Addresses, base: str) -> tuple[LinkTarget, ...]:
    """Documents link to addresses with one fixed name, and no more, after ``base``."""
    return tuple(
        LinkTarget(name, sorted(address.operations), _read_as(address))
        for address in addresses
        if _NAME.fullmatch(name := address.path.removeprefix(f"{base}/"))
    )


def _read_as(address: Address[RepositoryContext]) -> tuple[str, ...]:
    answers = address.operations["GET"].answers if "GET" in address.operations else ()
    return tuple(dict.fromkeys(media_type for answer in answers for media_type in answer.content))


def metadata_table(names: RepositoryNames, root: str) -> AddressTable[RepositoryContext]:
    """Make the table of what stands at the root of the host about each repository (RFC 9728 3.1)."""
    content = {"application/json": ProtectedResource}
    shown = Operation(protected_resource.describe, answers=(AnswerDescription(200, "Who lets callers in.", content),))
    path = f"{spelling.WELL_KNOWN}{root}/{names.prefix}/repositories/{{repository}}"
    own = table(names)
    return AddressTable(
        "repository metadata",
        "",
        (Address(path, {"GET": shown}, codes.ENTERING),),
        own.shape,
        CredentialKind.NONE,
        tuple(part for part in parameters.PARTS if part.name == "repository"),
    )


def routes(context: RepositoryContext) -> list[Route]:
    metadata = metadata_table(context.names, context.root).routes(context)
    return [*table(context.names).routes(context), *metadata]
