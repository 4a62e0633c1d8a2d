"""A removed user's namesake inherits nothing of theirs, nor does a group made again (failures C8)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from muniment.directory.entries import editing, entries
from tests.scenes import Person, Site


def again(site: Site, person: Person) -> Person:
    """Delete a user and make one of the same name, in the same access role."""
    world = site.world
    with world.directory_db.begin() as cx:
        editing.delete(cx, entries.find_user(cx, world.names, person.id), world.clock())
    made = world.person(name=person.name)
    site.forget(made)
    return made


def status(site: Site, object_id: str, person: Person) -> int:
    return site.http.get(f"{site.repository}/objects/{object_id}", headers=site.bearer(person)).status_code


def grant(site: Site, accessor: str, person: Person | None = None) -> str:
    """Make an ACL that lets the accessor read, and give its name."""
    name = site.world.word()
    entry = {"accessor": accessor, "basic-permission": "Read"}
    body = {"name": name, "permitted": [entry]}
    made = site.http.post(f"{site.repository}/acls", json=body, headers=site.bearer(person))
    assert made.status_code == 201, made.text
    return name


def test_a_namesake_owns_nothing_of_what_the_removed_user_owned(site: Site) -> None:
    word = site.world.word()
    first = site.world.person()
    object_id = site.create(f"plan {word}", person=first)
    site.world.catch_up()
    assert site.keywords(word, person=first).ids == [object_id]
    second = again(site, first)
    assert status(site, object_id, second) == 404
    assert site.keywords(word, person=second).ids == []
    own = site.create(f"own {word}", person=second)
    assert status(site, own, second) == 200
    site.world.catch_up()
    assert site.keywords(word, person=second).ids == [own]
    third = again(site, second)
    assert (status(site, object_id, third), status(site, own, third)) == (404, 404)


def test_the_namesake_s_documents_show_the_same_name_and_stay_apart(site: Site) -> None:
    word = site.world.word()
    first = site.world.person()
    former = site.create(f"former {word}", person=first)
    second = again(site, first)
    own = site.create(f"own {word}", person=second)
    site.world.catch_up()
    asked = f'<property-list name="owner_name" operator="IN"><values><value>{first.id}</value></values></property-list>'
    assert site.search(asked, person=second).ids == [own]
    shown = site.http.get(f"{site.repository}/objects/{own}", headers=site.bearer(second)).json()
    assert shown["properties"]["owner_name"] == second.id == first.id
    site.share(own, person=second)
    assert status(site, own, site.world.writer) == 200
    assert status(site, former, site.world.writer) == 404


def test_a_kept_search_is_not_the_namesake_s_to_follow(site: Site) -> None:
    word = site.world.word()
    first = site.world.person()
    for number in range(3):
        site.share(site.create(f"{word} {number}", person=first), person=first)
    site.world.catch_up()
    asked = f"<fulltext>{word}</fulltext>"
    link = site.search(asked, person=first, items_per_page="1").link("next")
    assert link is not None
    assert site.http.get(link, headers=site.bearer(first)).status_code == 200
    second = again(site, first)
    assert site.http.get(link, headers=site.bearer(second)).status_code in (404, 410)


def test_a_group_made_again_opens_nothing_that_was_open_to_the_former(site: Site) -> None:
    world = site.world
    word, group = world.word(), f"team-{next(world.numbers)}"
    person = world.person()
    world.group(group, person)
    object_id = site.create(f"for the team {word}")
    site.share(object_id, grant(site, f"{group}@{world.partition}"))
    site.world.catch_up()
    assert status(site, object_id, person) == 200
    world.remove_group(group)
    assert status(site, object_id, person) == 404
    world.group(group, person)
    assert status(site, object_id, person) == 404
    assert site.keywords(word, person=person).ids == []


@contextmanager
def statements() -> Iterator[list[str]]:
    """List what any engine of this process sends within the block."""
    sent: list[str] = []

    def note(_cx: object, _cursor: object, statement: str, *_more: object) -> None:
        sent.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_a_caller_met_before_is_asked_about_without_a_statement(site: Site) -> None:
    person = site.world.person()
    object_id = site.create("cheap", person=person)
    assert status(site, object_id, person) == 200
    with statements() as sent:
        assert status(site, object_id, person) == 200
    assert [one for one in sent if "bearers" in one] == []


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_first_request_of_a_user_binds_their_name_whatever_it_asks(site: Site, method: str) -> None:
    person = site.world.person()
    with statements() as sent:
        site.http.request(method, f"{site.repository}/acls", json={}, headers=site.bearer(person))
    assert [one.split()[0] for one in sent if "bearers" in one if not one.startswith("SELECT")]


def test_a_grant_binds_whom_it_names_before_they_ever_sign_in(site: Site) -> None:
    """The test that issue 8 names: a user is granted something, removed before their first request, and added again."""
    word = site.world.word()
    first = site.world.person()
    object_id = site.create(f"promised {word}")
    site.share(object_id, grant(site, first.id))
    site.world.catch_up()
    second = again(site, first)
    assert status(site, object_id, second) == 404
    assert site.keywords(word, person=second).ids == []


def test_a_grant_binds_a_group_before_anybody_of_it_signs_in(site: Site) -> None:
    world = site.world
    group, person = f"team-{next(world.numbers)}", world.person()
    world.group(group, person)
    object_id = site.create("promised to the team")
    site.share(object_id, grant(site, f"{group}@{world.partition}"))
    world.remove_group(group)
    world.group(group, person)
    assert status(site, object_id, person) == 404


def test_what_an_administrator_gives_somebody_is_not_their_namesakes(site: Site) -> None:
    first = site.world.person()
    administrator = site.world.admin(site.directory_names)
    site.world.admit(site.world.admin(site.world.names), site.world.resource_id)
    object_id = site.create("given", person=administrator, owner_name=first.id)
    other = site.create("given later", person=administrator)
    given = site.http.post(
        f"{site.repository}/objects/{other}",
        json={"properties": {"owner_name": first.id.upper()}},
        headers=site.bearer(administrator),
    )
    assert given.status_code == 200, given.text
    second = again(site, first)
    assert [status(site, one, second) for one in (object_id, other)] == [404, 404]


def test_entries_that_are_sent_back_mean_the_same_bearer_and_a_new_entry_the_present_one(site: Site) -> None:
    first, other = site.world.person(), site.world.person()
    acl = grant(site, first.id)
    object_id = site.create("for the first")
    site.share(object_id, acl)
    second = again(site, first)
    address = f"{site.repository}/acls/{acl}"
    shown = site.http.get(address, headers=site.bearer()).json()["permitted"]
    assert shown == [{"accessor": first.id, "basic-permission": "Read"}]

    def send(*permitted: object) -> None:
        answer = site.http.post(address, json={"permitted": permitted}, headers=site.bearer())
        assert answer.status_code == 200, answer.text

    send(*shown, {"accessor": other.id, "basic-permission": "Read"})
    assert (status(site, object_id, second), status(site, object_id, other)) == (404, 200)
    send()
    send(*shown)
    assert status(site, object_id, second) == 200
    again_shown = site.http.get(address, headers=site.bearer()).json()["permitted"]
    assert again_shown == shown, "the name is shown as ever"
    third = again(site, second)
    send(*again_shown)
    assert status(site, object_id, third) == 404


def test_an_entry_for_a_name_that_nobody_bears_yet_waits_for_its_first_bearer(site: Site) -> None:
    name = f"person-{next(site.world.numbers)}"
    object_id = site.create("for whoever comes")
    site.share(object_id, grant(site, f"{name}@{site.world.partition}"))
    first = site.world.person(name=name)
    assert status(site, object_id, first) == 200
    assert status(site, object_id, again(site, first)) == 404


def test_a_first_request_at_the_moment_of_a_removal_leaves_nothing_to_the_namesake(site: Site) -> None:
    for _ in range(5):
        first = site.world.person()
        object_id = site.create("promised")
        site.share(object_id, grant(site, first.id))
        token = site.bearer(first)
        address = f"{site.repository}/objects/{object_id}"
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(site.http.get, address, headers=token) for _ in range(3)]
            second = pool.submit(again, site, first).result()
            assert status(site, object_id, second) == 404
        assert {one.result().status_code for one in asked} <= {200, 401}
        assert status(site, object_id, second) == 404
