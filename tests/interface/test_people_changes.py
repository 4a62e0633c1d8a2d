"""Users and groups made, changed and removed at a repository, and memberships. Source: docs/interface.md, ours 9."""

import json
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import lxml.etree
import pytest
import sqlalchemy as sa

from muniment.database.connections import directory_tables
from muniment.directory import version_stamps
from muniment.directory.administration import decisions
from muniment.directory.entries import entries, memberships
from tests.scenes import ATOM, Person, Site
from tests.waiting import until


class Office:
    """What somebody who administers the directory sends to a repository that lets them in."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.admin = site.world.person()
        with site.world.directory_db.begin() as cx:
            memberships.add_member(cx, entries.administrators(cx), site.world.entry(self.admin))

    def send(self, method: str, path: str, body: object = None, person: Person | None = None) -> httpx.Response:
        """Send a request in JSON, as the administrator or as somebody else."""
        headers = {**self.site.bearer(person or self.admin), "Accept": "application/json"}
        return self.site.http.request(method, f"{self.site.repository}/{path}", json=body, headers=headers)

    def make(self, kind: str, **properties: object) -> httpx.Response:
        """Make a user or group."""
        return self.send("POST", f"{kind}s", {"properties": properties})

    def user(self, **more: object) -> Person:
        """Make a user with a password, whom no role lets in."""
        person = Person(f"made-{secrets.token_hex(4)}@demo", secrets.token_urlsafe(12))
        made = self.make("user", user_name=person.id, user_password=person.password, **more)
        assert made.status_code == 201, made.text
        return person

    def group(self, member_of: str = "") -> str:
        """Make a group, and perhaps put it into another."""
        group_id = f"made-{secrets.token_hex(4)}@demo"
        assert self.make("group", group_name=group_id).status_code == 201
        if member_of:
            assert self.join(member_of, "group", group_id).status_code == 201
        return group_id

    def join(self, group_id: str, kind: str, member_id: str) -> httpx.Response:
        """Put a user or group into a group."""
        href = f"{self.site.base}{self.site.repository}/{kind}s/{quote(member_id, safe='@')}"
        return self.send("POST", f"groups/{quote(group_id, safe='@')}/{kind}s", {"href": href})


@pytest.fixture
def office(site: Site) -> Office:
    return Office(site)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def properties(answer: httpx.Response) -> Mapping[str, Any]:
    found: Mapping[str, Any] = answer.json()["properties"]
    return found


def test_ours_9_an_administrator_makes_changes_and_removes_a_user(office: Office) -> None:
    site = office.site
    name = f"éva/{secrets.token_hex(3)}.json"
    made = office.make("user", user_name=f"{name}@demo", user_password="first", description="A typist.")
    assert made.status_code == 201, made.text
    address = f"users/{quote(name, safe='')}@demo"
    assert made.headers["Location"] == f"{site.base}{site.repository}/{address}"
    shown = properties(made)
    assert (shown["user_name"], shown["user_login_name"]) == (f"{name}@demo", name)
    assert (shown["description"], shown["user_state"]) == ("A typist.", 0)
    links = {link["rel"]: link["href"] for link in made.json()["links"]}
    assert links["edit"] == links[f"{site.names.linkrel_base}/delete"] == made.headers["Location"]
    # Nobody lets her in yet: she is not listed, and cannot come.
    assert code(office.send("GET", address, person=site.world.writer)) == (404, "E_UNKNOWN_PERSON")
    assert office.join("everyone@demo", "user", f"{name}@demo").status_code == 201
    assert "user_state" not in properties(office.send("GET", address))
    eva = Person(f"{name}@demo", "first")
    assert office.send("GET", "currentuser", person=eva).status_code == 200
    # A new password ends her sessions.
    changed = office.send("POST", address, {"properties": {"user_password": "second", "description": "An editor."}})
    assert (changed.status_code, properties(changed)["description"]) == (200, "An editor.")
    assert office.send("GET", "currentuser", person=eva).status_code == 401
    assert site.ask_token(eva).status_code == 400
    eva.password = "second"
    site.forget(eva)
    assert office.send("GET", "currentuser", person=eva).status_code == 200
    for state in (1, "2", 3):
        disabled = office.send("POST", address, {"properties": {"user_state": state, "user_name": f"{name}@demo"}})
        assert properties(disabled)["user_state"] == int(state)
        assert office.send("GET", "currentuser", person=eva).status_code == 401
    assert properties(office.send("POST", address, {"properties": {"user_state": 0}}))["user_state"] == 0
    site.forget(eva)
    assert office.send("GET", "currentuser", person=eva).status_code == 200
    removed = office.send("DELETE", address)
    assert (removed.status_code, removed.content) == (204, b"")
    assert office.send("GET", "currentuser", person=eva).status_code == 401
    assert code(office.send("DELETE", address)) == (404, "E_UNKNOWN_PERSON")


def test_ours_9_members_come_and_go_and_the_next_search_obeys(office: Office) -> None:
    site, group_id, member = office.site, office.group(), office.user()
    word = site.world.word()
    acl = {"name": word, "permitted": [{"accessor": group_id, "basic-permission": "Read"}]}
    assert office.send("POST", "acls", acl).status_code == 201
    assert office.send("POST", "objects", {"properties": {"object_name": word, "acl_name": word}}).status_code == 201
    site.world.catch_up()
    site.world.admit(member, site.world.resource_id)

    def found() -> int:
        hits = office.send("GET", f"search?q={word}", person=member)
        assert hits.status_code == 200, hits.text
        return len(hits.json().get("entries", []))

    assert found() == 0
    joined = office.join(group_id, "user", member.id)
    assert joined.status_code == 201
    membership = f"{site.base}{site.repository}/groups/{group_id}/users/{member.id}"
    assert (joined.headers["Location"], properties(joined)["user_name"]) == (membership, member.id)
    assert office.join(group_id, "user", member.id).status_code == 201
    assert found() == 1
    # The group is shown once it is let in; entries of its members carry the link by which clients remove them.
    assert code(office.send("GET", f"groups/{group_id}/users")) == (404, "E_UNKNOWN_PERSON")
    assert office.join("everyone@demo", "group", group_id).status_code == 201
    (entry,) = office.send("GET", f"groups/{group_id}/users").json()["entries"]
    assert entry["links"][1] == {"rel": f"{site.names.linkrel_base}/delete", "href": membership}
    feed = site.http.get(membership.rpartition("/")[0], headers=site.bearer() | {"Accept": "application/atom+xml"})
    links = lxml.etree.fromstring(feed.content).findall(f"{ATOM}entry/{ATOM}link")
    assert membership in [link.get("href") for link in links]
    assert properties(site.http.get(membership, headers=site.bearer()))["user_name"] == member.id
    assert office.send("DELETE", f"groups/{group_id}/users/{member.id}").status_code == 204
    assert found() == 0
    gone = office.send("DELETE", f"groups/{group_id}/users/{member.id}")
    assert code(gone) == (404, "E_UNKNOWN_PERSON")
    assert site.http.get(membership, headers=site.bearer()).status_code == 404
    assert office.send("DELETE", f"groups/everyone@demo/groups/{group_id}").status_code == 204


def test_ours_9_the_audit_of_the_directory_says_who_asked_and_from_where(office: Office) -> None:
    person = office.user(description="new")
    with office.site.world.directory_db.read() as cx:
        table = directory_tables.tables["audit_events"]
        columns = table.c["who", "who_uuid", "place", "action"]
        found = cx.execute(sa.select(*columns).where(table.c.target == person.id)).all()
    admin = office.site.world.entry(office.admin).uuid
    assert found == [(office.admin.id, admin, "127.0.0.1", "user made")]


def test_ours_9_xml_says_the_same(office: Office) -> None:
    site, vocab = office.site, office.site.names.vocab_namespace
    name = f"xml-{secrets.token_hex(4)}"

    def post(path: str, text: str) -> httpx.Response:
        headers = site.bearer(office.admin) | {"Content-Type": "application/xml", "Accept": "application/xml"}
        return site.http.post(f"{site.repository}/{path}", content=text.encode(), headers=headers)

    inside = f"<properties><group_name>{name}@demo</group_name><group_display_name>{name}</group_display_name>"
    kind = f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="{site.type("group")}"'
    made = post("groups", f'<group xmlns="{vocab}" {kind}>{inside}</properties></group>')
    assert made.status_code == 201, made.text
    root = lxml.etree.fromstring(made.content)
    assert root.findtext(f"{site.vocab}properties/{site.vocab}group_name") == f"{name}@demo"
    href = f"{site.base}{site.repository}/users/{site.world.reader.id}"
    assert post(f"groups/{name}@demo/users", f'<user xmlns="{vocab}" href="{href}"/>').status_code == 201
    described = "<properties><description>New.</description></properties>"
    changed = post(f"groups/{name}@demo", f'<group xmlns="{vocab}">{described}</group>')
    assert (changed.status_code, b"New." in changed.content) == (200, True)
    assert post("users", "<user><properties><user_name>cut").status_code == 400


def test_ours_9_groups_may_contain_each_other(office: Office) -> None:
    outer, inner = office.group("everyone@demo"), office.group()
    for group_id, member_id in ((outer, inner), (inner, outer), (outer, outer)):
        assert office.join(group_id, "group", member_id).status_code == 201
    member = office.user()
    assert office.join(inner, "user", member.id).status_code == 201
    assert office.send("GET", "currentuser", person=member).status_code == 200
    assert office.send("DELETE", f"groups/{outer}").status_code == 204
    assert office.send("DELETE", f"groups/{inner}").status_code == 204
    assert office.send("GET", "currentuser", person=member).status_code == 401


def test_ours_9_only_who_administers_the_directory_may_and_others_learn_nothing(office: Office) -> None:
    site, group_id, member = office.site, office.group("everyone@demo"), office.user()
    for person in (site.world.writer, site.world.reader):
        for known, unknown in ((member.id, "nobody@demo"), (group_id, "nothing@demo")):
            kind = "user" if known == member.id else "group"
            href = f"{site.base}{site.repository}/{kind}s/{{}}"
            for name in (known, unknown):
                body = {"properties": {"description": "mine", **({"user_password": "x"} if kind == "user" else {})}}
                requests = (
                    ("POST", f"{kind}s", {"properties": {f"{kind}_name": name}}),
                    ("POST", f"{kind}s/{name}", body),
                    ("DELETE", f"{kind}s/{name}", None),
                    ("POST", f"groups/{group_id}/{kind}s", {"href": href.format(name)}),
                    ("DELETE", f"groups/{group_id}/{kind}s/{name}", None),
                )
                for method, path, content in requests:
                    refused = office.send(method, path, content, person)
                    assert code(refused) == (403, "E_NOT_PERMITTED"), (method, path)
                    assert name not in refused.text
    assert site.http.post(f"{site.repository}/users", json={"properties": {}}).status_code == 401
    # Whoever is taken out of the administrators may not any more.
    assert office.send("DELETE", f"groups/administrators@{_partition(site)}/users/{office.admin.id}").status_code == 204
    assert code(office.make("group", group_name="late@demo")) == (403, "E_NOT_PERMITTED")
    site.world.remove_group(group_id.partition("@")[0])


def test_ours_9_the_directory_keeps_its_rules(office: Office) -> None:
    site, writer = office.site, office.site.world.writer
    administrators = f"administrators@{_partition(site)}"
    assert code(office.make("user", user_name=writer.id)) == (409, "E_NAME_TAKEN")
    assert code(office.make("group", group_name=writer.id.upper())) == (409, "E_NAME_TAKEN")
    assert code(office.send("DELETE", f"groups/{administrators}")) == (409, "E_IN_USE")
    # A repository knows the writer by name, and nobody a new user.
    renaming = {"properties": {"user_name": f"w-{secrets.token_hex(3)}@demo"}}
    site.create("thing of the writer")
    assert code(office.send("POST", f"users/{writer.id}", renaming)) == (409, "E_IN_USE")
    clients = site.directory_names.clients_partition
    for method, body in (("DELETE", None), ("POST", {"properties": {"user_name": f"other@{clients}"}})):
        refused = office.send(method, f"users/{site.world.client_id}@{clients}", body)
        assert code(refused) == (409, "E_IN_USE")
        assert "repository.basic_client" in refused.text
    renamed = office.send("POST", f"users/{office.user().id}", renaming)
    assert (renamed.status_code, properties(renamed)["user_name"]) == (200, renaming["properties"]["user_name"])
    moved = {"properties": {"user_name": f"{writer.name}@{_partition(site)}"}}
    assert code(office.send("POST", f"users/{writer.id}", moved)) == (400, "E_INVALID_ATTR_VALUE")


def test_ours_9_somebody_stays_who_administers_the_directory(office: Office) -> None:
    site, database = office.site, office.site.world.directory_db
    administrators = f"administrators@{_partition(site)}"
    with database.read() as cx:
        others = [each for each in memberships.members(cx, entries.administrators(cx)) if each.live]
    others = [each for each in others if each.name != office.admin.name]
    assert others
    try:
        with database.begin() as cx:
            for other in others:
                decisions.set_disabled(cx, other, True, site.world.clock())
        for state in (1, 2, 3):
            refused = office.send("POST", f"users/{office.admin.id}", {"properties": {"user_state": state}})
            assert code(refused) == (409, "E_NOBODY_ADMINISTERS")
        for path in (f"users/{office.admin.id}", f"groups/{administrators}/users/{office.admin.id}"):
            assert code(office.send("DELETE", path)) == (409, "E_NOBODY_ADMINISTERS")
        assert office.send("GET", "currentuser").status_code == 200
    finally:
        with database.begin() as cx:
            for other in others:
                decisions.set_disabled(cx, other, False, site.world.clock())
        site.world.tokens.clear()
    assert office.send("POST", f"users/{office.admin.id}", {"properties": {"user_state": 1}}).status_code == 200
    assert office.send("POST", "users", {"properties": {}}).status_code == 401


def test_ours_9_what_a_removed_user_owns_keeps_its_owner_and_no_later_bearer_of_the_name_gets_it(
    office: Office,
) -> None:
    site, owner = office.site, office.user()
    assert office.join("everyone@demo", "user", owner.id).status_code == 201
    made = office.send("POST", "objects", {"properties": {"object_name": "left"}}, owner).json()["properties"]
    assert office.send("DELETE", f"users/{owner.id}").status_code == 204
    site.forget(owner)
    again = office.make("user", user_name=owner.id, user_password=owner.password)
    assert again.status_code == 201
    assert office.join("everyone@demo", "user", owner.id).status_code == 201
    assert office.send("GET", f"objects/{made['r_object_id']}", person=owner).status_code == 404


def test_ours_9_of_several_who_take_a_name_at_one_moment_one_gets_it(office: Office) -> None:
    name, group_id = f"once-{secrets.token_hex(4)}@demo", office.group()
    others = [office.site.world.person() for _ in range(4)]
    with ThreadPoolExecutor(8) as threads:
        made = [threads.submit(office.make, "user", user_name=name, user_password="x") for _ in range(2)]
        made += [threads.submit(office.make, "user", user_name=name) for _ in range(2)]
        tokens = [threads.submit(office.site.ask_token, other) for other in others]
        statuses = sorted(each.result().status_code for each in made)
        assert {each.result().status_code for each in tokens} == {200}
    assert statuses == [201, 409, 409, 409]
    with ThreadPoolExecutor(4) as threads:
        joined = [threads.submit(office.join, group_id, "user", name) for _ in range(4)]
        assert {each.result().status_code for each in joined} == {201}


def test_ours_9_one_caller_has_four_changes_under_way_at_most(office: Office) -> None:
    names = [f"slow-{secrets.token_hex(4)}@demo" for _ in range(5)]
    office.site.bearer(office.admin)
    with ThreadPoolExecutor(5) as threads:
        with office.site.world.directory_db.begin() as cx:
            version_stamps.lock_rights(cx)
            made = [threads.submit(office.make, "group", group_name=name) for name in names]
            until(lambda: any(each.done() for each in made), "the fifth change waits, too")
        answers = [each.result() for each in made]
    assert sorted(each.status_code for each in answers) == [201, 201, 201, 201, 503]


BAD: dict[str, tuple[dict[str, object], str]] = {
    "no name": ({}, "E_INVALID_ATTR_VALUE"),
    "empty name": ({"user_name": "@demo"}, "E_INVALID_ATTR_VALUE"),
    "no partition": ({"user_name": "x@"}, "E_INVALID_ATTR_VALUE"),
    "unknown partition": ({"user_name": "x@nowhere"}, "E_INVALID_ATTR_VALUE"),
    "long": ({"user_name": "x" * 121 + "@demo"}, "E_INVALID_ATTR_VALUE"),
    "control": ({"user_name": "x\n@demo"}, "E_INVALID_ATTR_VALUE"),
    "NUL": ({"user_name": "x\0@demo"}, "E_INVALID_ATTR_VALUE"),
    "another order": ({"user_name": "x\u202ey@demo"}, "E_INVALID_ATTR_VALUE"),
    "two scripts": ({"user_name": "\u0430dmin@demo"}, "E_INVALID_ATTR_VALUE"),
    "spaces": ({"user_name": " x@demo"}, "E_INVALID_ATTR_VALUE"),
    "number": ({"user_name": 7}, "E_INVALID_ATTR_VALUE"),
    "list": ({"user_name": ["x@demo"]}, "E_INVALID_ATTR_VALUE"),
    "login name of a wrong kind": ({"user_name": "x@demo", "user_login_name": 7}, "E_INVALID_ATTR_VALUE"),
    "address of a wrong kind": ({"user_name": "x@demo", "user_address": ["a", "b"]}, "E_INVALID_ATTR_VALUE"),
    "long description": ({"user_name": "x@demo", "description": "x" * 4001}, "E_INVALID_ATTR_VALUE"),
    "NUL in description": ({"user_name": "x@demo", "description": "\0"}, "E_INVALID_ATTR_VALUE"),
    "empty password": ({"user_name": "x@demo", "user_password": ""}, "E_INVALID_ATTR_VALUE"),
    "blank password": ({"user_name": "x@demo", "user_password": " "}, "E_INVALID_ATTR_VALUE"),
    "password of a wrong kind": ({"user_name": "x@demo", "user_password": {"top": "secret"}}, "E_INVALID_ATTR_VALUE"),
    "state": ({"user_name": "x@demo", "user_state": 4}, "E_INVALID_ATTR_VALUE"),
    "state as truth": ({"user_name": "x@demo", "user_state": True}, "E_INVALID_ATTR_VALUE"),
    "state in words": ({"user_name": "x@demo", "user_state": "²"}, "E_INVALID_ATTR_VALUE"),
    "unknown property": ({"user_name": "x@demo", "user_group": "x"}, "E_INVALID_ATTR_NAME"),
    "other type": ({"user_name": "x@demo", "r_object_type": "x"}, "E_INVALID_ATTR_VALUE"),
}


@pytest.mark.parametrize("case", BAD)
def test_ours_9_a_user_that_cannot_be_is_refused(site: Site, office: Office, case: str) -> None:
    given, expected = BAD[case]
    given = {site.names.system_property_prefix + n[2:] if n == "r_object_type" else n: v for n, v in given.items()}
    refused = office.make("user", **given)
    assert code(refused) == (400, expected), refused.text
    assert "secret" not in refused.text


def test_ours_9_bad_bodies_and_references_are_refused(office: Office) -> None:
    site = office.site
    here, headers = f"{site.base}{site.repository}", site.bearer(office.admin)
    group_id = office.group()
    read_only = {site.names.system_property_prefix + "object_id": "11"}
    assert code(office.make("user", user_name="x@demo", **read_only)) == (400, "E_NOT_WRITABLE")
    assert code(office.make("group", group_name="x@demo", user_password="x")) == (400, "E_INVALID_ATTR_NAME")
    references = {
        f"{here}/users/nobody@demo": (404, "E_UNKNOWN_PERSON"),
        f"{here}/groups/{group_id}": (400, "E_MALFORMED_REQUEST"),
        f"{here}/users/": (400, "E_MALFORMED_REQUEST"),
        f"{here.replace('/demo', '/other')}/users/{site.world.reader.id}": (400, "E_MALFORMED_REQUEST"),
        "": (400, "E_MALFORMED_REQUEST"),
    }
    for href, expected in references.items():
        assert code(office.send("POST", f"groups/{group_id}/users", {"href": href})) == expected, href
    known = f"{here}/users/{site.world.reader.id}"
    assert code(office.send("POST", "groups/no@demo/users", {"href": known})) == (404, "E_UNKNOWN_PERSON")
    assert code(office.send("POST", f"users/{group_id}", {"properties": {}})) == (404, "E_UNKNOWN_PERSON")
    for content, media_type, status in (
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"", "application/json", 400),
        (b"x=1", "application/x-www-form-urlencoded", 415),
        (b'{"properties": {"description": "' + b"x" * 10_000_000 + b'"}}', "application/json", 413),
        (
            json.dumps({"properties": {"user_name": "x@demo", "description": "\ud800"}}).encode(),
            "application/json",
            400,
        ),
    ):
        for path in ("users", f"groups/{group_id}", f"groups/{group_id}/users"):
            refused = site.http.post(
                f"{site.repository}/{path}", content=content, headers=headers | {"Content-Type": media_type}
            )
            assert refused.status_code == status, (path, content[:40], refused.text[:300])


def _partition(site: Site) -> str:
    return site.directory_names.administration_partition
