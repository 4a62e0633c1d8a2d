"""Describe the operations that many addresses have: to list things, and to show one thing."""

from muniment.repository.endpoints import parameters
from muniment.repository.endpoints.context import Answering, RepositoryContext
from muniment.repository.endpoints.documents import Documents
from muniment.web.addresses import Address, AnswerDescription, Content, Operation, Parameter

BELOW = "/repositories/{repository}"
"""The beginning of the path of every address below a repository, after the prefix."""

WRITE = (parameters.PLAIN_POSITION,)
CONDITIONAL_WRITE = (parameters.IF_MATCH, parameters.PLAIN_POSITION)
UNCHANGED = AnswerDescription(304, "The caller has this representation already.", headers=(parameters.ETAG,))

Operations = dict[str, Operation[RepositoryContext]]
Addresses = tuple[Address[RepositoryContext], ...]


def listing(
    wire: Documents,
    endpoint: Answering,
    summary: str,
    *,
    typed: bool = False,
    filed: bool = False,
    further: tuple[Parameter, ...] = (),
) -> Operation[RepositoryContext]:
    """Describe the GET of a list.

    A ``typed`` list takes the parameter ``object-type``, and a ``filed`` list is the list of a folder. ``further`` are
    the parameters that other lists do not take.
    """
    if filed:
        further = (*further, parameters.ALL_VERSIONS)
    return Operation(
        endpoint,
        summary,
        parameters=(*(parameters.TYPED_LIST if typed else parameters.LIST), *further),
        refused=parameters.FOLDER_REFUSED if filed else parameters.LIST_REFUSED,
        answers=(answer_of("A page of the list.", wire.feed),),
    )


def showing(endpoint: Answering, summary: str, answer: AnswerDescription) -> Operation[RepositoryContext]:
    """Describe the GET of one thing."""
    return Operation(endpoint, summary, refused=parameters.SINGLE_REFUSED, answers=(answer,))


def answer_of(meaning: str, content: Content) -> AnswerDescription:
    """Describe the answer 200 with this content."""
    return AnswerDescription(200, meaning, content)


def with_article(noun: str) -> str:
    """Put the indefinite article before a noun."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
