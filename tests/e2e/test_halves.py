"""Each half alone: a directory in one process, a repository in another that asks it over HTTPS whose token it is."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.processes import Server, muniment
from tests.servers import free_port
from tests.waiting import until

DIRECTORY = ("--set", "halves=directory")
PEOPLE = ("writer", "guest", "stranger")


class Pair:
    """A directory and a repository that share nothing but an address, with three people and a resource."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "directory"
        self.run("init")
        self.resource = self.run("resource", "add", "Archive of Ours").split()[-1]
        self.run("resource", "activate", self.resource)
        self.run("partition", "add", "people")
        self.run("group", "add", "friends@people")
        self.run("client", "add", "walker")
        for name in PEOPLE:
            self.run("user", "add", f"{name}@people", "--password-stdin", given=f"password of {name}\n")
        self.run("resource", "add-member", "Archive of Ours", "writer@people", "friends@people")
        self.run("group", "add-member", "friends@people", "guest@people")
        self.serve_directory(free_port())
        alone = (
            *("--set", "halves=repository"),
            *("--set", f"repository.tokeninfo_url={self.directory.base}/dirws/v1/authentication/oauth/tokeninfo"),
            *("--set", f"repository.tokeninfo_ca_file={self._folder / 'tls' / 'ca.pem'}"),
        )
        repository = folder / "repository"
        for command in (("init",), ("repository", "add", "archive", "--resource-id", self.resource)):
            done = muniment(repository, *alone, *command)
            assert done.returncode == 0, done.stderr
        self.repository = Server(repository, free_port(), *alone)
        self.repository.wait_ready()

    def serve_directory(self, port: int) -> None:
        """Start the directory."""
        self.directory = Server(self._folder, port, *DIRECTORY)
        self.directory.wait_ready()

    def run(self, *words: str, given: str = "") -> str:
        """Run a command on the directory's data folder; give what it prints."""
        done = muniment(self._folder, *DIRECTORY, *words, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def token(self, name: str) -> httpx.Response:
        """Ask the directory for a token."""
        form = {"grant_type": "password", "client_id": "walker", "username": f"{name}@people"}
        form |= {"password": f"password of {name}", "scope": "resource:Archive+of+Ours"}
        with self.directory.client() as http:
            return http.post("/dirws/login", data=form)

    def bearer(self, name: str) -> dict[str, str]:
        """Sign in, and give the header that says so."""
        return {"Authorization": f"Bearer {self.token(name).json()['access_token']}"}

    def found(self, header: dict[str, str]) -> httpx.Response:
        """Search the repository for the word that the test keeps."""
        with self.repository.client() as http:
            asked = {"Accept": "application/atom+xml", **header}
            return http.get("/rest/repositories/archive/search?q=charter", headers=asked)

    def close(self) -> None:
        """End both."""
        self.repository.kill()
        self.directory.kill()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("halves"))
    yield made
    made.close()


def test_a_repository_alone_asks_another_directory_whose_token_it_is(pair: Pair) -> None:
    writer, guest = pair.bearer("writer"), pair.bearer("guest")
    acl = {"name": "for-friends", "permitted": [{"accessor": "friends@people", "basic-permission": "Read"}]}
    with pair.repository.client() as http:
        address = "/rest/repositories/archive"
        named = http.post(f"{address}/acls", json=acl, headers=writer)
        assert named.status_code == 201, named.text
        for name, rights in (("open.txt", "for-friends"), ("own.txt", "private")):
            made = http.post(
                f"{address}/objects?object-name={name}",
                content=b"The oldest charter of the house.",
                headers=writer | {"Content-Type": "text/plain"},
            )
            assert made.status_code == 201, made.text
            changed = http.post(made.headers["location"], json={"properties": {"acl_name": rights}}, headers=writer)
            assert changed.status_code == 200, changed.text
    until(lambda: pair.found(writer).text.count("<entry>") == 2, lambda: pair.found(writer).text)
    assert "open.txt" in pair.found(guest).text
    assert "own.txt" not in pair.found(guest).text
    with pair.repository.client() as page:
        assert searched(page, "guest") == ["open.txt"]
        with pair.repository.client() as other:
            assert searched(other, "writer") == ["open.txt", "own.txt"]
        pair.run("group", "remove-member", "friends@people", "guest@people")
        assert page.get("/search", params={"q": "charter"}).status_code == 303
    assert pair.found(guest).status_code == 401, "he was in the access role through the group alone"
    pair.run("user", "set", "writer@people", "--disable")
    assert pair.found(writer).status_code == 401
    pair.run("user", "set", "writer@people", "--enable")
    assert pair.found(writer).status_code == 401, "what was ended stays ended"
    assert pair.found(pair.bearer("writer")).status_code == 200
    assert pair.token("stranger").json()["error"] == "invalid_grant"


def searched(http: httpx.Client, name: str) -> list[str]:
    """Sign in to the search page, and give the titles that it shows."""
    mark = re.search(r'name="csrf" value="([^"]+)"', http.get("/search/sign-in").text)
    assert mark
    form = {"csrf": mark[1], "username": f"{name}@people", "password": f"password of {name}", "to": "?q=charter"}
    answer = http.post("/search/sign-in", data=form, follow_redirects=True)
    assert answer.status_code == 200, answer.text
    return sorted(re.findall(r"<h3><a [^>]+>([^<]+)</a>", answer.text))


def test_a_namesake_elsewhere_inherits_nothing_of_whoever_has_made_a_request(pair: Pair) -> None:
    """failures C8; the gap that remains for whoever has not is in docs/operations.md, "Somebody leaves"."""
    address = "/rest/repositories/archive/objects"

    def come(name: str) -> dict[str, str]:
        pair.run("user", "add", f"{name}@people", "--password-stdin", given=f"password of {name}\n")
        pair.run("group", "add-member", "friends@people", f"{name}@people")
        return pair.bearer(name)

    first = come("heir")
    with pair.repository.client() as http:
        body = {"properties": {"object_name": "a testament"}}
        made = http.post(address, json=body, headers=first)
        assert made.status_code == 201, made.text
        object_id = made.json()["properties"]["r_object_id"]
        assert http.get(f"{address}/{object_id}", headers=first).status_code == 200
        assert "cannot see what heir@people owned" in pair.run("user", "remove", "heir@people")
        second = come("heir")
        assert http.get(f"{address}/{object_id}", headers=second).status_code == 404
        own = http.post(address, json=body, headers=second)
        assert own.status_code == 201
        assert own.json()["properties"]["owner_name"] == "heir@people"
        assert http.get(f"{address}/{own.json()['properties']['r_object_id']}", headers=second).status_code == 200


def test_a_half_alone_answers_nothing_of_the_other(pair: Pair) -> None:
    with pair.directory.client() as http:
        assert http.get("/rest/repositories").status_code == 404
    with pair.repository.client() as http:
        assert http.post("/dirws/login", data={"grant_type": "password"}).status_code == 404


def test_a_directory_that_is_gone_is_said_to_be(pair: Pair) -> None:
    pair.directory.kill()
    try:
        answer = pair.found({"Authorization": "Bearer anything"})
        assert answer.status_code == 503
        assert "directory" in answer.text
    finally:
        pair.serve_directory(pair.directory.port)
