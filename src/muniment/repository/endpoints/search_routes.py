"""The addresses of searches: what answers them, what they take and give, and what they refuse.

Source: given 2.8-2.10; docs/interface.md, ours 6.
"""

from muniment.repository.endpoints import explanations, federated_search, parameters, search, similar, suggestions
from muniment.repository.endpoints.context import ENTERING, RepositoryContext
from muniment.repository.endpoints.documents import Documents
from muniment.repository.refusals import (
    BadQuery,
    BadSort,
    IndexBehind,
    IndexUnavailable,
    UnknownLink,
    UnknownProperty,
    UnknownType,
    WrongValue,
)
from muniment.web.addresses import Address, AnswerDescription, Operation
from muniment.web.responses import ErrorCode, Table

SEARCH: Table = {
    **ENTERING,
    BadQuery: ErrorCode(400, "E_BAD_QUERY"),
    UnknownType: ErrorCode(400, "E_INVALID_TYPE_NAME"),
    UnknownProperty: ErrorCode(400, "E_INVALID_ATTR_NAME"),
    WrongValue: ErrorCode(400, "E_INVALID_ATTR_VALUE"),
    BadSort: ErrorCode(400, "E_BAD_SORT"),
    UnknownLink: ErrorCode(404, "E_UNKNOWN_SEARCH"),
    IndexBehind: ErrorCode(503, "E_INDEX_BEHIND"),
    IndexUnavailable: ErrorCode(503, "E_INDEX_UNAVAILABLE"),
}


def of_one(wire: Documents, prefix: str) -> tuple[Address[RepositoryContext], ...]:
    """List the addresses of searches in one repository; ``prefix`` is how the path of every address of a repository
    begins."""
    hits = AnswerDescription(200, "A page of hits.", wire.feed, (parameters.POSITION, parameters.WORDS_NEEDED))
    searching = Address(
        f"{prefix}/search",
        {
            "GET": Operation(
                search.by_keywords,
                "Search by keywords, or turn a page of a posted search.",
                parameters=(*parameters.KEYWORD_SEARCH, parameters.PLAIN_POSITION),
                answers=(hits,),
            ),
            "POST": Operation(
                search.by_document,
                "Search by a query document.",
                parameters=(*parameters.SEARCH, parameters.PLAIN_POSITION),
                refused=parameters.DOCUMENT_SEARCH_REFUSED,
                body=wire.query,
                answers=(hits,),
            ),
        },
        SEARCH,
    )
    return (
        searching,
        explanations.address_below(wire, prefix, SEARCH),
        suggestions.address_below(wire, prefix, SEARCH),
        similar.address_below(wire, prefix, SEARCH),
    )


def of_several(wire: Documents) -> Address[RepositoryContext]:
    """Describe the address of the search of several repositories."""
    headers = (parameters.PARTIAL, parameters.WORDS_NEEDED)
    hits = AnswerDescription(200, "Hits of each repository, in one order.", wire.feed, headers)
    return Address(
        "/search",
        {
            "GET": Operation(
                federated_search.by_keywords,
                "Search several repositories by keywords, or turn a page of a posted search.",
                parameters=parameters.KEYWORD_SEARCH_OF_SEVERAL,
                refused=parameters.SEARCH_OF_SEVERAL_REFUSED,
                answers=(hits,),
            ),
            "POST": Operation(
                federated_search.by_document,
                "Search several repositories by a query document.",
                parameters=parameters.SEARCH_OF_SEVERAL,
                refused=parameters.DOCUMENT_SEARCH_OF_SEVERAL_REFUSED,
                body=wire.query,
                answers=(hits,),
            ),
        },
        SEARCH,
    )
