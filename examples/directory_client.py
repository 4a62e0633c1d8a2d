"""A client of the directory: sign in, refresh, verify, end. Usage: directory_client.py path/to/demo.json"""

import json
import ssl
import sys
from pathlib import Path

import httpx

facts = json.loads(Path(sys.argv[1]).read_text())
trust = ssl.create_default_context(cafile=facts["ca_file"])

with httpx.Client(base_url=facts["base_url"] + "/dirws", verify=trust) as directory:
    granted = directory.post(
        "/login",
        data={
            "grant_type": "password",
            "client_id": facts["client_id"],
            "username": facts["username"],
            "password": facts["password"],
            "scope": "resource:" + facts["resource"]["name"].replace(" ", "+"),
        },
    )
    granted.raise_for_status()
    print("signed in for", granted.json()["expires_in"], "seconds")

    refreshed = directory.post(
        "/login",
        data={
            "grant_type": "refresh_token",
            "client_id": facts["client_id"],
            "refresh_token": granted.json()["refresh_token"],
        },
    )
    refreshed.raise_for_status()
    token = refreshed.json()["access_token"]

    question = {"token": token, "resource_id": facts["resource"]["id"]}
    info = directory.post("/v1/authentication/oauth/tokeninfo", json=question)
    info.raise_for_status()
    print("the token is", info.json()["user"]["id"] + "'s, until", info.json()["expiry_time"])

    directory.delete(f"/v1/authentication/oauth/{token}").raise_for_status()
    print(
        "ended; verifying it now answers",
        directory.post("/v1/authentication/oauth/tokeninfo", json=question).status_code,
    )
