"""Every changing decision leaves its audit event and the history of rights, in its own transaction (decision 0112)."""

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database import audit as mechanism
from muniment.database.audit import Actor, NobodyActs, acting
from muniment.database.connections import Database, directory_tables, repository_tables
from muniment.database.transactions import Transactions
from muniment.directory import audit
from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.entries import attributes, editing, memberships, resources, system
from muniment.ground.clock import LATEST, Instant
from muniment.ground.refusals import Malformed
from muniment.repository.bulk import ownership
from muniment.repository.store import repositories
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import assigned_acls
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission
from tests.office import HASH, PASSWORD, Office
from tests.shelf import ADMIN, BORIS, MARTA, Shelf

ANNA, BERTA = Actor("anna@demo", "192.0.2.7", "uuid of anna", "app"), Actor("berta@demo", "192.0.2.8", via="anna@demo")


@pytest.fixture
def office(directory_db: Database, now: Instant) -> Office:
    return Office(directory_db, now)


def rows(database: Database, name: str) -> list[dict[str, Any]]:
    table = {**directory_tables.tables, **repository_tables.tables}[name]
    with database.read() as cx:
        return [dict(row._mapping) for row in cx.execute(sa.select(table).order_by(*table.primary_key))]


def left(database: Database, decide: Callable[[Connection], object], half: str = "") -> tuple[Any, Any]:
    """The events and the history that a decision leaves."""
    tables = f"{half}audit_events", f"{half}rights_history"
    before = [len(rows(database, name)) for name in tables]
    with database.begin() as cx:
        decide(cx)
    events, history = (rows(database, name)[count:] for name, count in zip(tables, before, strict=True))
    assert {row["event_id"] for row in history} <= {event["id"] for event in events}
    return events, [tuple(row[name] for name in audit.Right._fields) for row in history]


def test_an_event_says_who_did_what_to_what_from_where(office: Office, now: Instant) -> None:
    with acting(ANNA, lambda: now + 5):
        (event,), history = left(office.db, lambda cx: memberships.add_member(cx, office.group, office.bob))
    event.pop("id")
    assert event == {
        "at": now + 5,
        "who": "anna@demo",
        "who_uuid": "uuid of anna",
        "client": "app",
        "place": "192.0.2.7",
        "via": "",
        "action": "member added",
        "target_kind": "group",
        "target": "staff@People",
        "result": "done",
        "target_uuid": office.group.uuid,
        "before": "{}",
        "after": '{"bob@People":"member"}',
    }
    assert history == [("membership", office.bob.uuid, office.group.uuid, "", "member")]


def test_what_changes_nothing_leaves_nothing(office: Office, now: Instant) -> None:
    def decide(cx: Connection) -> None:
        memberships.add_member(cx, office.group, office.alice)
        decisions.remove_members(cx, office.group, [office.bob], now)
        resources.add_to_role(cx, office.resource, office.group)
        resources.remove_from_role(cx, office.resource, office.bob)
        decisions.set_disabled(cx, office.bob, False, now)
        editing.set_description(cx, office.bob, "", now)
        attributes.put(cx, office.names, office.bob, {"mail": []}, now)
        system.remove(cx, "no such attribute")

    assert left(office.db, decide) == ([], [])


def test_a_decision_that_fails_leaves_neither_the_change_nor_an_event(office: Office) -> None:
    def decide() -> None:
        with office.db.begin() as cx:
            memberships.add_member(cx, office.group, office.bob)
            raise Malformed("no")

    tables = "audit_events", "rights_history", "memberships"
    before = [rows(office.db, name) for name in tables]
    with pytest.raises(Malformed):
        decide()
    assert [rows(office.db, name) for name in tables] == before


def test_nobody_changes_anything_unnamed(office: Office) -> None:
    def unnamed(cx: Connection) -> None:
        mechanism.unnamed(memberships.add_member, cx, office.group, office.bob)

    with pytest.raises(NobodyActs), office.db.begin() as cx:
        unnamed(cx)
    assert len(rows(office.db, "memberships")) == 1


