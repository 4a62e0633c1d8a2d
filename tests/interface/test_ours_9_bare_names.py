"""Users and groups by their names alone, and what else a user shows. Source: docs/interface.md, ours 9."""

import secrets

import httpx
import lxml.etree
import pytest

from muniment.directory.entries import editing, entries, memberships, resources
from tests.interface.test_people_changes import Office
from tests.scenes import ATOM, Person, Site


@pytest.fixture
def office(site: Site) -> Office:
    return Office(site)


def elsewhere(site: Site, name: str) -> Person:
    """A user of another partition, whom the repository lets in."""
    with site.world.directory_db.begin() as cx:
        now = site.world.clock()
        partition = editing.add_partition(cx, site.world.names, f"else-{secrets.token_hex(4)}", now)
        user = editing.add_user(cx, partition, name, now, password_hash=site.world.hash_of("secret"))
        resources.add_to_role(cx, resources.by_id(cx, site.world.resource_id), user)
    return Person(f"{name}@{partition.name}", "secret")


def ask(site: Site, path: str, person: Person | None = None, **parameters: str) -> httpx.Response:
    return site.http.get(
        f"{site.repository}/{path}".rstrip("/"),
        params={name.replace("_", "-"): value for name, value in parameters.items()},
        headers=site.bearer(person) | {"Accept": "application/json"},
    )


