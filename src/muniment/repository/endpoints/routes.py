"""Every address of the repository, its methods, and the refusals it answers."""

from starlette.routing import Route

from muniment.repository.endpoints import acls, contents, discovery, objects, search, spelling, types
from muniment.repository.endpoints.half import ENTERING, Address, RepositoryHalf
from muniment.repository.refusals import (
    BadQuery,
    IndexBehind,
    IndexUnavailable,
    UnknownLink,
    UnknownProperty,
    UnknownType,
    WrongValue,
)
from muniment.web.answers import Endpoint, Said, Table

SEARCH: Table = {
    **ENTERING,
    BadQuery: Said(400, "E_BAD_QUERY"),
    UnknownType: Said(400, "E_INVALID_TYPE_NAME"),
    UnknownProperty: Said(400, "E_INVALID_ATTR_NAME"),
    WrongValue: Said(400, "E_INVALID_ATTR_VALUE"),
    UnknownLink: Said(404, "E_UNKNOWN_SEARCH"),
    IndexBehind: Said(503, "E_INDEX_BEHIND"),
    IndexUnavailable: Said(503, "E_INDEX_UNAVAILABLE"),
}

ADDRESSES = (
    Address("/repositories", {"GET": discovery.listing}, ENTERING),
    Address("/repositories/{repository}", {"GET": discovery.repository_resource}, ENTERING),
    Address("/repositories/{repository}/search", {"GET": search.by_keywords, "POST": search.by_document}, SEARCH),
)


def routes(half: RepositoryHalf) -> list[Route]:
    """Every route of the repository, under its prefix."""
    prefix, shape = f"/{half.options.names.prefix}", spelling.error_shape(half.options.names)
    return [
        Route(prefix + path, Endpoint(half, methods, table, shape))
        for path, methods, table in (
            *ADDRESSES,
            *objects.ADDRESSES,
            *contents.ADDRESSES,
            *acls.ADDRESSES,
            *types.ADDRESSES,
        )
    ]
