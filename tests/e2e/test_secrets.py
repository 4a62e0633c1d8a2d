"""After the tour no token, password or secret is in the logs or in the data folder, however it may be spelled."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx
import pytest

from muniment.repository import keys
from tests.e2e.processes import ServedHouse, Server, contents_of
from tests.scenes import World


class Running(NamedTuple):
    """A served house whose log tells everything, and a client that trusts it."""

    world: World
    server: Server
    http: httpx.Client


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    house = ServedHouse(tmp_path)
    client = house.world.client_id
    settings = [f"repository.basic_client={client}", f"repository.search_page_client={client}"]
    settings.append("repository.token_in_address=true")
    arguments = [word for setting in ("log_level=debug", *settings) for word in ("--set", setting)]
    with house.serve(*arguments) as server, server.client() as http:
        yield Running(house.world, server, http)


def test_after_the_tour_no_secret_is_kept_anywhere(running: Running) -> None:
    """failures A29: in no log, no database, no file."""
    world = running.world
    secrets = tour(running)
    assert world.folder.stat().st_mode & 0o077 == 0, "the data folder is its owner's alone"
    assert [key for key in world.folder.rglob("*key*.pem") if key.stat().st_mode & 0o077] == []
    running.server.stop()
    log = running.server.log.read_bytes()
    assert b"/dirws/login" in log, "the log holds the requests"
    events = [json.loads(line) for line in (world.folder / "events.log").read_bytes().splitlines()]
    assert {"sign-in", "revocation", "activation"} <= {event["event"] for event in events}
    places = {running.server.log: log}
    places |= {file: content for file, content in contents_of(world.folder) if file.name != "demo.json"}
    assert len(places) > 5
    found = [
        f"{what} in {place.name}"
        for what, secret in secrets.items()
        for spelled in spellings(secret)
        for place, content in places.items()
        if spelled in content
    ]
    assert not found


def tour(running: Running) -> dict[str, str]:
    """Do what a caller, an administrator and a browser do, well and badly; give every secret that was used."""
    http, world = running.http, running.world
    login, oauth = "/dirws/login", "/dirws/v1/authentication/oauth"

    def ask(person: str, password: str, scope: str = world.scope, **more: str) -> httpx.Response:
        form = {"grant_type": "password", "client_id": world.client_id, "username": person, "password": password}
        return http.post(login, data=form | {"scope": scope} | more)

    secrets = {"the reader's password": world.reader.password, "the writer's password": world.writer.password}
    issued = ask(world.writer.id, world.writer.password).json()
    secrets["access token"], secrets["refresh token"] = issued["access_token"], issued["refresh_token"]
    refresh = {"grant_type": "refresh_token", "client_id": world.client_id, "refresh_token": issued["refresh_token"]}
    secrets["refreshed access token"] = http.post(login, data=refresh).json()["access_token"]
    secrets["a wrong password"] = "wrong-pAssword-9241"
    assert ask(world.reader.id, secrets["a wrong password"]).status_code == 400
    assert ask(secrets["the writer's password"], "typed into the wrong field").status_code == 400
    assert ask(world.reader.id, "x", client_id="a-secret-for-a-client_id").status_code == 401
    secrets["a secret in place of the client_id"] = "a-secret-for-a-client_id"
    secrets["the client's secret"] = world.confidential_secret
    confidential = {"client_id": world.confidential_id, "client_secret": world.confidential_secret}
    secrets["a confidential client's token"] = ask(world.reader.id, world.reader.password, **confidential).json()[
        "access_token"
    ]
    assert http.post(login, params={"password": "in-the-query-55123"}, data={}).status_code == 400
    secrets["a password in the query"] = "in-the-query-55123"

    info = {"token": issued["access_token"], "resource_id": world.resource_id}
    assert http.post(f"{oauth}/tokeninfo", json=info).status_code == 200
    bearer = {"Authorization": f"Bearer {issued['access_token']}"}
    repository = f"/rest/repositories/{world.repository}"
    made = http.post(f"{repository}/objects", json={"properties": {"object_name": "tour"}}, headers=bearer)
    assert made.status_code == 201, made.text
    assert http.get(f"{repository}/search?q=tour", headers=bearer).status_code == 200

    for password, expected in ((world.reader.password, 200), ("wrong-bAsic-77213", 401)):
        assert http.get(f"{repository}/types", auth=(world.reader.id, password)).status_code == expected
        secrets[f"what HTTP Basic carried ({expected})"] = f"{world.reader.id}:{password}"
        secrets[f"the password of HTTP Basic ({expected})"] = password
    assert http.get(f"{repository}/types", auth=("no\x01body", "in-bAsic-3321")).status_code == 401
    secrets["a password of nobody"] = "in-bAsic-3321"
    assert http.get(f"{repository}/types", params={"access_token": issued["access_token"]}).status_code == 200

    admin = world.admin(world.names)
    secrets["the administrator's password"] = admin.password
    scope = "resource:" + world.names.administration_resource.replace(" ", "+")
    token = ask(admin.id, admin.password, scope).json()["access_token"]
    secrets["the administrator's token"] = token
    activated = http.post(
        f"/dirws/rest/resources/{world.idle_resource_id}/activate", headers={"Authorization": f"Bearer {token}"}
    )
    assert activated.status_code == 200, activated.text
    secrets["the resource's secret key"] = activated.json()["secret_key"]

    page = http.get(login, headers={"Accept": "text/html"})
    fields = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', page.text))
    assert "csrf" in fields
    secrets["the form's CSRF token"] = fields["csrf"]
    fields |= {"username": admin.id, "password": admin.password}
    signed_in = http.post(login, data=fields, headers={"Accept": "text/html"})
    assert signed_in.status_code in {200, 303}, signed_in.text
    secrets["the browser's ticket"] = http.cookies["__Host-muniment_ticket"]
    assert http.get(f"{repository}/types").status_code == 401, "the administrator is not in the role"
    stale = {"Muniment-Ticket": "stale-tIcket-8812", "Muniment-CSRF-Token": "stale-cSrf-8812"}
    assert http.post(f"{repository}/objects", json={}, headers=stale).status_code == 401
    secrets["a stale ticket"], secrets["a stale CSRF token"] = stale.values()

    secrets |= of_the_search_page(running)
    assert http.delete(f"{oauth}/{issued['access_token']}").status_code == 204
    assert http.delete(f"{oauth}/garbage-{issued['access_token']}").status_code == 401
    return secrets


def of_the_search_page(running: Running) -> dict[str, str]:
    """Sign in to search, badly and well, search and save; give what the browser has and what lies sealed in it."""
    http, reader, secrets = running.http, running.world.reader, dict[str, str]()
    for password, where in (("wrong-pAge-5512", "Sign in to search"), (reader.password, "")):
        form = http.get("/search/sign-in", params={"to": "?q=tour"}).text
        mark = re.search(r'name="csrf" value="([^"]+)"', form)
        assert mark
        fields = {"username": reader.id, "password": password, "csrf": mark[1], "to": "?q=tour"}
        answer = http.post("/search/sign-in", data=fields)
        assert where in answer.text
        secrets[f"the mark of a form ({where})"] = mark[1]
    assert answer.status_code == 303, answer.text
    secrets["a wrong password of the page"] = "wrong-pAge-5512"
    secrets["the page's cookie"] = cookie = http.cookies["__Host-muniment-search"]
    with running.world.repository_db.read() as cx:
        session = json.loads(keys.seal(cx).open(cookie, "search page session"))
    (secrets["the token in the page's cookie"],) = session["tokens"].values()
    page = http.get("/search", params={"q": "tour"})
    assert page.status_code == 200
    mark = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert mark
    secrets["the mark of somebody who is signed in"] = mark[1]
    saved = {"csrf": mark[1], "action": "save", "address": "?q=tour", "name": "tours"}
    assert http.post("/search/saved", data=saved).status_code == 303
    return secrets


def spellings(secret: str) -> set[bytes]:
    """The secret as it is, as addresses and forms write it, as base64, as hexadecimal."""
    plain = secret.encode()
    quoted = quote(secret, safe="").encode()
    return {plain, quoted, base64.b64encode(plain).rstrip(b"="), plain.hex().encode()}
