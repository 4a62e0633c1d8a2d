"""Whatever a user, a group or their partition is called: they are listed, their links lead to them, they are found."""

import itertools
from typing import Any, NamedTuple

import lxml.etree
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Connection

from muniment.directory.entries import editing, entries, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import tokens
from muniment.ground.clock import SECOND
from muniment.ground.naming import fold_name
from tests.properties.lengths import examples
from tests.properties.test_names import ANY_NAME, PARTITION
from tests.scenes import Site, World

_numbers = itertools.count(1)

_WORDS = ("/", "..", ".", " ", "%", "%2F", "%252f", "+", "#", "?", "&", "users", "groups", ".json", "a", "é", "🗄", "\\")
ODD = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=5).map("".join).filter(lambda name: name == name.strip())
NAME = ODD.filter(bool) | ANY_NAME


class People(NamedTuple):
    """A user and a group with them in it, both in the access role, as the wire calls them, and a token of the user."""

    user: str
    group: str
    token: str


def made(world: World, user_name: str, group_name: str, partition_name: str) -> People:
    """Make both in a partition of their own."""
    now = world.clock()
    with world.directory_db.begin() as cx:
        partition = editing.add_partition(cx, world.names, f"{next(_numbers)}{partition_name}", now)
        user = editing.add_user(cx, partition, user_name, now)
        group = editing.add_group(cx, partition, group_name, now)
        memberships.add_member(cx, group, user)
        resources.add_to_role(cx, resources.by_id(cx, world.resource_id), group)
        user_id, group_id = (entries.shown_id(world.names, entry) for entry in (user, group))
        return People(user_id, group_id, _token(cx, world, user))


def _token(cx: Connection, world: World, user: Entry) -> str:
    now, client = world.clock(), entries.find_client(cx, world.client_id)
    grant, _ = tokens.open_grant(cx, user.id, client.id, world.resource_id, now, now + 3600 * SECOND)
    return tokens.add_access_tokens(cx, [(grant, now + 3600 * SECOND)], now)[0]


@settings(max_examples=examples(8, 300), deadline=None)
@given(NAME, NAME, PARTITION)
@example("a/b", "c/d", "e/f")
@example("..", ".", "../..")
@example("x/groups/y", "x/users", "groups/z")
@example("100 %", "%2F%2f%00", "%41+ #?&=;")
@example("a.json", "b.xml", ".json")
@example("groups/x", "users/x.json", "x.xml")
def test_people_of_any_name_are_listed_linked_and_found(
    site: Site, user_name: str, group_name: str, partition_name: str
) -> None:
    assume(fold_name(user_name) != fold_name(group_name))
    people = made(site.world, user_name, group_name, partition_name)
    bearer = {"Authorization": f"Bearer {people.token}", "Accept": "application/json"}

    def get(address: str, **params: str) -> dict[str, Any]:
        answer = site.http.get(address, params=params or None, headers=bearer)
        assert answer.status_code == 200, (address, answer.text)
        document: dict[str, Any] = answer.json()
        return document

    def linked(document: dict[str, Any], relation: str) -> str:
        return str(next(link["href"] for link in document["links"] if link["rel"] == relation))

    def listed(address: str, name: str, wanted: str) -> str:
        text = wanted.replace("'", "''")
        feed = get(address, filter=f"{name} = '{text}'", inline="true")
        assert [entry["title"] for entry in feed["entries"]] == [wanted]
        assert get(linked(feed, "self"))["entries"] == feed["entries"]
        href = linked(feed["entries"][0], "edit")
        shown = get(href)
        assert shown == feed["entries"][0]["content"]
        assert shown["properties"][name] == wanted
        assert linked(shown, "self") == href
        assert get(f"{href}.json") == shown
        as_xml = site.http.get(f"{href}.xml", headers=bearer)
        assert lxml.etree.fromstring(as_xml.content).findtext(f"{site.vocab}properties/{site.vocab}{name}") == wanted
        return href

    user = listed(f"{site.repository}/users", "user_name", people.user)
    group = listed(f"{site.repository}/groups", "group_name", people.group)
    assert linked(get(f"{site.repository}/currentuser"), "self") == user
    members = linked(get(group), f"{site.names.linkrel_base}/users")
    assert listed(members, "user_name", people.user) == user
    assert get(linked(get(group), f"{site.names.linkrel_base}/groups"))["entries"] == []
    for beside in (f"{group}x", user.replace("/users/", "/groups/", 1)):
        assert site.http.get(beside, headers=bearer).status_code == 404