def titles(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [entry["title"] for entry in answer.json()["entries"]]


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def make(site: Site, owner: Person, name: str, *, to: str = "") -> str:
    """Make an object, which the accessor ``to`` may read, too."""
    made = site.http.post(
        f"{site.repository}/objects", json={"properties": {"object_name": name}}, headers=site.bearer(owner)
    )
    assert made.status_code == 201, made.text
    object_id = f"{made.json()['properties']['r_object_id']}"
    if to:
        permitted = [{"accessor": to, "basic-permission": "Read"}]
        address = f"{site.repository}/objects/{object_id}/permission-set"
        assert site.http.put(address, json={"permitted": permitted}, headers=site.bearer(owner)).status_code == 200
    return object_id


def test_ours_9_feeds_show_bare_names_of_the_default_partition_and_full_names_of_others(site: Site) -> None:
    word = site.world.word()
    here, there = site.world.person(name=f"{word}-anna"), elsewhere(site, f"{word}-anna")
    listed = ask(site, "users", filter=f"starts-with(user_name,'{word}')")
    assert sorted(titles(listed)) == sorted([here.name, there.id])
    assert {"everyone", "writers"} <= set(titles(ask(site, "groups")))
    assert here.name in titles(ask(site, "users", items_per_page="1000"))
    for person, author in ((here, here.name), (there, there.id)):
        make(site, person, f"{word} {author}", to=f"{site.names.type_prefix}world")
    rows = ask(site, "", dql=f"select object_name from {site.type('sysobject')} where object_name like '{word}%'")
    authors = {entry["title"]: entry["author"] for entry in rows.json()["entries"]}
    assert {title: author[0]["name"] for title, author in authors.items()} == {
        f"{word} {name}": name for name in (here.name, there.id)
    }
    # The address of the author, and the properties, have the whole id.
    uri = f"{site.base}{site.repository}/users/{here.id}"
    assert authors[f"{word} {here.name}"][0]["uri"] == uri
    site.world.catch_up()
    found = site.http.get(
        f"{site.repository}/search", params={"q": word}, headers=site.bearer() | {"Accept": "application/atom+xml"}
    )
    names = lxml.etree.fromstring(found.content).findall(f"{ATOM}entry/{ATOM}author/{ATOM}name")
    assert sorted(name.text or "" for name in names) == sorted([here.name, there.id])


def test_ours_9_a_bare_name_that_would_mean_somebody_else_is_never_shown(site: Site) -> None:
    for name in (f"world@{secrets.token_hex(3)}", "owner", f"{site.names.type_prefix}world", "World"):
        try:
            person = site.world.person(name=name)
        except Exception:  # noqa: BLE001 - another set of names made it
            continue
        assert person.id in titles(ask(site, "users", items_per_page="1000"))
    object_id = make(site, site.world.writer, site.world.word())
    shown = ask(site, f"objects/{object_id}/permissions", site.world.writer, accessor="world").json()
    assert shown["accessor"] == f"{site.names.type_prefix}world"


def test_ours_9_a_bare_name_means_the_user_of_the_default_partition_and_no_other(site: Site) -> None:
    word = site.world.word()
    here, there = site.world.person(name=f"{word}a"), elsewhere(site, f"{word}a")
    lone = elsewhere(site, f"{word}b")
    permitted = [{"accessor": here.name, "basic-permission": "Write"}]
    object_id = make(site, site.world.writer, word)
    address, writer = f"{site.repository}/objects/{object_id}", site.bearer(site.world.writer)
    put = site.http.put(f"{address}/permission-set", json={"permitted": permitted}, headers=writer)
    assert put.status_code == 200, put.text
    assert put.json()["permitted"] == [{"accessor": here.id, "basic-permission": "Write"}]
    assert ask(site, f"objects/{object_id}", here).status_code == 200
    assert ask(site, f"objects/{object_id}", there).status_code == 404
    for asked in (here.name, here.name.upper(), here.id):
        shown = ask(site, f"objects/{object_id}/permissions", site.world.writer, accessor=asked).json()
        assert (shown["accessor"], shown["basic-permission"]) == (here.id, "Write"), asked
    shown = ask(site, f"objects/{object_id}/permissions", site.world.writer, accessor="writers").json()
    assert (shown["accessor"], shown["basic-permission"]) == ("writers@demo", "None")
    # Somebody of this name exists in another partition alone: the bare name is not theirs.
    for path in (f"objects/{object_id}/permissions", f"users/{lone.name}", f"users/{lone.name}/home"):
        refused = ask(site, path, site.world.writer, accessor=lone.name)
        assert code(refused) == (404, "E_UNKNOWN_PERSON"), path
    twice = [{"accessor": each, "basic-permission": "Read"} for each in (here.name, here.id)]
    both = site.http.put(f"{address}/permission-set", json={"permitted": twice}, headers=writer)
    assert code(both) == (400, "E_INVALID_ATTR_VALUE")


def test_ours_9_addresses_and_conditions_take_bare_names(site: Site, office: Office) -> None:
    word = site.world.word()
    person, other = site.world.person("writers", name=word), elsewhere(site, word)
    for owner in (person, other):
        make(site, owner, f"{word} of {owner.id}", to=f"{site.names.type_prefix}world")
    mine = [f"{word} of {person.id}"]
    for path, name in (
        (f"users/{word}", "user_name"),
        (f"users/{word.upper()}", "user_name"),
        (f"groups/writers/users/{word}", "user_name"),
        ("groups/everyone", "group_name"),
    ):
        assert ask(site, path).json()["properties"][name] in (person.id, "everyone@demo"), path
    assert "writers" in titles(ask(site, "groups/everyone/groups"))
    select = f"select object_name from {site.type('sysobject')} where owner_name"
    for condition in (f" = '{word}'", f" in ('{word}', 'nobody')", f" = '{person.id}'"):
        assert titles(ask(site, "", dql=f"{select}{condition}")) == mine, condition
    assert titles(ask(site, "", dql=f"select user_name from {site.type('user')} where user_name = '{word}'")) == [word]
    assert titles(ask(site, "users", filter=f"user_name='{word}'")) == [word]
    site.world.catch_up()
    for comparison in (
        {"expression-type": "property", "name": "owner_name", "operator": "EQUAL", "value": word},
        {"expression-type": "property-list", "name": "owner_name", "operator": "IN", "values": [word, "jon"]},
    ):
        document = {"types": [site.type("sysobject")], "expression-set": {"expressions": [comparison]}}
        found = site.http.post(
            f"{site.repository}/search",
            json=document,
            headers=site.bearer() | {"Accept": "application/json"},
        )
        assert titles(found) == mine, comparison
    href = f"{site.base}{site.repository}/users/{word}"
    joined = office.send("POST", "groups/everyone/users", {"href": href})
    assert joined.headers["Location"] == f"{site.base}{site.repository}/groups/everyone@demo/users/{person.id}"
    assert office.send("DELETE", f"groups/everyone/users/{word}").status_code == 204


def test_ours_9_the_login_name_and_the_displayed_name_stand_apart_from_the_name(office: Office) -> None:
    site, login = office.site, f"login-{secrets.token_hex(4)}"
    user, group_id = office.user(user_address="eva@example.org"), office.group()
    assert office.join("everyone@demo", "user", user.id).status_code == 201
    shown = office.send("GET", f"users/{user.id}").json()["properties"]
    assert (shown["user_login_name"], shown["user_address"]) == (user.name, "eva@example.org")
    changed = office.send("POST", f"users/{user.id}", {"properties": {"user_login_name": login}})
    assert changed.status_code == 200, changed.text
    for answer in (changed, office.send("GET", f"users/{user.id}"), office.send("GET", f"users/{user.name}")):
        values = answer.json()["properties"]
        assert (values["user_name"], values["user_login_name"]) == (user.id, login)
        assert values["user_address"] == "eva@example.org"
    select = f"select user_name, user_address from {site.type('user')} where"
    for condition in (
        f"user_login_name = '{login.upper()}'",
        f"user_name = '{user.name}' and user_address like '%EVA@%'",
    ):
        (row,) = ask(site, "", dql=f"{select} {condition}").json()["entries"]
        assert row["content"]["properties"] == {"user_name": user.id, "user_address": "eva@example.org"}, condition
    # It gives nobody a right: nobody signs in by it, and it names no accessor.
    assert site.ask_token(Person(f"{login}@demo", user.password)).status_code == 400
    assert code(office.send("GET", f"users/{login}")) == (404, "E_UNKNOWN_PERSON")
    # What was read may be sent back; an empty login name is the name again.
    back = office.send("POST", f"users/{user.id}", {"properties": {"user_name": user.name, "user_login_name": ""}})
    assert back.json()["properties"]["user_login_name"] == user.name
    named = office.send("POST", f"groups/{group_id}", {"properties": {"group_display_name": "Typists"}})
    assert [named.json()["properties"][name] for name in ("group_name", "group_display_name")] == [group_id, "Typists"]
    made = office.make("user", user_name=f"{login}-2", user_login_name=f"{login}-3", user_address="")
    assert (made.json()["properties"]["user_name"], made.json()["properties"]["user_login_name"]) == (
        f"{login}-2@demo",
        f"{login}-3",
    )


def test_ours_9_who_may_make_users_reads_those_too_whom_no_role_lets_in(office: Office) -> None:
    site, user, group_id = office.site, office.user(), office.group()
    for path in (f"users/{user.id}", f"users/{user.name}", f"groups/{group_id}", f"users/{user.id}/permission-set"):
        assert office.send("GET", path).status_code == 200, path
        assert code(office.send("GET", path, person=site.world.writer)) == (404, "E_UNKNOWN_PERSON"), path
    assert code(office.send("GET", f"users/{secrets.token_hex(8)}@demo")) == (404, "E_UNKNOWN_PERSON")
    assert code(office.send("GET", f"groups/{group_id}/users/{user.id}")) == (404, "E_UNKNOWN_PERSON")
    assert office.join(group_id, "user", user.id).status_code == 201
    assert office.send("GET", f"groups/{group_id}/users/{user.id}").status_code == 200
    assert user.name not in titles(ask(site, "users", office.admin, items_per_page="1000"))
    # The right is asked when it is used.
    with site.world.directory_db.begin() as cx:
        memberships.remove_members(cx, entries.administrators(cx), [site.world.entry(office.admin)])
    assert code(office.send("GET", f"users/{user.id}")) == (404, "E_UNKNOWN_PERSON")


def test_ours_9_a_user_leads_to_the_permission_set_of_their_new_objects(site: Site) -> None:
    shown = ask(site, f"users/{site.world.writer.id}").json()
    links = {link["rel"]: link["href"] for link in shown["links"]}
    href = links[f"{site.names.linkrel_base}/permission-set"]
    assert href == f"{site.base}{site.repository}/users/{site.world.writer.id}/permission-set"
    answer = site.http.get(href, headers=site.bearer() | {"Accept": "application/json"}).json()
    assert (answer["acl-name"], answer["owner"]) == ("private", site.world.writer.id)
    assert answer["permitted"] == [{"accessor": f"{site.names.type_prefix}owner", "basic-permission": "Delete"}]
    assert (
        ask(site, f"objects/{make(site, site.world.writer, 'x')}", site.world.writer).json()["properties"]["acl_name"]
        == answer["acl-name"]
    )


def test_ours_9_a_bare_name_that_nobody_bears_gets_no_right_and_no_object(site: Site) -> None:
    lone, word = elsewhere(site, site.world.word()), site.world.word()
    object_id = make(site, site.world.writer, word)
    writer = site.bearer(site.world.writer)
    entries = {"permitted": [{"accessor": lone.name, "basic-permission": "Read"}]}
    for method, path, body in (
        ("PUT", f"objects/{object_id}/permission-set", entries),
        ("POST", "acls", {"name": word, **entries}),
    ):
        refused = site.http.request(method, f"{site.repository}/{path}", json=body, headers=writer)
        assert code(refused) == (400, "E_UNKNOWN_ACCESSOR"), path
