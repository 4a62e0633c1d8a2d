"""Which address of the directory is answered by which endpoint, with which refusals (given 4.1 to 4.5)."""

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from muniment.directory.console import frame, pages, sign_in
from muniment.directory.context import Directory
from muniment.directory.endpoints import oauth, resources, spelling
from muniment.web.refusals import UnknownAddress
from muniment.web.responses import SHARED, Endpoint, refuse

__all__ = ["Directory", "routes"]


def routes(directory: Directory) -> list[Route]:
    """List every address under the directory's prefix; the last answers what no other does with 404."""
    names = directory.options.names
    at, page = f"/{names.prefix}", frame.page_shape(names)
    tokeninfo = Endpoint(directory, {"POST": oauth.tokeninfo}, oauth.TOKENINFO, spelling.rest)
    unknown = _Unknown(directory)
    return [
        Route(
            f"{at}/login",
            Endpoint(directory, {"GET": sign_in.page, "POST": oauth.login}, oauth.LOGIN, spelling.login(names)),
        ),
        Route(f"{at}/v1/authentication/oauth/tokeninfo", tokeninfo),
        Route(f"{at}/v1/authentication/tokeninfo", tokeninfo),
        Route(
            f"{at}/v1/authentication/oauth/{{token}}",
            Endpoint(
                directory,
                {"DELETE": oauth.revoke, "OPTIONS": oauth.preflight},
                oauth.REVOCATION,
                spelling.rest,
            ),
        ),
        Route(
            f"{at}/rest/resources/{{resource_id}}/activate",
            Endpoint(directory, {"POST": resources.activate}, resources.ACTIVATION, spelling.rest),
        ),
        Route(f"{at}/console", Endpoint(directory, {"GET": pages.overview}, pages.CONSOLE, page)),
        Route(
            f"{at}/console/system-attributes",
            Endpoint(
                directory,
                {"GET": pages.system_attributes, "POST": pages.change_system_attribute},
                pages.CONSOLE,
                page,
            ),
        ),
        Route(f"{at}/static/{{name}}", Endpoint(directory, {"GET": frame.static}, pages.CONSOLE, page)),
        Route(at, unknown),
        Route(f"{at}/{{rest:path}}", unknown),
    ]


class _Unknown:
    """Answers every method at the addresses that nothing else answers."""

    def __init__(self, directory: Directory) -> None:
        self._shape = spelling.shape(directory.options.names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = UnknownAddress("There is nothing at this address.")
        await refuse(Request(scope), refusal, SHARED, self._shape)(scope, receive, send)
