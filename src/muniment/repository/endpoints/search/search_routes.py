"""The addresses of searches: what answers them, what they take and give, and what they refuse.

Source: given 2.8-2.10; docs/interface.md, ours 6.
"""

from muniment.repository.endpoints import collections, parameters
from muniment.repository.endpoints.context import RepositoryContext
from muniment.repository.endpoints.documents import Documents
from muniment.repository.endpoints.search import explanations, federated_search, search, similar, suggestions
from muniment.web.addresses import Address, AnswerDescription, Operation
from muniment.web.responses import Table

DQL: Table = {**search.TABLE, **collections.SELECTING}
"""The refusals of a statement in DQL."""


def of_one(wire: Documents, prefix: str) -> tuple[Address[RepositoryContext], ...]:
    """List the addresses of searches in one repository; ``prefix`` is the beginning of the path of every
    address of a repository."""
    hits = AnswerDescription(200, "A page of hits.", wire.feed, (parameters.POSITION, *parameters.RELAXED))
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
        search.TABLE,
    )
    return (
        searching,
        explanations.address_below(wire, prefix, search.TABLE),
        suggestions.address_below(wire, prefix, search.TABLE),
        similar.address_below(wire, prefix, search.TABLE),
    )


def of_several(wire: Documents) -> Address[RepositoryContext]:
    """Describe the address of the search of several repositories."""
    headers = (parameters.PARTIAL, *parameters.RELAXED)
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
        search.TABLE,
    )
