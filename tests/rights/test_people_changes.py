"""An administrator's right that ends while a change of users and groups is under way is not used: at every address."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from muniment.database.connections import directory_tables
from muniment.directory.administration import decisions
from muniment.directory.entries import entries, memberships
from muniment.repository.api.context import Caller
from muniment.repository.api.operations import BELOW
from muniment.repository.bulk import ownership
from tests.rights.play import Outcome, Sent, play
from tests.rights.test_every_address import BY_ADMINISTRATORS, WAYS, Stage, Way
from tests.scenes import Loop, Person, World

pytestmark = pytest.mark.campaign_on("postgresql")

numbers = itertools.count(1)


def _expel(stage: Stage, person: Person, _token: str) -> None:
    expelled, now = [stage.world.entry(person)], stage.world.clock()
    stage.decide(lambda cx: decisions.remove_members(cx, entries.administrators(cx), expelled, now))


ENDS = {**WAYS, "no administrator": Way(_expel)}


TOGETHER = pytest.mark.parametrize("stage", ["together"], indirect=True)
EVERY_ADDRESS = pytest.mark.parametrize(("method", "path"), sorted(BY_ADMINISTRATORS))


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, world: World, loop: Loop) -> Iterator[Stage]:
    """A world on each database, served by one process, and by a repository whose directory is elsewhere."""
    made = Stage(world, loop, request.param == "apart")
    yield made
    made.close()


class Things:
    """An administrator of the directory, and somebody and a group whom they may change."""

    def __init__(self, stage: Stage, way: str = "") -> None:
        self.stage = stage
        ((self.admin, self.token),) = stage.people([ENDS[way].group if way else ""])
        self.member, self.group = stage.world.person(), f"changed-{next(numbers)}"
        stage.world.group(self.group, self.member)
        stage.world.group(f"{self.group}-inner")
        with stage.world.directory_db.begin() as cx:
            outer, inner = (
                entries.find_group(cx, stage.world.names, f"{name}@demo")
                for name in (self.group, f"{self.group}-inner")
            )
            memberships.add_member(cx, outer, inner)
            memberships.add_member(cx, entries.administrators(cx), stage.world.entry(self.admin))

    def sent(self, method: str, path: str) -> Sent:
        """Make a request that succeeds if it may."""
        kind = "user" if path.endswith("/users") or "users/" in path else "group"
        member = self.member.id if kind == "user" else f"{self.group}-inner@demo"
        person = self.member.id if "/users/{person}" in path else f"{self.group}@demo"
        filled = path.format(repository=self.stage.world.repository, person=person, member=member)
        body: dict[str, Any] = {"properties": {"description": "changed"}}
        if path.endswith(("/{person}/users", "/{person}/groups")):
            href = member if kind == "group" else self.stage.world.reader.id
            body = {"href": f"{self.stage.site.base}{self.stage.site.repository}/{kind}s/{href}"}
        elif not path.endswith("}"):
            body["properties"][f"{kind}_name"] = f"new-{next(numbers)}@demo"
        if kind == "user" and "properties" in body:
            body["properties"]["user_password"] = "another"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        content = b"" if method == "DELETE" else json.dumps(body).encode()
        return Sent(method, f"/{self.stage.site.names.prefix}{filled}", headers, content)


def rows(stage: Stage) -> dict[str, int]:
    """Count the entries and memberships, and how often entries have changed."""
    tables = directory_tables.tables
    with stage.world.directory_db.read() as cx:
        counted = {
            name: cx.execute(sa.select(sa.func.count()).select_from(tables[name])).scalar_one()
            for name in ("entries", "memberships")
        }
        descriptions = sa.select(sa.func.count()).where(tables["entries"].c.description == "changed")
        return counted | {"changed": cx.execute(descriptions).scalar_one()}


def during(stage: Stage, sent: Sent, end: Callable[[], None]) -> Outcome:
    """Send a request; the right ends before the last byte of its body, or once the caller was let in."""
    if sent.body:
        return play(stage.application, stage.loop, sent, "last byte", end)
    administer = Caller.administer

    async def later(self: Caller, decision: Any) -> Any:
        await asyncio.to_thread(end)
        return await administer(self, decision)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Caller, "administer", later)
        return play(stage.application, stage.loop, sent, None)


@TOGETHER
@EVERY_ADDRESS
def test_a_right_that_ends_while_a_change_is_under_way_is_not_used(stage: Stage, method: str, path: str) -> None:
    for name, way in ENDS.items():
        things, before = Things(stage, name), list[dict[str, int]]()

        def end(way: Way = way, things: Things = things, before: list[dict[str, int]] = before) -> None:
            way.end(stage, things.admin, things.token)
            before.append(rows(stage))

        outcome = during(stage, things.sent(method, path), end)
        assert outcome.status == (403 if name == "no administrator" else 401), (name, outcome.body)
        assert rows(stage) == before[0], name
    with stage.another_guard() as change:
        outcome = during(stage, Things(stage).sent(method, path), change)
        assert outcome.status == 401
    held = play(stage.application, stage.loop, Things(stage).sent(method, path), None)
    assert held.status in {200, 201, 204}, held.body


@TOGETHER
@pytest.mark.parametrize("kind", ["user", "group"])
def test_a_removal_asks_again_in_the_transaction_that_removes(stage: Stage, kind: str) -> None:
    things, key_of = Things(stage), ownership.key_of

    def later(*args: Any) -> str:
        _expel(stage, things.admin, "")
        key: str = key_of(*args)
        return key

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ownership, "key_of", later)
        sent = things.sent("DELETE", f"{BELOW}/{kind}s/{{person}}")
        outcome = play(stage.application, stage.loop, sent, None)
    assert outcome.status == 403, outcome.body
    assert stage.world.entry(things.member).name == things.member.name


@pytest.mark.parametrize("stage", ["apart"], indirect=True)
@EVERY_ADDRESS
def test_a_directory_elsewhere_is_not_changed(stage: Stage, method: str, path: str) -> None:
    outcome = play(stage.application, stage.loop, Things(stage).sent(method, path), None)
    assert (outcome.status, json.loads(outcome.body)["code"]) == (400, "E_NOT_OFFERED_YET")