def test_of_writes_that_share_a_transaction_each_has_its_own_actor(office: Office, now: Instant) -> None:
    """Also where the first of them began in a task with an actor, and one names nobody."""
    transactions = Transactions(office.db)
    with office.db.begin() as cx:
        people = [editing.add_user(cx, office.partition, f"user {number}", now) for number in range(40)]

    def add(cx: Connection, number: int) -> None:
        if number % 10 == 3:
            memberships.add_member(cx, office.group, people[number])
        with acting(Actor(f"actor {number}", "test"), lambda: now):
            memberships.add_member(cx, office.group, people[number])
            if number % 10 == 7:
                raise Malformed("no")

    async def ask() -> list[object]:
        with acting(ANNA, lambda: now):
            written = [transactions.write(add, number) for number in range(len(people))]
            return list(await asyncio.gather(*written, return_exceptions=True))

    before = len(rows(office.db, "audit_events"))
    answers = asyncio.run(ask())
    transactions.close()
    kinds = {3: NobodyActs, 7: Malformed}
    assert [type(answer) for answer in answers] == [kinds.get(at % 10, type(None)) for at in range(len(people))]
    events = rows(office.db, "audit_events")[before:]
    expected = {f"actor {at}": f"user {at}@People" for at in range(len(people)) if at % 10 not in kinds}
    assert {event["who"]: next(iter(json.loads(event["after"]))) for event in events} == expected


def test_several_changes_of_one_decision_are_one_event(office: Office, now: Instant) -> None:
    def decide(cx: Connection) -> None:
        with audit.decision(cx, "user changed", office.bob.target):
            editing.set_description(cx, office.bob, "first", now)
            editing.set_description(cx, office.bob, "second", now)
            attributes.put(cx, office.names, office.bob, {"mail": ["b@demo"]}, now)
            decisions.set_locked(cx, office.bob, True, now)
            memberships.add_member(cx, office.group, office.bob)

    (event,), history = left(office.db, decide)
    assert json.loads(event["before"]) == {"description": "", "mail": [], "locked": False}
    staff = {"bob@People": "member"}
    after = {"description": "second", "mail": ["b@demo"], "locked": True, "group staff@People": staff}
    assert json.loads(event["after"]) == after
    assert [right[0] for right in history] == ["state", "membership"]


def test_a_decision_without_a_name_is_called_after_the_first_thing_it_does(office: Office, now: Instant) -> None:
    def decide(cx: Connection) -> None:
        with audit.decision(cx):
            carl = editing.add_user(cx, office.partition, "carl", now)
            attributes.put(cx, office.names, carl, {"mail": ["c@demo"]}, now)

    (event,), _ = left(office.db, decide)
    assert (event["action"], event["target"]) == ("user made", "carl@People")
    assert json.loads(event["after"])["mail"] == ["c@demo"]


def test_what_a_refusal_keeps_has_its_event(office: Office, now: Instant) -> None:
    class Kept(Malformed):
        keeps_writes = True

    def decide(cx: Connection) -> None:
        with suppress(Kept), audit.decision(cx):
            editing.set_description(cx, office.bob, "kept", now)
            raise Kept("Refused, and kept.")

    (event,), _ = left(office.db, decide)
    assert json.loads(event["after"]) == {"description": "kept"}


