"""The directory by REST, as an administrator's program calls it."""

from typing import Any, NamedTuple

import httpx

from muniment.directory.entries import entries, resources
from muniment.directory.sign_in import tickets
from muniment.directory.sign_in.tickets import Made, Ticket
from muniment.ground.clock import SECOND
from tests.scenes import Person, Site


class Rest(NamedTuple):
    """Calls the addresses of one dialect with an administrator's token, unless other headers are given."""

    site: Site
    dialect: str = "rest"

    def __call__(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        """Send a request."""
        shown = {"Authorization": f"Bearer {self.site.administrator()}"} if headers is None else headers
        address = path if path.startswith("http") else f"{self.site.directory}/{self.dialect}{path}"
        return self.site.http.request(method, address, json=body, headers=shown, **more)

    def done(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        """Send a request that is answered."""
        answer = self(method, path, body, **more)
        assert answer.status_code in {200, 201, 204}, (method, path, answer.status_code, answer.text)
        document: dict[str, Any] = answer.json() if answer.content else {}
        return document

    def matching(self, etag: str) -> dict[str, str]:
        """Give the headers of an administrator who changes what they have read."""
        return {"Authorization": f"Bearer {self.site.administrator()}", "If-Match": etag}

    def partition(self) -> str:
        """Make a partition, and return its name."""
        name = self.site.world.word()
        self.done("POST", "/partitions", {"name": name, "description": "For a test."})
        return name

    def user(self, partition: str, name: str, **values: str) -> dict[str, Any]:
        """Make a user."""
        listed = [{"name": key, "values": [value]} for key, value in values.items()]
        return self.done("POST", "/users", {"userPartitionID": partition, "name": name, "values": listed})

    def group(self, partition: str, name: str, kind: str = "group") -> dict[str, Any]:
        """Make a group or a role."""
        return self.done("POST", f"/{kind}s", {"userPartitionID": partition, "name": name})

    def listed(self, path: str, key: str, **parameters: str) -> list[str]:
        """Page through a list, and return the ids of its members."""
        found: list[str] = []
        while True:
            page = self.done("GET", path, params=parameters)
            found += [one["id"] for one in page[key]]
            assert page["actualPageSize"] == len(page[key])
            cookie = page["nextPageCookie"]
            if cookie is None:
                return found
            assert cookie.endswith("==")
            parameters["next_page_cookie"] = cookie


def ticket(site: Site, person: Person, resource_id: str = "", *, seconds: int = 600, made: Made = "credentials") -> str:
    """Make a ticket, for the directory unless a resource is named."""
    names = site.directory_names
    with site.world.directory_db.begin() as cx:
        now = site.world.clock()
        signed_in_to = resource_id or resources.administration(cx).id
        user = entries.find_user(cx, names, person.id)
        row = Ticket(user_id=user.id, resource_id=signed_in_to, expires=now + seconds * SECOND, made=made)
        return tickets.issue(cx, names, row, 1000, now)


def header(site: Site) -> str:
    """Spell the header that takes a ticket."""
    return site.directory_names.ticket_cookie or "Muniment-Ticket"


def cookie(site: Site) -> str:
    """Spell the cookie that holds a ticket, over TLS."""
    return site.directory_names.ticket_cookie or "__Host-muniment_ticket"


def values_of(document: dict[str, Any], name: str) -> list[str]:
    """Read an attribute."""
    found: list[str] = next(each["values"] for each in document["values"] if each["name"] == name)
    return found
