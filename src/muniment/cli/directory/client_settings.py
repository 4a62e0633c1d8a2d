"""What may be set of an OAuth client, as options of a command and as rows of a table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy.engine import Connection

from muniment.directory.entries import resources
from muniment.directory.entries.oauth_clients import GRANT_TYPES, ClientSettings
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute, UnknownResource

Redirects = Annotated[
    list[str] | None, typer.Option("--redirect", help="An address to return to. Repeat it; together they replace all.")
]
Allowed = Annotated[list[str] | None, typer.Option("--allow", help=f"A grant type: {', '.join(GRANT_TYPES)}.")]
Denied = Annotated[list[str] | None, typer.Option("--deny", help="A grant type that the client may not use.")]
Pkce = Annotated[str | None, typer.Option("--pkce", help="required, pkce_or_nonce or none.")]
Keys = Annotated[
    Path | None, typer.Option("--keys", help="A file with its public keys (JWKS): it authenticates by private_key_jwt.")
]
EndpointAudience = Annotated[
    bool | None,
    typer.Option("--endpoint-audience/--issuer-audience", help="Also take assertions for the token endpoint."),
]
DefaultResource = Annotated[
    str | None, typer.Option("--default-resource", help="What it gets without asking; empty for none.")
]
MayAdminister = Annotated[
    bool | None, typer.Option("--may-administer/--may-not-administer", help="Let it ask for the administration.")
]
Rotate = Annotated[str | None, typer.Option("--rotate", help="Refresh tokens: always, never or usual.")]
Impersonate = Annotated[
    bool | None, typer.Option("--impersonate/--no-impersonate", help="Let it act as users, where a resource allows it.")
]

_ROTATES: dict[str, bool | None] = {"always": True, "never": False, "usual": None}


def changed(
    cx: Connection,
    names: DirectoryNames,
    settings: ClientSettings,
    *,
    redirects: list[str] | None,
    allowed: list[str] | None,
    denied: list[str] | None,
    keys: Path | None,
    default_resource: str | None,
    rotate: str | None,
    **values: Any,
) -> dict[str, Any]:
    """The fields of ``settings`` that the options change; ``values`` are None where they say nothing. Raises
    BadAttribute, UnknownResource.
    """
    changes = {name: value for name, value in values.items() if value is not None}
    if redirects:
        changes["redirect_urls"] = tuple(redirects)
    unknown = {*(allowed or ()), *(denied or ())} - set(GRANT_TYPES)
    if unknown:
        raise BadAttribute(f"The grant types are {', '.join(GRANT_TYPES)}.")
    still_denied = (set(settings.denied_grants) | set(denied or ())) - set(allowed or ())
    changes["denied_grants"] = tuple(made for made in GRANT_TYPES if made in still_denied)
    if keys is not None:
        changes |= {"jwks": keys.read_text("utf-8"), "authentication": "private_key_jwt"}
    if default_resource is not None:
        changes["default_resource"] = _resource_id(cx, names, default_resource)
    if rotate is not None:
        if rotate not in _ROTATES:
            raise BadAttribute(f"--rotate takes {', '.join(_ROTATES)}.")
        changes["rotates"] = _ROTATES[rotate]
    return changes


def rows(settings: ClientSettings) -> Iterator[tuple[str, str]]:
    """Without what nobody has set."""
    usual = ClientSettings()
    for name in ClientSettings.__struct_fields__:
        value = getattr(settings, name)
        if name == "jwks" and value:
            value = "set"
        if value != getattr(usual, name) or name in ("denied_grants", "pkce", "authentication"):
            yield name, ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _resource_id(cx: Connection, names: DirectoryNames, text: str) -> str:
    if not text:
        return ""
    try:
        return resources.by_id(cx, text).id
    except UnknownResource:
        return resources.find(cx, names, text).id