def test_no_event_holds_a_secret(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        decisions.set_password(cx, office.alice, HASH, now)
        client = editing.add_client(cx, "secretive", now, password_hash=HASH)
        decisions.set_password(cx, client, None, now)
        resource = resources.add(cx, office.names, "Secretive", now)
        secret = resources.activate(cx, resource.id, now)
        system.put(cx, "bind.password", "hunter2", now, free=True)
        system.put(cx, "bind.password", "hunter3", now, free=True)
        system.remove(cx, "bind.password")
        system.put(cx, system.ENFORCE_SSL, "false", now)
    text = json.dumps(rows(office.db, "audit_events") + rows(office.db, "rights_history"))
    for word in (HASH, PASSWORD, secret, "hunter", "argon2"):
        assert word not in text
    events = rows(office.db, "audit_events")
    assert [json.loads(event["after"]) for event in events if event["action"] == "system attribute set"] == [
        *[{"value": "set"}] * 2,
        {"value": "false"},
    ]
    (new_password,) = [event for event in events if event["action"] == "password set" and "alice" in event["target"]]
    assert json.loads(new_password["before"]) == json.loads(new_password["after"]) == {"password": "set"}


def test_a_removal_ends_each_right_that_ends_with_it(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        memberships.add_member(cx, office.group, office.bob)
    (event,), history = left(office.db, lambda cx: decisions.remove(cx, office.group, now))
    assert (event["action"], event["target"]) == ("group removed", "staff@People")
    assert sorted(history) == sorted(
        [
            *(("membership", each.uuid, office.group.uuid, "member", "") for each in (office.alice, office.bob)),
            ("role", office.group.uuid, office.resource.id, "member", ""),
            ("state", office.group.uuid, "", "active", "removed"),
        ]
    )
    with office.db.begin() as cx:
        resources.add_to_role(cx, office.resource, office.alice)
    resource = resources.Resource(**{**_as_dict(office.resource), "activated": now})
    _, history = left(office.db, lambda cx: resource_decisions.remove_resource(cx, resource, now))
    assert sorted(history) == [
        ("role", office.alice.uuid, resource.id, "member", ""),
        ("state", resource.id, "", "activated", "removed"),
    ]


def _as_dict(resource: resources.Resource) -> dict[str, Any]:
    return {name: getattr(resource, name) for name in resources.Resource.__struct_fields__}


def test_who_was_in_which_group_and_role_can_be_played_back(office: Office, now: Instant) -> None:
    """Whatever is decided, in whatever order: the history gives the rights there are, and those there were."""
    chance, kept = random.Random(31), list[set[tuple[str, ...]]]()
    lengths = list[int]()
    with office.db.begin() as cx:
        people = [editing.add_user(cx, office.partition, f"u{number}", now) for number in range(4)]
        groups = [editing.add_group(cx, office.partition, f"g{number}", now) for number in range(3)]
    alive = {each.id: each for each in (*people, *groups)}
    for _ in range(60):
        with office.db.begin() as cx:
            group = chance.choice([each for each in alive.values() if each.kind == "group"])
            member = chance.choice(list(alive.values()))
            match chance.randrange(8):
                case 0 | 1 | 2:
                    memberships.add_member(cx, group, member)
                case 3:
                    decisions.remove_members(cx, group, [member], now)
                case 4:
                    resources.add_to_role(cx, office.resource, member)
                case 5:
                    resource_decisions.remove_from_role(cx, office.resource, member)
                case 6 if member.kind == "user":
                    decisions.set_disabled(cx, member, chance.random() < 0.5, now)
                case 7 if len(alive) > 5 and member.id != group.id:
                    decisions.remove(cx, alive.pop(member.id), now)
        kept.append(_rights(office.db))
        lengths.append(len(rows(office.db, "rights_history")))
    history = [tuple(row[name] for name in audit.Right._fields) for row in rows(office.db, "rights_history")]
    for length, rights in zip(lengths, kept, strict=True):
        assert _played(history[:length]) == rights


def _rights(database: Database) -> set[tuple[str, ...]]:
    uuids = {row["id"]: row["uuid"] for row in rows(database, "entries")}
    roles = {row["id"]: row["resource_id"] for row in rows(database, "access_roles")}
    found = {("membership", uuids[row["member_id"]], uuids[row["group_id"]]) for row in rows(database, "memberships")}
    found |= {("role", uuids[row["entry_id"]], roles[row["role_id"]]) for row in rows(database, "access_role_members")}
    return found | {("disabled", row["uuid"], "") for row in rows(database, "entries") if row["disabled"]}


def _played(history: list[tuple[str, ...]]) -> set[tuple[str, ...]]:
    found = set[tuple[str, ...]]()
    for kind, subject, thing, before, after in history:
        if kind == "state":
            kind, before, after = "disabled", *("disabled" if text == "disabled" else "" for text in (before, after))
        elif kind not in ("membership", "role"):
            continue
        if before:
            found.remove((kind, subject, thing))
        if after:
            found.add((kind, subject, thing))
    return found


def test_old_rows_go_in_bites_and_new_ones_stay(office: Office) -> None:
    tables, later = ("audit_events", "rights_history"), LATEST - 1
    with office.db.begin() as cx:
        audit.purge(cx, LATEST, 1000)
        for number in range(5):
            audit.record(cx, "x", office.bob.target, rights=[audit.Right("role", str(number), "", "", "")] * 2)
    with acting(ANNA, lambda: later):
        left(office.db, lambda cx: memberships.add_member(cx, office.group, office.bob))
    newer = [rows(office.db, name)[-1:] for name in tables]
    bites = list[int]()
    while not bites or bites[-1]:
        with office.db.begin() as cx:
            bites.append(audit.purge(cx, later, 4))
    assert bites == [4, 4, 2, 0]
    assert [rows(office.db, name) for name in tables] == newer


def test_an_event_takes_any_text(office: Office, now: Instant) -> None:
    odd = Actor("a\x00" * 400, "x" * 300, "u" * 50, "c" * 300)
    target = audit.Target("t", "\ud800" * 900)
    with acting(odd, lambda: now):
        (event,), _ = left(office.db, lambda cx: audit.record(cx, "x", target, None, {"k\x00": "\x00" * 9000}))
    assert len(event["who"]) == 255
    assert event["who_uuid"] is None
    assert "\x00" not in json.dumps(event)
    assert len(event["after"]) < 2000


# The repository


def levels(shelf: Shelf) -> set[tuple[str, ...]]:
    names = {row["id"]: row["shown_id"] for row in rows(shelf.database, "acls")}
    return {
        (row["accessor"], names[row["acl_id"]], Permission(row["permission"]).name.lower())
        for row in rows(shelf.database, "acl_entries")
    }


def played_levels(shelf: Shelf) -> set[tuple[str, ...]]:
    found: dict[tuple[str, str], str] = {}
    for row in rows(shelf.database, "repository_rights_history"):
        if row["kind"] == "acl entry":
            assert found.pop((row["subject"], row["object"]), "") == row["before"]
            if row["after"]:
                found[row["subject"], row["object"]] = row["after"]
    return {(*key, level) for key, level in found.items()}


def test_what_acls_permitted_can_be_played_back(shelf: Shelf) -> None:
    at = shelf.now
    read, write = {"jon@demo": Permission.READ}, {"jon@demo": Permission.WRITE, "world": Permission.BROWSE}
    assert played_levels(shelf) == levels(shelf), "the built-in ones"
    acl = shelf.acl("plans", read)
    assert played_levels(shelf) == levels(shelf)
    (event,), history = left(
        shelf.database, lambda cx: acls.change(cx, acl, ADMIN, {**write, "owner": Permission.READ}, at), "repository_"
    )
    assert event["action"] == "acl changed"
    assert json.loads(event["before"])["jon@demo"] == "read"
    assert ("acl entry", "jon@demo", acl.shown_id, "read", "write") in history
    assert played_levels(shelf) == levels(shelf)
    stored = shelf.create({"object_name": "plan"})
    with shelf.database.begin() as cx:
        assigned_acls.permit(cx, shelf.repository, ADMIN, stored.id, write, at)
    assert played_levels(shelf) == levels(shelf)
    with shelf.database.begin() as cx:
        assert acls.forget(cx, "jon@demo") == 2
    assert played_levels(shelf) == levels(shelf)
    with shelf.database.begin() as cx:
        acls.remove(cx, acls.find(cx, shelf.repository.id, acl.shown_id, ADMIN), ADMIN)
    assert played_levels(shelf) == levels(shelf)


def test_what_an_object_is_made_with_costs_no_row_and_what_it_gets_later_is_recorded(shelf: Shelf) -> None:
    acl = shelf.acl("plans", {"jon@demo": Permission.READ})
    before = rows(shelf.database, "repository_audit_events"), rows(shelf.database, "repository_rights_history")
    made = [shelf.create({"object_name": f"plan {number}", "acl_name": acl.shown_id}, ADMIN) for number in range(3)]
    shelf.change(made[0].id, {"title": "Plans"}, ADMIN)
    assert before == (
        rows(shelf.database, "repository_audit_events"),
        rows(shelf.database, "repository_rights_history"),
    )
    with shelf.database.read() as cx:
        private = acls.find(cx, shelf.repository.id, acls.PRIVATE, ADMIN)
    view = shelf.view(ADMIN)
    (event,), history = left(
        shelf.database,
        lambda cx: objects.change(
            cx, view, made[0].id, {"acl_name": acls.PRIVATE, "owner_name": "boris@demo"}, shelf.now
        ),
        "repository_",
    )
    assert (event["target_kind"], event["target_uuid"]) == ("object", made[0].id)
    assert history == [
        ("acl", private.shown_id, made[0].id, acl.shown_id, private.shown_id),
        ("owner", "boris@demo", made[0].id, ADMIN.key, "boris@demo"),
    ]
    (event,), history = left(
        shelf.database,
        lambda cx: assigned_acls.assign(cx, shelf.repository, ADMIN, made[1].id, acls.PRIVATE, shelf.now),
        "repository_",
    )
    assert history == [("acl", private.shown_id, made[1].id, acl.shown_id, private.shown_id)]


def test_a_gift_is_one_event_with_a_row_for_each_object(shelf: Shelf) -> None:
    made = [shelf.create({"object_name": f"plan {number}"}) for number in range(3)]
    receiver = ownership.Receiver(BORIS.id, BORIS.key)
    ids = [each.id for each in made]
    (event,), history = left(
        shelf.database,
        lambda cx: ownership.give_these(cx, shelf.repository, ids, receiver, ADMIN, shelf.now, 2000),
        "repository_",
    )
    assert json.loads(event["after"]) == {"objects": 3}
    assert sorted(history) == sorted(("owner", BORIS.key, each.id, MARTA.key, BORIS.key) for each in made)


def test_who_guards_a_repository_is_recorded(shelf: Shelf) -> None:
    former = shelf.repository.resource_id
    new = "11111111-0000-4000-8000-000000000000"
    _, history = left(shelf.database, lambda cx: repositories.guard(cx, shelf.repository, new), "repository_")
    assert history == [("guard", new, "demo", former, new)]
