"""Read a Client ID Metadata Document (draft-ietf-oauth-client-id-metadata-document, RFC 7591 2) that an administrator
has at hand. Nothing is fetched.
"""

from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from muniment.directory.entries.oauth_clients import DEFAULTS, GRANT_TYPES, ClientSettings
from muniment.directory.oauth import assertions
from muniment.directory.refusals import BadAttribute

_LONGEST = 65_536
_MOST_REDIRECTS = 100
_REFRESH = "refresh_token"
_BY_KEY = "private_key_jwt"


class ClientDocument(NamedTuple):
    """A client has the URL of its document as its ``client_id``."""

    client_id: str
    description: str
    settings: ClientSettings


def read(content: bytes) -> ClientDocument:
    """Raises BadAttribute."""
    if len(content) > _LONGEST:
        raise BadAttribute(f"A client's document has at most {_LONGEST} bytes.")
    try:
        told = msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadAttribute(f"The client's document is no JSON object: {error}.") from error
    client_id = _text(told, "client_id")
    parts = urlsplit(client_id)
    if parts.scheme != "https" or not parts.netloc or parts.path in ("", "/") or parts.fragment or "@" in parts.netloc:
        raise BadAttribute("The client_id of a client's document is its own https URL, with a path.")
    jwks, method = _authentication(told)
    redirects = tuple(_texts(told, "redirect_uris"))
    grant_types = _texts(told, "grant_types") or ["authorization_code"]
    settings = msgspec.structs.replace(
        DEFAULTS,
        redirect_urls=redirects,
        denied_grants=tuple(made for made, name in GRANT_TYPES.items() if name not in grant_types),
        allow_refresh_token=_REFRESH in grant_types,
        authentication=method,
        jwks=jwks,
    )
    return ClientDocument(client_id, _text(told, "client_name", "")[:200], settings)


def _authentication(told: dict[str, Any]) -> tuple[str, Any]:
    """Nobody shares a secret by a document."""
    method = _text(told, "token_endpoint_auth_method", "none")
    if "jwks_uri" in told:
        raise BadAttribute("The client's document names its keys by jwks_uri. Nothing is fetched: put them into jwks.")
    if method == "none":
        return "", "secret"
    if method != _BY_KEY:
        raise BadAttribute(f"The token_endpoint_auth_method of a client's document is none or {_BY_KEY}.")
    jwks = msgspec.json.encode(told.get("jwks")).decode()
    assertions.check_keys(jwks)
    return jwks, _BY_KEY


def _text(told: dict[str, Any], name: str, default: str | None = None) -> str:
    found = told.get(name, default)
    if not isinstance(found, str):
        raise BadAttribute(f"The client's document has no text as its {name}.")
    return found


def _texts(told: dict[str, Any], name: str) -> list[str]:
    found = told.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found) or len(found) > _MOST_REDIRECTS:
        raise BadAttribute(f"The {name} of a client's document are a list of texts.")
    return found
