"""Tell clients which authorization server lets them into a repository (RFC 9728): they need no configuration."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.api.context import RepositoryContext, address
from muniment.repository.store import repositories


class ProtectedResource(msgspec.Struct, omit_defaults=True):
    """The metadata of a repository as a protected resource (RFC 9728 2)."""

    resource: str
    resource_name: str
    scopes_supported: list[str]
    bearer_methods_supported: list[str]
    authorization_servers: list[str] = []


async def describe(request: Request, context: RepositoryContext) -> Response:
    """Name the authorization server and the scope of a repository."""
    name = request.path_params["repository"]
    repository = await context.transactions.read(lambda cx: repositories.find_open(cx, name))
    told = ProtectedResource(
        resource=address(request, context, repository),
        resource_name=repository.name,
        scopes_supported=[f"resource:{repository.resource_id}"],
        bearer_methods_supported=["header"],
        authorization_servers=[context.issuer] if context.issuer else [],
    )
    headers = {"Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*"}
    return Response(msgspec.json.encode(told), headers=headers, media_type="application/json")
