"""One table of every address of the search page (docs/interface.md, ours 15)."""

from collections.abc import Mapping
from typing import TypeAlias

from starlette.routing import Route

from muniment.ground.refusals import Forged
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.wire import codes
from muniment.repository.page import frame, reading, saving, searching, sign_in, suggesting
from muniment.repository.page.asking import choices
from muniment.repository.page.asking.questions import ORDERS
from muniment.repository.refusals import (
    BadQuery,
    BadSort,
    IndexBehind,
    IndexUnavailable,
    NotSignedIn,
    QuotaExceeded,
    UnknownObject,
    UnknownProperty,
    UnknownSavedSearch,
    UnknownType,
    VersionConflict,
    WrongValue,
)
from muniment.web.addresses import (
    BINARY,
    TEXT,
    Address,
    AddressTable,
    AnswerDescription,
    Answering,
    Content,
    CredentialKind,
    ErrorShape,
    Operation,
    Parameter,
)
from muniment.web.answers import browser
from muniment.web.answers.responses import ErrorCode, Table

_Answering: TypeAlias = Answering[RepositoryContext]
_Operations: TypeAlias = Mapping[str, Operation[RepositoryContext]]

_PAGE: Content = {"text/html": TEXT}
_FORM = "application/x-www-form-urlencoded"
_SHOWN = AnswerDescription(200, "The page.", _PAGE)
_LED = AnswerDescription(
    303,
    "The browser is led to the next page.",
    headers=(Parameter("Location", "Where the browser goes next.", place="header"),),
)
_ERRORS = ErrorShape("page", frame.shape, _PAGE)

_ENTERED: Table = {**codes.ENTERING, NotSignedIn: ErrorCode(303, "not_signed_in"), Forged: ErrorCode(403, "forged")}
_SEARCHED: Table = {
    **_ENTERED,
    **codes.codes_of(BadQuery, BadSort),
    UnknownType: codes.SEARCHES[UnknownType],
    **codes.codes_of(UnknownProperty, WrongValue, UnknownSavedSearch, IndexBehind, IndexUnavailable),
}
_READ: Table = {**_SEARCHED, **codes.codes_of(UnknownObject)}
_SAVED: Table = {**_SEARCHED, **codes.codes_of(QuotaExceeded, VersionConflict)}
_CONTENT: Table = {**codes.CONTENTS, **_ENTERED}

_IN = Parameter("in", "Name of the repository; without it, the first that the sign-in opens.")
_PAGE_NUMBER = Parameter("page", "Number of the page, from 1 on.", {"type": "integer", "minimum": 1, "default": 1})
_QUESTION = (
    _IN,
    Parameter("q", "Keywords."),
    *(
        Parameter(choice.id, f"A value of the property `{choice.property}`; several are given by several parameters.")
        for choice in choices.CHOICES
    ),
    Parameter("folder", "Id of a folder in which, or below which, hits lie."),
    Parameter("saved", "Id of a saved search, to which the rest of the question is added."),
    Parameter("edited", "Id of a saved search that the whole question may replace."),
    Parameter("sort", "Order of the hits; without it, the search's own order.", {"enum": list(ORDERS)}),
    Parameter("words", "`all` or `any`: how many of its words a hit needs.", {"enum": ["all", "any"]}),
    _PAGE_NUMBER,
)
_DONE = Parameter("done", "What has just been done: the page says so.")
_TO = Parameter("to", "The page that was asked for, below `/search`: the sign-in leads back to it.")
_PART = Parameter(
    "part", "Part of a long text or of a folder's list, from 1 on; without it, the one with the first marked word."
)


def _form(*names: str) -> Content:
    return {_FORM: {"type": "object", "properties": dict.fromkeys(("csrf", *names), TEXT), "required": ["csrf"]}}


def _shows(endpoint: _Answering, *parameters: Parameter) -> _Operations:
    return {"GET": Operation(endpoint, parameters=parameters, answers=(_SHOWN,))}


def _leads(endpoint: _Answering, *names: str) -> _Operations:
    return {"POST": Operation(endpoint, body=_form(*names), answers=(_LED,))}


def table() -> AddressTable[RepositoryContext]:
    return AddressTable(
        "search page",
        frame.PREFIX,
        (
            Address("", _shows(searching.show, *_QUESTION, _DONE), _SEARCHED),
            Address(
                "/sign-in",
                {
                    **_shows(sign_in.show_form, _TO, _DONE),
                    "POST": Operation(
                        sign_in.sign_in, body=_form("username", "password", "to"), answers=(_LED, _SHOWN)
                    ),
                },
                _ENTERED,
                credentials=CredentialKind.NONE,
            ),
            Address("/sign-out", _leads(sign_in.sign_out), _ENTERED),
            Address(
                "/saved",
                {
                    **_shows(saving.show, _IN, _PAGE_NUMBER, _DONE),
                    **_leads(saving.change, "action", "address", "name", "description", "public", "search"),
                },
                _SAVED,
            ),
            Address(
                "/suggestions",
                {
                    "GET": Operation(
                        suggesting.show,
                        parameters=(_IN, Parameter("q", "What has been typed.")),
                        answers=(AnswerDescription(200, "The completions.", {"application/json": {"type": "object"}}),),
                    )
                },
                _SEARCHED,
            ),
            Address("/objects/{id}", _shows(reading.show, *_QUESTION, _PART), _READ),
            Address(
                "/objects/{id}/content",
                {
                    "GET": Operation(
                        reading.download,
                        parameters=(_IN,),
                        answers=(
                            AnswerDescription(200, "The content.", {"*/*": BINARY}),
                            AnswerDescription(206, "The range that was asked for.", {"*/*": BINARY}),
                            AnswerDescription(304, "The browser has it already."),
                        ),
                    )
                },
                _CONTENT,
            ),
            Address(
                "/static/{name}",
                {
                    "GET": Operation(
                        browser.static,
                        answers=(
                            AnswerDescription(
                                200,
                                "The file.",
                                {"text/css": BINARY, "image/svg+xml": BINARY, "text/javascript": BINARY},
                            ),
                        ),
                    )
                },
                credentials=CredentialKind.NONE,
            ),
        ),
        _ERRORS,
        CredentialKind.SEARCH_PAGE,
        (Parameter("id", "Id of an object.", place="path"), Parameter("name", "Name of a file.", place="path")),
    )


def routes(context: RepositoryContext) -> list[Route]:
    return table().routes(context) if context.callers.page is not None else []
