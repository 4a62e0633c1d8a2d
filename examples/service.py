"""A service that searches a repository as itself. Usage: service.py WORDS, or service.py --token [SCOPE] to see a token

The environment tells it ISSUER, CLIENT_ID, REPOSITORY (its address) and CA_FILE, and CLIENT_SECRET or KEY_FILE.
docs/call-as-a-service.md goes through it.
"""

import json
import os
import ssl
import sys
from pathlib import Path

from authlib.integrations.httpx_client import OAuth2Client
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from joserfc.jwk import import_key

ISSUER, REPOSITORY = os.environ["ISSUER"], os.environ["REPOSITORY"]


def session(scope=None):
    """Give a session that gets another token before the one that it has expires."""
    by_key = "KEY_FILE" in os.environ
    made = OAuth2Client(
        os.environ["CLIENT_ID"],
        import_key(json.loads(Path(os.environ["KEY_FILE"]).read_text())) if by_key else os.environ["CLIENT_SECRET"],
        token_endpoint_auth_method="private_key_jwt" if by_key else "client_secret_basic",
        token_endpoint=f"{ISSUER}/oauth2/token",
        grant_type="client_credentials",
        scope=scope,
        verify=ssl.create_default_context(cafile=os.environ["CA_FILE"]),
    )
    # Each assertion is signed for the issuer, is good for five minutes at most, and is taken once.
    made.register_client_auth_method(PrivateKeyJWT(ISSUER, alg="ES256"))
    made.fetch_token()
    return made


def get(http, address, **parameters):
    """Ask the repository. A token that was ended before its time is replaced, once."""
    answer = http.get(address, params=parameters)
    if answer.status_code == 401:
        http.fetch_token()
        answer = http.get(address, params=parameters)
    answer.raise_for_status()
    return answer.json()


if __name__ == "__main__":
    if sys.argv[1] == "--token":
        print(session(*sys.argv[2:]).token["access_token"])
    else:
        for entry in get(session(), f"{REPOSITORY}/search", q=" ".join(sys.argv[1:]))["entries"]:
            print(entry["title"])
