"""By which address clients ask for a resource, and what its access tokens are: the part of its object for OAuth."""

from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.administration import resource_decisions
from muniment.directory.api.rest.calls import Call
from muniment.directory.entries.resources import Resource
from muniment.ground.clock import Instant


class TokenSettings(msgspec.Struct, kw_only=True):
    """``token_format`` is opaque, RS256 or ES256. A ``token_life_time`` of 0 is 300 seconds."""

    address: str | msgspec.UnsetType = msgspec.UNSET
    token_format: str | msgspec.UnsetType = msgspec.UNSET
    token_life_time: int | msgspec.UnsetType = msgspec.UNSET


def describe(resource: Resource) -> dict[str, Any]:
    return {
        "address": resource.address or "",
        "token_format": resource.token_format,
        "token_life_time": resource.token_seconds or 0,
    }


def put(cx: Connection, call: Call, resource: Resource, body: TokenSettings, now: Instant) -> None:
    """Raises BadAttribute, NameTaken, StillGuards."""
    present = describe(resource)
    written = {name: getattr(body, name) for name in present}
    wanted = present | {name: value for name, value in written.items() if value is not msgspec.UNSET}
    if wanted != present:
        resource_decisions.set_tokens(
            *(cx, resource, now),
            address=wanted["address"] or None,
            token_format=wanted["token_format"],
            token_seconds=wanted["token_life_time"] or None,
            check=call.directory.dependencies.check_tokens,
        )
