"""The addresses of saved searches and search templates: what answers them, what they take and give.

Source: docs/interface.md, ours 12 and 13.
"""

from muniment.repository.endpoints import parameters
from muniment.repository.endpoints.context import Answering, RepositoryContext
from muniment.repository.endpoints.documents import Documents, SavedSearchDocument, SearchTemplateDocument
from muniment.repository.endpoints.operations import UNCHANGED, Addresses, Operations
from muniment.repository.endpoints.saved import saved_searches, search_templates
from muniment.repository.endpoints.saved.saved_bodies import SavedSearchBody, VariablesBody
from muniment.web.addresses import Address, AnswerDescription, Content, Operation


def addresses(wire: Documents, prefix: str) -> Addresses:
    """List the addresses; ``prefix`` is the beginning of the path of every address of a repository."""
    return (*_saved_searches(wire, prefix), *_search_templates(wire, prefix))


def _saved_searches(wire: Documents, prefix: str) -> Addresses:
    answer, body = wire.thing(SavedSearchDocument, "saved-search"), wire.thing(SavedSearchBody, "saved-search")
    description = AnswerDescription(200, "The saved search.", answer, (parameters.ETAG,))
    member = f"{prefix}/saved-searches/{{search}}"
    every: Operations = {
        "GET": _list(wire, saved_searches.listing("search"), "List the saved searches that the caller may see."),
        "POST": _save(saved_searches.making("search"), "Save a search, which the caller owns.", body, answer),
    }
    single: Operations = {
        "GET": _show_saved(saved_searches.reading("search"), "Show a saved search.", description),
        "POST": Operation(
            saved_searches.change,
            "Change a saved search.",
            parameters=(*parameters.SAVING, parameters.IF_MATCH),
            refused=parameters.SAVING_REFUSED,
            body=body,
            answers=(description,),
        ),
        "DELETE": _remove_saved(saved_searches.removing("search"), "Remove a saved search.", "search"),
    }
    execution = Operation(
        saved_searches.execute,
        "Execute a saved search with the caller's own rights.",
        parameters=(*parameters.SEARCH, parameters.CURSOR, parameters.IF_NONE_MATCH, parameters.PLAIN_POSITION),
        refused={name: why for name, why in parameters.DOCUMENT_SEARCH_REFUSED.items() if name != "cursor"},
        answers=(
            AnswerDescription(
                200, "A page of hits.", wire.feed, (parameters.POSITION, parameters.ETAG, *parameters.RELAXED)
            ),
            UNCHANGED,
        ),
    )
    page = (AnswerDescription(200, "A page of the stored results.", wire.feed),)
    results: Operations = {
        "GET": Operation(
            saved_searches.results,
            "Show the results that the caller has stored.",
            parameters=parameters.STORED_RESULTS,
            refused=parameters.STORED_REFUSED,
            answers=page,
        ),
        "PUT": Operation(
            saved_searches.store,
            "Execute a saved search, and store the results for the caller.",
            parameters=parameters.STORING,
            refused=parameters.STORED_REFUSED,
            answers=page,
        ),
        "DELETE": Operation(
            saved_searches.remove_results,
            "Remove the results that the caller has stored.",
            answers=(AnswerDescription(204, "There are no stored results."),),
        ),
    }
    return (
        Address(f"{prefix}/saved-searches", every, saved_searches.TABLE),
        Address(member, single, saved_searches.TABLE),
        Address(f"{member}/execution", {"GET": execution}, saved_searches.TABLE),
        Address(f"{member}/results", results, saved_searches.TABLE),
    )


def _search_templates(wire: Documents, prefix: str) -> Addresses:
    template = wire.thing(SearchTemplateDocument, "search-template")
    body = wire.thing(SavedSearchBody, "search-template")
    description = AnswerDescription(200, "The search template.", template, (parameters.ETAG,))
    member = f"{prefix}/search-templates/{{template}}"
    every: Operations = {
        "GET": _list(wire, saved_searches.listing("template"), "List the search templates that the caller may see."),
        "POST": _save(
            saved_searches.making("template"), "Keep a search template, which the caller owns.", body, template
        ),
    }
    single: Operations = {
        "GET": _show_saved(
            saved_searches.reading("template"), "Show a search template with its variables.", description
        ),
        "DELETE": _remove_saved(saved_searches.removing("template"), "Remove a search template.", "template"),
    }
    execution = Operation(
        search_templates.execute,
        "Execute a search template with values for its variables, and with the caller's own rights.",
        parameters=(*parameters.SEARCH, parameters.PLAIN_POSITION),
        refused=parameters.DOCUMENT_SEARCH_REFUSED,
        body=wire.thing(VariablesBody, "search-template"),
        answers=(AnswerDescription(200, "A page of hits.", wire.feed, (parameters.POSITION, *parameters.RELAXED)),),
    )
    return (
        Address(f"{prefix}/search-templates", every, search_templates.TABLE),
        Address(member, single, search_templates.TABLE),
        Address(f"{member}/execution", {"POST": execution}, search_templates.TABLE),
    )


def _save(endpoint: Answering, summary: str, body: Content, representation: Content) -> Operation[RepositoryContext]:
    answer = AnswerDescription(201, "What was kept.", representation, (parameters.LOCATION, parameters.ETAG))
    values, refusals = parameters.SAVING, parameters.SAVING_REFUSED
    return Operation(endpoint, summary, parameters=values, refused=refusals, body=body, answers=(answer,))


def _show_saved(endpoint: Answering, summary: str, description: AnswerDescription) -> Operation[RepositoryContext]:
    values, refusals = (*parameters.SHOWING, parameters.IF_NONE_MATCH), parameters.SHOWING_REFUSED
    return Operation(endpoint, summary, parameters=values, refused=refusals, answers=(description, UNCHANGED))


def _remove_saved(endpoint: Answering, summary: str, noun: str) -> Operation[RepositoryContext]:
    answer = AnswerDescription(204, f"The {noun} is gone.")
    return Operation(endpoint, summary, parameters=(parameters.IF_MATCH,), answers=(answer,))


def _list(wire: Documents, endpoint: Answering, summary: str) -> Operation[RepositoryContext]:
    page = AnswerDescription(200, "A page of the list.", wire.feed)
    return Operation(endpoint, summary, parameters=parameters.LIST, refused=parameters.LIST_REFUSED, answers=(page,))
