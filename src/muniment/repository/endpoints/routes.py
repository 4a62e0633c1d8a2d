"""Every address of the repository, its methods, and the refusals it answers."""

from starlette.routing import Route

from muniment.repository.endpoints import acls, contents, discovery, objects, search, spelling, types
from muniment.repository.endpoints.context import ENTERING, Address, RepositoryContext
from muniment.repository.refusals import (
    BadQuery,
    IndexBehind,
    IndexUnavailable,
    UnknownLink,
    UnknownProperty,
    UnknownType,
    WrongValue,
)
from muniment.web.responses import Endpoint, ErrorCode, Table

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

ADDRESSES = (
    Address("/repositories", {"GET": discovery.listing}, ENTERING),
    Address("/repositories/{repository}", {"GET": discovery.repository_resource}, ENTERING),
    Address("/repositories/{repository}/search", {"GET": search.by_keywords, "POST": search.by_document}, SEARCH),
)


def routes(context: RepositoryContext) -> list[Route]:
    """Every route of the repository, under its prefix."""
    prefix, shape = f"/{context.options.names.prefix}", spelling.error_shape(context.options.names)
    return [
        Route(prefix + path, Endpoint(context, methods, table, shape))
        for path, methods, table in (
            *ADDRESSES,
            *objects.ADDRESSES,
            *contents.ADDRESSES,
            *acls.ADDRESSES,
            *types.ADDRESSES,
        )
    ]
