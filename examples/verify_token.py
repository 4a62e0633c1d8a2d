"""An API verifies a signed access token (RFC 9068) by the issuer's keys. Usage: verify_token.py AUDIENCE <token

The environment tells it ISSUER and CA_FILE. docs/call-as-a-service.md says when keys alone are enough.
"""

import os
import ssl
import sys

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

ISSUER, TRUST = os.environ["ISSUER"], ssl.create_default_context(cafile=os.environ["CA_FILE"])


def keys():
    """Fetch the issuer's keys. Keep them, and fetch them anew for a ``kid`` that is not among them."""
    with httpx.Client(verify=TRUST) as http:
        metadata = http.get(f"{ISSUER}/.well-known/openid-configuration").json()
        return KeySet.import_key_set(http.get(metadata["jwks_uri"]).json())


def claims_of(token, audience, known):
    """Verify signature, type, issuer, audience and times. Raises JoseError."""
    read = jwt.decode(token, known, algorithms=["RS256", "ES256"])
    required = jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": ISSUER},
        aud={"essential": True, "value": audience},
        exp={"essential": True},
        sub={"essential": True},
    )
    required.validate(read.claims)
    if read.header.get("typ") != "at+jwt":
        raise JoseError("This is no access token.")
    return read.claims


if __name__ == "__main__":
    try:
        told = claims_of(sys.stdin.read().strip(), sys.argv[1], keys())
    except JoseError as refused:
        sys.exit(f"401: {refused}")
    print("right, for", told["client_id"])
