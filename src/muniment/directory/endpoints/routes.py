"""Every address of the directory on one page: its methods, what they take and answer, and the codes of its refusals.

Sources: given 4.1 to 4.5, and docs/interface.md for the console.
"""

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from muniment.directory.console import frame, pages, sign_in
from muniment.directory.context import Directory
from muniment.directory.endpoints import documents, hot, oauth, resources, spelling
from muniment.directory.endpoints.documents import FORM, PAGE_OF_TEXT, REDIRECT
from muniment.directory.oauth.tokeninfo import TokenInfo
from muniment.directory.options import DirectoryNames
from muniment.web.addresses import BINARY, Address, AddressTable, AnswerDescription, CredentialKind, Operation
from muniment.web.refusals import UnknownAddress
from muniment.web.responses import SHARED, refuse

__all__ = ["Directory", "routes", "table"]


def table(names: DirectoryNames) -> AddressTable[Directory]:
    """Return the table of all addresses below the directory's prefix."""
    console = documents.page_errors(names)
    tokeninfo = Operation(
        oauth.tokeninfo,
        "Say whose access token this is.",
        body={"application/json": oauth.Verification},
        answers=(AnswerDescription(200, "The token is good for the resource.", {"application/json": TokenInfo}),),
        foremost=hot.TOKENINFO,
    )
    return AddressTable(
        "directory",
        f"/{names.prefix}",
        (
            Address(
                "/login",
                {
                    "GET": Operation(
                        sign_in.page,
                        "Show the sign-in page, or who is signed in.",
                        parameters=(documents.RFA, documents.PAGE),
                        answers=(AnswerDescription(200, "The page.", PAGE_OF_TEXT), REDIRECT),
                        credentials=CredentialKind.NONE,
                    ),
                    "POST": Operation(
                        oauth.login,
                        "Issue or refresh a token, or take the form of the sign-in page.",
                        body={FORM: documents.login_form(names)},
                        answers=(
                            AnswerDescription(
                                200,
                                "The token; for the form, the page that says why nobody was signed in.",
                                {"application/json": documents.IssuedToken, **PAGE_OF_TEXT},
                            ),
                            REDIRECT,
                        ),
                        hot=hot.LOGIN,
                        foremost=hot.REFRESH,
                    ),
                },
                oauth.LOGIN,
                documents.login_errors(names),
                CredentialKind.CLIENT,
            ),
            Address("/v1/authentication/oauth/tokeninfo", {"POST": tokeninfo}, oauth.TOKENINFO),
            Address("/v1/authentication/tokeninfo", {"POST": tokeninfo}, oauth.TOKENINFO),
            Address(
                "/v1/authentication/oauth/{token}",
                {
                    "DELETE": Operation(
                        oauth.revoke,
                        "End the grant of a token.",
                        answers=(AnswerDescription(204, "The grant has ended."),),
                    ),
                    "OPTIONS": Operation(
                        oauth.preflight,
                        "Tell a browser that it may end a grant for any page.",
                        answers=(AnswerDescription(204, "The headers say what a browser may send."),),
                    ),
                },
                oauth.REVOCATION,
            ),
            Address(
                "/rest/resources/{resource_id}/activate",
                {
                    "POST": Operation(
                        resources.activate,
                        "Activate a resource. This happens once.",
                        answers=(
                            AnswerDescription(
                                200, "The secret of the resource.", {"application/json": documents.ResourceSecret}
                            ),
                        ),
                    ),
                },
                resources.ACTIVATION,
                credentials=CredentialKind.BEARER,
            ),
            Address(
                "/console",
                {
                    "GET": Operation(
                        pages.overview,
                        "Show the administrator what there is.",
                        answers=(AnswerDescription(200, "The page.", PAGE_OF_TEXT),),
                    )
                },
                pages.CONSOLE,
                console,
                CredentialKind.TICKET,
            ),
            Address(
                "/console/system-attributes",
                {
                    "GET": Operation(
                        pages.system_attributes,
                        "Show the system attributes that are set.",
                        parameters=(documents.DONE,),
                        answers=(AnswerDescription(200, "The page.", PAGE_OF_TEXT),),
                    ),
                    "POST": Operation(
                        pages.change_system_attribute,
                        "Add, change or delete a system attribute.",
                        body={FORM: documents.attribute_form(names)},
                        answers=(REDIRECT,),
                    ),
                },
                pages.CONSOLE,
                console,
                CredentialKind.TICKET,
            ),
            Address(
                "/static/{name}",
                {
                    "GET": Operation(
                        frame.static,
                        "Fetch a file that the pages use.",
                        answers=(AnswerDescription(200, "The file.", {"text/css": BINARY, "image/svg+xml": BINARY}),),
                    )
                },
                pages.CONSOLE,
                console,
            ),
        ),
        documents.REST,
        CredentialKind.NONE,
        (documents.RESOURCE_ID, documents.TOKEN, documents.FILE),
    )


def routes(directory: Directory) -> list[Route]:
    """Return the routes of all addresses, then two that answer 404 at the prefix and at every other path below it."""
    addresses = table(directory.options.names)
    unknown = _UnknownAddress(directory)
    return [
        *addresses.routes(directory),
        Route(addresses.prefix, unknown),
        Route(f"{addresses.prefix}/{{rest:path}}", unknown),
    ]


class _UnknownAddress:
    """Answers 404 to every method at a path that is no address."""

    def __init__(self, directory: Directory) -> None:
        self._shape = spelling.shape(directory.options.names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = UnknownAddress("There is nothing at this address.")
        await refuse(Request(scope), refusal, SHARED, self._shape)(scope, receive, send)
