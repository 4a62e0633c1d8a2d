"""Ours 23: administrators' programs find, make, change and remove users, groups, roles, units and partitions."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from muniment.database.connections import directory_tables
from muniment.directory.entries import entries, memberships
from tests.interface.by_rest import Rest, values_of
from tests.scenes import Site

V1_KEYS = {"userPartitionID": "user_partition_id", "objectClass": "object_class", "urlId": "url_id"}


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


def test_a_user_is_made_shown_changed_and_removed(rest: Rest) -> None:
    partition = rest.partition()
    body = {
        "userPartitionID": partition,
        "name": "ann",
        "description": "Sales",
        "values": [{"name": "mail", "values": ["ann@example.org"]}, {"name": "sn", "values": ["Lee"]}],
    }
    made = rest("POST", "/users", body)
    assert made.status_code == 201
    assert made.headers["ETag"].startswith('"')
    user = made.json()
    assert (user["userPartitionID"], user["name"], user["id"]) == (partition, "ann", f"ann@{partition}")
    assert user["location"] == user["urlLocation"]
    assert user["objectClass"] == rest.site.directory_names.object_class
    assert values_of(user, "mail") == ["ann@example.org"]
    assert values_of(user, "accountDisabled") == ["false"]
    assert "attributes" not in user
    assert rest.done("GET", f"/users/ann@{partition}?attrs=*") == user
    change = {"userPartitionID": partition, "values": [{"name": "accountDisabled", "values": ["True"]}]}
    changed = rest("PATCH", f"/users/ann@{partition}", change | {"description": "HR"})
    assert changed.status_code == 200
    assert values_of(changed.json(), "accountDisabled") == ["true"]
    assert (changed.json()["description"], values_of(changed.json(), "mail")) == ("HR", ["ann@example.org"])
    assert rest("DELETE", f"/users/ann@{partition}").status_code == 204
    gone = rest("GET", f"/users/ann@{partition}")
    assert gone.status_code == 404
    assert gone.json() == {"status": 3007, "error": f"There is no user 'ann@{partition}'.", "errorDetails": None}


def test_both_dialects_read_both_spellings_and_write_their_own(site: Site) -> None:
    rest, old = Rest(site), Rest(site, "v1")
    partition = rest.partition()
    made = old.done("POST", "/users", {"userPartitionID": partition, "name": "ann", "unknown_key": 1})
    assert made["user_partition_id"] == partition
    assert "userPartitionID" not in made
    shown = rest.done("GET", f"/users/ann@{partition}")
    assert {old_key: shown[key] for key, old_key in V1_KEYS.items()} == {key: made[key] for key in V1_KEYS.values()}
    body = {
        "user_partition_id": partition,
        "name": "bob",
        "custom_attributes": [{"type": "t", "name": "n", "value": 5}],
    }
    assert rest.done("POST", "/users", body)["customAttributes"] == [{"type": "t", "name": "n", "value": "5"}]
    assert old("GET", "/users/nobody@nowhere").json() == {
        "status": 3007,
        "error": "There is no user 'nobody@nowhere'.",
        "error_details": None,
    }
    page = old.done("GET", "/users", params={"where_partition_name": partition, "page_size": "1"})
    assert page.keys() == {
        "users", "actual_page_size", "requested_page_size", "requested_filter", "next_page_cookie"
    }  # fmt: skip


def test_an_object_that_was_read_is_sent_back_and_changes_nothing(rest: Rest) -> None:
    partition = rest.partition()
    rest.user(partition, "ann", mail="a@example.org")
    before = rest("GET", f"/users/ann@{partition}")
    answer = rest("PUT", f"/users/ann@{partition}", before.json())
    assert answer.json() == before.json()
    assert answer.headers["ETag"] == before.headers["ETag"]
    as_keys = rest.done("GET", f"/users/ann@{partition}", params={"attrsAsKeys": "True"})
    assert as_keys["values"] == []
    assert as_keys["attributes"]["mail"] == ["a@example.org"]
    assert rest("PUT", f"/users/ann@{partition}", as_keys).headers["ETag"] == before.headers["ETag"]


def test_the_same_state_is_not_written_again(rest: Rest) -> None:
    partition = rest.partition()
    state = {"accountDisabled": "true", "accountLockedOut": "true", "UserCannotChangePassword": "true"}
    rest.user(partition, "ann", **state)
    before = rest("GET", f"/users/ann@{partition}")
    assert values_of(before.json(), "accountLockedOut") == ["true"]
    answer = rest("PUT", f"/users/ann@{partition}", before.json())
    assert answer.json() == before.json()
    assert answer.headers["ETag"] == before.headers["ETag"]


def test_a_location_that_names_somebody_else_is_refused(rest: Rest) -> None:
    partition = rest.partition()
    for user in (rest.user(partition, "ann"), rest.group(partition, "staff")):
        path = f"/{'users' if user['name'] == 'ann' else 'groups'}/{user['id']}"
        wrong = rest("PUT", path, {"location": user["location"].replace(f"cn={user['name']}", "cn=other")})
        assert (wrong.status_code, rest.done("GET", path)["location"]) == (400, user["location"])
        renamed = rest.done("PUT", path, {"name": f"{user['name']} 2", "location": user["location"]})
        assert renamed["name"] == f"{user['name']} 2"


def test_a_user_is_renamed_and_moved_by_put(rest: Rest) -> None:
    partition = rest.partition()
    unit = rest.done("POST", "/orgunits", {"userPartitionID": partition, "name": "North"})
    user = rest.user(partition, "ann")
    renamed = rest.done("PUT", f"/users/ann@{partition}", {"name": "anna", "location": unit["location"]})
    assert renamed["id"] == f"anna@{partition}"
    assert renamed["location"] == f"cn=anna,{unit['location']}"
    assert renamed["uuid"] == user["uuid"]
    assert rest("PUT", f"/users/anna@{partition}", {"userPartitionID": "elsewhere"}).status_code == 400
    taken = rest.user(partition, "bob")
    assert rest("PUT", f"/users/{taken['id']}", {"name": "ANNA"}).status_code == 409


@pytest.mark.parametrize("path", ["%s", "{name}", "{raw}", "{encoded}", "{uuid}", "{encoded_at}"])
def test_every_spelling_of_an_identifier_finds_the_user(rest: Rest, path: str) -> None:
    names, partition, name = rest.site.directory_names, rest.partition(), rest.site.world.word() + " lee"
    user = rest.user(partition, name)
    end = ",".join(f"dc={part}" for part in names.dn_suffix.split("dc=")[1:]).replace(",,", ",")
    spellings = {
        "%s": user["id"].replace(" ", "%20"),
        "{name}": name.replace(" ", "%20"),
        "{raw}": user["location"].replace(" ", "%20"),
        "{encoded}": user["location"].replace(" ", "%20").replace("=", "%3D").replace(",", "%2C"),
        "{uuid}": f"{names.object_class}={user['uuid']},orgunit=Root,partition={partition},{end}",
        "{encoded_at}": user["id"].replace(" ", "+").replace("@", "%40"),
    }
    assert rest.done("GET", f"/users/{spellings[path]}")["id"] == user["id"]


def test_a_location_is_read_without_its_escapes_and_of_another_suffix_it_is_nobodys(rest: Rest) -> None:
    partition = rest.partition()
    user = rest.user(partition, "a, b")
    assert "a\\, b" in user["location"]
    for text in (user["location"], user["location"].replace("\\", "")):
        assert rest.done("GET", "/users/" + text.replace(" ", "%20").replace("\\", "%5C"))["id"] == user["id"]
    for text in (
        user["location"].rpartition(",")[0] + ",dc=elsewhere",
        user["location"].rpartition(",")[0],
        "cn=",
        "=,=",
        "cn=a\\",
    ):
        assert rest("GET", "/users/" + text.replace("\\", "%5C").replace(" ", "%20")).status_code == 404


def test_a_bare_name_in_two_partitions_means_nobody(rest: Rest) -> None:
    name = rest.site.world.word()
    for _ in range(2):
        rest.user(rest.partition(), name)
    answer = rest("GET", f"/users/{name}")
    assert answer.status_code == 404
    assert f"write {name}@<partition>" in answer.json()["error"]
    administrator = rest.done("GET", "/users/admin")
    assert administrator["userPartitionID"] == rest.site.directory_names.administration_partition


def test_a_plus_is_a_plus_if_somebody_is_named_so_and_else_a_blank(rest: Rest) -> None:
    partition = rest.partition()
    rest.user(partition, "a b")
    assert rest.done("GET", f"/users/a+b@{partition}")["name"] == "a b"
    rest.user(partition, "a+b")
    assert rest.done("GET", f"/users/a+b@{partition}")["name"] == "a+b"
    assert rest("DELETE", f"/users/a+b@{partition}").status_code == 204
    assert rest.done("GET", f"/users/a%20b@{partition}")["name"] == "a b"
    assert rest("DELETE", f"/users/a+b@{partition}").status_code == 204
    assert rest("GET", f"/users/a%20b@{partition}").status_code == 404


NAMES = (
    "a;b",
    "a/b",
    "a+b",
    "a%b",
    "a#b",
    'a"b',
    "a'b",
    "a\u0301 漢 😀",
    "a?b",
    "..",
    "%2F",
    "a=b",
    "a,b",
    "a\\b",
    "x@y.com",
)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_found_again(rest: Rest, name: str) -> None:
    partition = rest.partition()
    made = rest.user(partition, name)
    path = f"/users/{quote(name + '@' + partition, safe='')}"
    assert rest.done("GET", path)["id"] == made["id"]
    assert rest.done("GET", f"/users/{quote(made['location'], safe='')}")["id"] == made["id"]
    assert rest("PUT", f"{path}/password", {"newPassword": "a new one"}).status_code == 204
    assert rest("DELETE", path).status_code == 204
    assert rest("GET", path).status_code == 404


@pytest.mark.parametrize("name", [" a", "a ", "", "a\tb", "a\u0000b", "\ud800", "x" * 121])
def test_a_name_that_cannot_be_is_refused(rest: Rest, name: str) -> None:
    body = json.dumps({"userPartitionID": rest.partition(), "name": name}).encode()
    headers = {"Authorization": f"Bearer {rest.site.administrator()}", "Content-Type": "application/json"}
    answer = rest.site.http.post(f"{rest.site.directory}/rest/users", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json().keys() == {"status", "error", "errorDetails"}


@contextmanager
def nobody_else_administers(rest: Rest) -> Iterator[None]:
    """Other tests of this world may have made administrators: then the first one is not the last."""
    names, database = rest.site.directory_names, rest.site.world.directory_db
    with database.begin() as cx:
        group = entries.administrators(cx)
        first = entries.find_user(cx, names, f"admin@{names.administration_partition}")
        others = [member for member in memberships.members(cx, group) if member.id != first.id]
        memberships.remove_members(cx, group, others)
    try:
        yield
    finally:
        with database.begin() as cx:
            memberships.add_members(cx, group, others)


def test_the_last_administrator_and_what_is_built_in_stay(rest: Rest) -> None:
    with nobody_else_administers(rest):
        _check_that_they_stay(rest)


def _check_that_they_stay(rest: Rest) -> None:
    names = rest.site.directory_names
    for method, path in (
        ("DELETE", f"/users/admin@{names.administration_partition}"),
        ("DELETE", f"/groups/administrators@{names.administration_partition}"),
        ("DELETE", f"/partitions/{names.clients_partition}"),
        ("DELETE", f"/partitions/{rest.site.world.partition}"),
    ):
        assert rest(method, path).status_code == 409, path
    body = {"values": [{"name": "accountDisabled", "values": ["true"]}]}
    assert rest("PATCH", f"/users/admin@{names.administration_partition}", body).status_code == 409


def test_whom_a_repository_knows_keeps_the_name(rest: Rest) -> None:
    world = rest.site.world
    person = world.person(name=world.word())
    rest.site.create("of somebody", person=person)
    answer = rest("PUT", f"/users/{person.id}", {"name": "another"})
    assert answer.status_code == 409
    assert "A repository knows" in answer.json()["error"]
    assert rest("DELETE", f"/users/{person.id}").status_code == 204
    client = rest("DELETE", f"/users/{world.client_id}@{rest.site.directory_names.clients_partition}")
    assert client.status_code == 409
    assert "repository.basic_client" in client.json()["error"]


def test_unlocking_ends_the_pauses(rest: Rest) -> None:
    person = rest.site.world.person()
    for _ in range(rest.site.installation.settings.directory.lockout_failures):
        assert rest.site.ask_token(person, password="wrong").status_code == 400
    assert rest.site.ask_token(person).status_code == 400
    unlock = {"values": [{"name": "accountLockedOut", "values": ["false"]}]}
    assert rest("PATCH", f"/users/{person.id}", unlock).status_code == 200
    assert rest.site.ask_token(person).status_code == 200
    lock = {"values": [{"name": "accountLockedOut", "values": ["TRUE"]}]}
    assert values_of(rest.done("PATCH", f"/users/{person.id}", lock), "accountLockedOut") == ["true"]
    assert rest.site.ask_token(person).status_code == 400
    assert (
        rest("PATCH", f"/users/{person.id}", {"values": [{"name": "accountLockedOut", "values": ["no"]}]}).status_code
        == 400
    )


def test_a_change_may_ask_for_the_state_that_was_read(rest: Rest) -> None:
    partition = rest.partition()
    rest.user(partition, "ann")
    read = rest("GET", f"/users/ann@{partition}").headers["ETag"]
    first = rest("PATCH", f"/users/ann@{partition}", {"description": "one"}, headers=rest.matching(read))
    assert first.status_code == 200
    assert first.headers["ETag"] != read
    late = rest("PATCH", f"/users/ann@{partition}", {"description": "two"}, headers=rest.matching(read))
    assert late.status_code == 412
    assert rest("DELETE", f"/users/ann@{partition}", headers=rest.matching(read)).status_code == 412
    assert rest.done("GET", f"/users/ann@{partition}")["description"] == "one"
    assert (
        rest("PATCH", f"/users/ann@{partition}", {"description": "three"}, headers=rest.matching("*")).status_code
        == 200
    )
    assert rest("PATCH", f"/users/ann@{partition}", {"description": "last wins"}).status_code == 200


def test_groups_and_roles_have_members_and_no_loops(rest: Rest) -> None:
    partition = rest.partition()
    user, outer, inner = rest.user(partition, "ann"), rest.group(partition, "outer"), rest.group(partition, "inner")
    role = rest.group(partition, "auditor", "role")
    assert (outer["objectClass"], role["objectClass"]) == (
        rest.site.directory_names.group_class,
        rest.site.directory_names.role_class,
    )
    rest.done("POST", f"/users/{user['id']}/memberof", {"stringList": [inner["id"]]})
    rest.done("POST", f"/groups/{inner['id']}/memberof", {"stringList": [outer["location"]]})
    rest.done("POST", f"/users/{user['location']}/roles", {"stringList": [role["location"]]})
    rest.done("POST", f"/groups/{outer['id']}/roles", {"string_list": [role["id"]]})
    assert rest.listed(f"/users/{user['id']}/memberof", "groups") == [inner["id"]]
    assert rest.listed(f"/users/{user['id']}/roles", "roles") == [role["id"]]
    assert rest.listed(f"/groups/{outer['id']}/groups", "groups") == [inner["id"]]
    assert rest.listed(f"/groups/{inner['id']}/users", "users") == [user["id"]]
    members = rest.done("GET", f"/roles/{role['id']}/members")
    assert [[one["id"] for one in members[key]] for key in ("users", "groups", "roles")] == [
        [user["id"]], [outer["id"]], []
    ]  # fmt: skip
    shown = rest.done("GET", f"/users/{user['id']}")
    in_groups = next(each["values"] for each in shown["values"] if each["name"] in ("memberOf", "oTMemberOf"))
    assert set(in_groups) == {inner["location"], outer["location"]}
    assert rest.done("GET", f"/roles/{role['id']}")["numMembers"] == 2
    loop = rest("POST", f"/groups/{inner['id']}/members", {"stringList": [outer["id"]]})
    assert loop.status_code == 409
    unknown = rest("POST", f"/groups/{inner['id']}/members", {"stringList": [user["id"], "nobody@nowhere"]})
    assert unknown.status_code == 404
    rest.done("POST", f"/users/{user['id']}/memberof/deletionset", {"stringList": [inner["id"]]})
    assert rest.listed(f"/users/{user['id']}/memberof", "groups") == []
    rest.done("POST", f"/roles/{role['id']}/members/deletionset", {"stringList": [user["id"], outer["id"]]})
    assert rest.done("GET", f"/roles/{role['id']}")["numMembers"] == 0
    many = {"stringList": [user["id"]] * 501}
    assert rest("POST", f"/groups/{inner['id']}/members", many).status_code == 413


def test_a_subgroup_is_made_within_its_group(rest: Rest) -> None:
    partition = rest.partition()
    outer = rest.group(partition, "outer")
    inner = rest.done(
        "POST", "/groups/subgroup", {"userPartitionID": partition, "name": "inner", "parentId": outer["id"]}
    )
    assert rest.listed(f"/groups/{outer['id']}/members", "groups") == [inner["id"]]
    assert rest("DELETE", f"/groups/{outer['id']}").status_code == 204
    assert rest.done("GET", f"/groups/{inner['id']}")["name"] == "inner"


def test_a_role_has_custom_attributes(rest: Rest) -> None:
    role = rest.group(rest.partition(), "auditor", "role")
    one, two = ({"type": "text", "name": name, "value": name} for name in ("one", "two"))
    rest.done("POST", f"/roles/{role['id']}/attribute", {"customAttributeList": [one, two]})
    rest.done("POST", f"/roles/{role['id']}/attribute", {"customAttributeList": [one | {"value": "new"}]})
    rest.done("POST", f"/roles/{role['id']}/attribute/deletionset", {"customAttributeList": [two]})
    assert rest.done("GET", f"/roles/{role['id']}/attribute") == {"customAttributeList": [one | {"value": "new"}]}
    assert rest("DELETE", f"/roles/{role['id']}").status_code == 204


def test_a_list_is_paged_and_narrowed_down(rest: Rest) -> None:
    partition = rest.partition()
    unit = rest.done("POST", "/orgunits", {"userPartitionID": partition, "name": "North"})
    every = [rest.user(partition, f"user-{number}", mail=f"m{number}@example.org")["id"] for number in range(5)]
    north = rest.done("POST", "/users", {"id": f"far@{partition}", "location": unit["location"]})["id"]
    rest.done("PATCH", f"/users/{every[0]}", {"values": [{"name": "accountDisabled", "values": ["true"]}]})
    narrow = {"where_partition_name": partition, "page_size": "2"}
    assert rest.listed("/users", "users", **narrow) == sorted([*every, north])
    assert rest.listed("/users", "users", **narrow, where_filter="user-3") == [every[3]]
    assert rest.listed("/users", "users", **narrow, where_filter="M2@") == [every[2]]
    assert rest.listed("/users", "users", **narrow, where_filter="*ser-4") == [every[4]]
    assert rest.listed("/users", "users", **narrow, where_state="disabled") == [every[0]]
    assert rest.listed("/users", "users", where_location=unit["location"]) == [north]
    searched = rest.done("POST", "/users/search", {"partitionName": partition, "state": "enabled"})
    assert len(searched["users"]) == 5
    first = rest.done("GET", "/users", params=narrow)
    assert (first["requestedPageSize"], first["requestedFilter"]) == (2, None)
    assert rest("GET", "/groups", params={"next_page_cookie": first["nextPageCookie"]}).status_code == 400
    assert rest("GET", "/users", params={"page_size": "0"}).status_code == 400
    assert rest("GET", "/users", params={"where_partition_name": "nowhere"}).status_code == 404
    assert rest.done("GET", "/users", params={"page_size": "5000"})["requestedPageSize"] == 1000


def test_unknown_parameters_are_ignored_and_named(rest: Rest) -> None:
    answer = rest("GET", "/users?where_partition_name%3Ddemo&limit=1&limit=2")
    assert answer.status_code == 200
    assert answer.headers["Muniment-Ignored"] == "limit, where_partition_name%3Ddemo"
    assert "Muniment-Ignored" not in rest("GET", "/users?page_size=1").headers


def test_units_are_found_by_their_locations(rest: Rest) -> None:
    partition = rest.partition()
    outer = rest.done("POST", "/orgunits", {"userPartitionID": partition, "name": "North"})
    inner = rest.done("POST", "/orgunits", {"userPartitionID": partition, "name": "Far", "location": outer["location"]})
    user = rest.done("POST", "/users", {"userPartitionID": partition, "name": "ann", "location": inner["location"]})
    assert rest.done("GET", f"/orgunits/{inner['location'].replace('=', '%3D').replace(',', '%2C')}") == inner
    assert rest.listed(f"/orgunits/{outer['location']}/children", "organizationalUnits") == [inner["location"]]
    assert rest.listed(f"/orgunits/{inner['location']}/users", "users") == [user["id"]]
    assert rest.listed(f"/orgunits/{inner['location']}/roles", "roles") == []
    around = rest.listed(f"/orgunits/{inner['location']}/parents", "organizationalUnits")
    assert around[0] == outer["location"]
    assert len(around) == 2
    roots = rest.done("GET", "/orgunits", params={"where_partition_name": partition})["organizationalUnits"]
    assert {one["name"] for one in roots} >= {rest.site.directory_names.root_unit, "North", "Far"}
    assert rest("DELETE", f"/orgunits/{outer['location']}").status_code == 409
    moved = rest("PUT", f"/orgunits/{inner['location']}", {"location": around[1], "description": "moved"})
    assert moved.status_code == 400
    assert "stays where it is" in moved.json()["error"]
    for present in (inner["location"].upper(), outer["location"]):
        assert rest.done("PUT", f"/orgunits/{inner['location']}", {"location": present}) == inner
    changed = rest.done("PUT", f"/orgunits/{inner['location']}", {"name": "Near", "description": "by the sea"})
    assert (changed["name"], changed["description"]) == ("Near", "by the sea")
    rest.done("DELETE", f"/users/ann@{partition}")
    assert rest("DELETE", f"/orgunits/{changed['location']}").status_code == 204
    assert rest("DELETE", f"/orgunits/{outer['location']}").status_code == 204


def test_a_partition_is_found_by_its_name(rest: Rest) -> None:
    name = rest.site.world.word()
    made = rest("POST", "/partition", {"name": name, "description": "The singular, as a script of the field has it."})
    assert made.status_code == 201
    shown = rest.done("GET", f"/partitions/{name}")
    assert (shown["name"], shown["location"].startswith(f"ou={name},")) == (name, True)
    assert rest("POST", "/partitions", {"name": name.upper()}).status_code == 409
    assert name in [one["name"] for one in rest.done("GET", "/partitions", params={"where_filter": name})["partitions"]]
    changed = rest.done("PUT", f"/partitions/{name}", {"name": f"{name}-2", "description": "Renamed."})
    assert (changed["name"], changed["description"]) == (f"{name}-2", "Renamed.")
    assert rest("DELETE", f"/partitions/{name}-2").status_code == 204
    with rest.site.world.directory_db.read() as cx:
        assert not [one for one in entries.partitions(cx) if one.name.startswith(name)]
    clients = rest.done("GET", f"/partitions/{rest.site.directory_names.clients_partition}")
    assert clients["location"].startswith(f"ou={rest.site.directory_names.clients_partition},")


def test_a_change_of_several_things_leaves_one_row_of_the_audit(rest: Rest) -> None:
    partition = rest.partition()
    user = rest.user(partition, "ann")
    body = {
        "description": "new",
        "values": [{"name": "mail", "values": ["a@example.org"]}, {"name": "accountDisabled", "values": ["true"]}],
    }
    rest.done("PATCH", f"/users/{user['id']}", body)
    events = directory_tables.tables["audit_events"]
    with rest.site.world.directory_db.read() as cx:
        told = cx.execute(sa.select(events).where(events.c.target_uuid == user["uuid"]).order_by(events.c.id)).all()
    assert [(row.action, row.who) for row in told][1:] == [
        ("user changed", f"admin@{rest.site.directory_names.administration_partition}")
    ]
    assert {"description", "mail"} <= json.loads(told[-1].after).keys()


def test_what_changes_nothing_leaves_no_row_in_the_audit(rest: Rest) -> None:
    user = rest.user(rest.partition(), "ann")
    rest.done("PUT", f"/users/{user['id']}", user)
    events = directory_tables.tables["audit_events"]
    with rest.site.world.directory_db.read() as cx:
        told = cx.execute(sa.select(events.c.action).where(events.c.target_uuid == user["uuid"])).scalars().all()
    assert told == ["user made"]


def test_a_login_that_looks_like_an_address_of_mail_is_found_by_itself(rest: Rest) -> None:
    """facts 1.4; given 2.7 has the id."""
    partition, login = rest.partition(), f"x@{rest.site.world.word()}.com"
    user = rest.user(partition, login)
    assert (user["name"], user["id"]) == (login, f"{login}@{partition}")
    for spelled in (login, quote(login, safe=""), user["id"]):
        assert rest.done("GET", f"/users/{spelled}")["uuid"] == user["uuid"]
    rest.done("PUT", f"/users/{login}", {"description": "found"})
    assert rest.done("GET", f"/users/{user['id']}")["description"] == "found"
