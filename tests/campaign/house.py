"""A served data folder with people in it, and a signed-in user who does each thing that can be done, once."""

import httpx

from tests.e2e.processes import Server
from tests.scenes import World

REPOSITORY = f"/rest/repositories/{World.repository}"
LOGIN = "/dirws/login"
OAUTH = "/dirws/v1/authentication/oauth"


class Visitor:
    """Somebody who is signed in: he does one thing of each kind, and keeps what was answered with success."""

    def __init__(self, server: Server, world: World) -> None:
        self.http = server.client()
        self.world = world
        self.contents_by_id: dict[str, bytes] = {}
        issued = self.sign_in().json()
        self.access, self.refresh_token = issued["access_token"], issued["refresh_token"]
        self.http.headers["Authorization"] = f"Bearer {self.access}"

    def move(self, server: Server) -> None:
        """Go on with another server of the same house, with the same token."""
        self.http.close()
        self.http = server.client()
        self.http.headers["Authorization"] = f"Bearer {self.access}"

    def close(self) -> None:
        """Hang up."""
        self.http.close()

    def sign_in(self) -> httpx.Response:
        """Ask for tokens by the password grant."""
        who = self.world.writer
        form = {"grant_type": "password", "client_id": self.world.client_id, "scope": self.world.scope}
        return self.http.post(
            LOGIN, data=form | {"username": who.id, "password": who.password}, headers={"Authorization": ""}
        )

    def refresh(self) -> httpx.Response:
        """Ask for a further access token."""
        form = {"grant_type": "refresh_token", "client_id": self.world.client_id, "refresh_token": self.refresh_token}
        return self.http.post(LOGIN, data=form, headers={"Authorization": ""})

    def revoke_another(self, token: str) -> httpx.Response:
        """End another sign-in's grant."""
        return self.http.delete(f"{OAUTH}/{token}")

    def tokeninfo(self, token: str = "") -> httpx.Response:
        """Verify a token."""
        body = {"token": token or self.access, "resource_id": self.world.resource_id}
        return self.http.post(f"{OAUTH}/tokeninfo", json=body)

    def create(self, name: str, content: bytes | None = None) -> httpx.Response:
        """Make a document, with content if there is any."""
        address, plain = f"{REPOSITORY}/objects", {"Content-Type": "text/plain"}
        if content is None:
            answer = self.http.post(address, json={"properties": {"object_name": name}})
        else:
            answer = self.http.post(address, params={"object-name": name}, content=content, headers=plain)
        if answer.status_code == 201:
            self.contents_by_id[answer.json()["properties"]["r_object_id"]] = content or b""
        return answer

    def rename(self, object_id: str, name: str) -> httpx.Response:
        """Change a document's name."""
        return self.http.post(f"{REPOSITORY}/objects/{object_id}", json={"properties": {"object_name": name}})

    def replace(self, object_id: str, content: bytes) -> httpx.Response:
        """Replace a document's content."""
        address, plain = f"{REPOSITORY}/objects/{object_id}/contents", {"Content-Type": "text/plain"}
        answer = self.http.post(address, content=content, headers=plain)
        if answer.status_code == 201:
            self.contents_by_id[object_id] = content
        return answer

    def share(self, object_id: str) -> httpx.Response:
        """Put a document under another ACL."""
        return self.http.put(f"{REPOSITORY}/objects/{object_id}/permission-set", json={"acl-name": "public"})

    def delete(self, object_id: str) -> httpx.Response:
        """Delete a document."""
        answer = self.http.delete(f"{REPOSITORY}/objects/{object_id}")
        if answer.status_code == 204:
            self.contents_by_id.pop(object_id, None)
        return answer

    def media(self, object_id: str) -> httpx.Response:
        """Download a document's content."""
        return self.http.get(f"{REPOSITORY}/objects/{object_id}/content-media")

    def search(self, words: str) -> httpx.Response:
        """Search by keywords."""
        parameters = {"q": words, "include-total": "true", "items-per-page": "1000"}
        return self.http.get(f"{REPOSITORY}/search", params=parameters, headers={"Accept": "application/json"})

    def find(self, words: str) -> list[str]:
        """Name what a search finds; nothing while it is refused."""
        answer = self.search(words)
        return sorted(entry["id"] for entry in answer.json()["entries"]) if answer.status_code == 200 else []

    def holds(self) -> None:
        """Everything that was answered with success is there, byte for byte."""
        for object_id, content in self.contents_by_id.items():
            answer = self.media(object_id)
            assert (answer.content if answer.status_code == 200 else b"") == content, (object_id, answer.status_code)
            assert self.http.get(f"{REPOSITORY}/objects/{object_id}").status_code == 200
