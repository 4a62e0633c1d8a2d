"""What does this authorization server offer (RFC 8414 2, OpenID Connect Discovery 3)?

It is read from the tables of addresses and of grants, so that all that is named is there, and all that is there is
named.
"""

from collections.abc import Collection, Mapping
from typing import Any

from muniment.directory.oauth import assertions, claims, scopes
from muniment.directory.oauth.grants import GRANTS
from muniment.directory.options import DirectoryNames

AUTHORIZE = "/oauth2/auth"

ENDPOINTS: Mapping[str, str] = {
    AUTHORIZE: "authorization_endpoint",
    "/oauth2/token": "token_endpoint",
    "/oauth2/device_authorization": "device_authorization_endpoint",
    "/oauth2/introspect": "introspection_endpoint",
    "/oauth2/revoke": "revocation_endpoint",
    "/oauth2/userinfo": "userinfo_endpoint",
    "/oauth2/jwks": "jwks_uri",
}
"""By their paths below the prefix."""

UNNAMED = frozenset({"/oauth2/.well-known/openid-configuration", "/oauth2/authorize", "/oauth2/device"})
"""What no metadata names: itself, an alias, and a page for people."""

_METHODS = ("client_secret_basic", "client_secret_post", "private_key_jwt")


def document(issuer: str, names: DirectoryNames, paths: Collection[str]) -> dict[str, Any]:
    """``paths`` are those of all addresses that are offered below the prefix."""
    signing = list(assertions.ALGORITHMS)
    told: dict[str, Any] = {
        "issuer": issuer,
        **{member: issuer + path for path, member in ENDPOINTS.items() if path in paths},
        "scopes_supported": [scopes.spell_scope(names, scope) for scope in scopes.SCOPES],
        "claims_supported": [*claims.SUPPORTED, "iss", "aud", "exp", "iat", "auth_time", "nonce", "amr"],
        "grant_types_supported": list(GRANTS),
        "response_types_supported": [],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": [*_METHODS, "none"],
        "token_endpoint_auth_signing_alg_values_supported": signing,
        "introspection_endpoint_auth_methods_supported": list(_METHODS),
        "introspection_endpoint_auth_signing_alg_values_supported": signing,
        "revocation_endpoint_auth_methods_supported": [*_METHODS, "none"],
        "revocation_endpoint_auth_signing_alg_values_supported": signing,
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
    }
    if AUTHORIZE in paths:
        told |= {
            "response_types_supported": ["code"],
            "response_modes_supported": ["query", "form_post"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
    return told
