"""Several repositories on one site, for tests of one search of all of them."""

import base64
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import httpx

from muniment.repository.refusals import UnknownRepository
from muniment.repository.store import repositories
from muniment.repository.store.permissions import acls
from tests.scenes import Loop, Person, Site, World

BESIDE, APART, HIDDEN = "beside", "apart, with a comma", "hidden"
"""A repository with the guard of the world's own, one with another guard, and one whose guard admits nobody."""


class Several(NamedTuple):
    """A site with three repositories more, and somebody whom both guards admit."""

    site: Site
    both: Person

    @property
    def address(self) -> str:
        return f"/{self.site.names.prefix}/search"

    def of(self, repository: str) -> str:
        return f"/{self.site.names.prefix}/repositories/{repository}"

    def create(self, repository: str, name: str, text: str, **more: Any) -> str:
        """Make a document with a text in one of the repositories; give its id."""
        self.site.world.clock.advance(0.01)
        here, who = self.of(repository), password(self.both)
        properties = {"r_object_type": self.site.type("document"), "object_name": name, **more}
        made = self.site.http.post(f"{here}/objects", json={"properties": properties}, headers=who)
        assert made.status_code == 201, made.text
        object_id: str = made.json()["properties"][f"{self.site.names.system_property_prefix}object_id"]
        raw = {"Content-Type": "text/plain"}
        kept = self.site.http.post(f"{here}/objects/{object_id}/contents", content=text.encode(), headers=who | raw)
        assert kept.status_code == 201, kept.text
        self.site.world.catch_up(repository)
        return object_id

    def get(self, headers: dict[str, str] | None = None, **parameters: str) -> httpx.Response:
        accept = {"Accept": "application/json", **(password(self.both) if headers is None else headers)}
        return self.site.http.get(self.address, params=_spelled(parameters), headers=accept)

    def post(self, document: Any, headers: dict[str, str] | None = None, **parameters: str) -> httpx.Response:
        sent = {"Accept": "application/json", "Content-Type": "application/json"}
        sent |= password(self.both) if headers is None else headers
        return self.site.http.post(
            self.address, params=_spelled(parameters), content=json.dumps(document), headers=sent
        )


def _spelled(parameters: dict[str, str]) -> dict[str, str]:
    """Spell the names of parameters, which are arguments here."""
    return {name.replace("_", "-"): text for name, text in parameters.items()}


def password(person: Person, text: str = "") -> dict[str, str]:
    encoded = base64.b64encode(f"{person.id}:{text or person.password}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [entry["id"] for entry in answer.json()["entries"]]


def links(answer: httpx.Response) -> dict[str, str]:
    return {link["rel"]: link["href"] for link in answer.json()["links"]}


def words(text: str) -> dict[str, Any]:
    return {"expression-set": {"expressions": [{"expression-type": "fulltext", "value": text}]}}


@contextmanager
def open_several(world: World, loop: Loop) -> Iterator[Several]:
    """Open the three repositories, and close them to everybody at the end; they are made once in a world."""
    site = Site(world, "neutral", loop, "repository.max_items_per_page=50")
    guards = {BESIDE: world.resource_id, APART: world.other_resource_id, HIDDEN: world.resource(activated=True).id}
    for name, guard in guards.items():
        _open(world, name, guard)
    site.create("makes the ACLs")
    both = world.person()
    world.admit(both, world.other_resource_id)
    with closing(site):
        yield Several(site, both)
    with world.repository_db.begin() as cx:
        for name in guards:
            repositories.guard(cx, repositories.find(cx, name), "")


def _open(world: World, name: str, resource_id: str) -> None:
    with world.repository_db.begin() as cx:
        try:
            repositories.guard(cx, repositories.find(cx, name), resource_id)
        except UnknownRepository:
            made = repositories.add(cx, name, resource_id, "", world.clock())
            acls.initialise(cx, made.id, world.clock())
    world.catch_up(name)
