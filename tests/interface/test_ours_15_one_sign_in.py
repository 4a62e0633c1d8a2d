"""ours 15, decision 0101: one sign-in leads to what a person came for, and opens what they may at that moment."""

from collections.abc import Iterator

import pytest

from muniment.directory.administration import decisions
from muniment.directory.entries import resources
from muniment.repository.store import repositories
from tests.pages import SEARCH, Reader
from tests.scenes import Person, Site, World


@pytest.fixture
def granted(world: World) -> Iterator[str]:
    """A repository with a guard of its own that admits nobody yet; its name comes before the world's."""
    name = f"a-{world.word()}"
    with world.repository_db.begin() as cx:
        repositories.add(cx, name, world.resource(activated=True).id, "", world.clock())
    world.catch_up(name)
    yield name
    with world.repository_db.begin() as cx:
        repositories.remove(cx, repositories.find(cx, name))


def guard_of(world: World, name: str) -> str:
    """Give the guard of a repository."""
    with world.repository_db.read() as cx:
        return repositories.find(cx, name).resource_id


def dismiss(world: World, person: Person, resource_id: str) -> None:
    """Take a user out of a resource's access role."""
    with world.directory_db.begin() as cx:
        resources.remove_from_role(cx, resources.by_id(cx, resource_id), world.entry(person))


def test_a_repository_counts_at_the_request_after_it_is_granted_or_withdrawn(
    site: Site, world: World, granted: str
) -> None:
    person = world.person()
    reader = Reader(site, person).search("x")
    assert granted not in reader.text
    world.admit(person, guard_of(world, granted))
    choice = [option.text for option in reader.search("x").root.xpath("//select[@name='in']/option")]
    assert choice == [granted, world.repository]
    assert reader.search("x", {"in": granted}).path.startswith(f"{SEARCH}?")
    dismiss(world, person, world.resource_id)
    assert f"Search {granted}" in reader.search("x").text
    assert not reader.root.xpath("//select[@name='in']")
    hidden, missing = (reader.search("x", {"in": name}, status=404).text for name in (world.repository, "nothing"))
    assert hidden == missing
    dismiss(world, person, guard_of(world, granted))
    assert reader.search("x").path.startswith(f"{SEARCH}/sign-in")
    world.admit(person, world.resource_id)
    assert f"Search {world.repository}" in reader.search("x").text


def test_a_sign_in_that_has_ended_opens_no_repository_that_was_granted_since(
    site: Site, world: World, granted: str
) -> None:
    person = world.person()
    reader = Reader(site, person)
    with world.directory_db.begin() as cx:
        decisions.sign_out(cx, world.entry(person), world.clock())
    world.admit(person, guard_of(world, granted))
    assert reader.search("x", {"in": granted}).path.startswith(f"{SEARCH}/sign-in")


def test_the_front_page_leads_to_the_one_sign_in_and_on_to_what_was_asked_for(site: Site, world: World) -> None:
    reader = Reader(site).open("/")
    sign_ins = {link.get("href") for link in reader.root.iter("a") if link.text_content() == "Sign in"}
    assert sign_ins == {f"{site.base}{SEARCH}/sign-in"}
    reader.follow(world.repository).sign_in(world.person())
    assert reader.path == f"{SEARCH}?in={world.repository}"
    assert reader.open(f"{SEARCH}/sign-in", to="?q=pump").path == f"{SEARCH}?q=pump"


def test_who_administers_nothing_is_shown_the_way_to_search(site: Site, world: World) -> None:
    person, prefix = world.person(), site.directory_names.form_prefix
    reader = Reader(site).open(site.login)
    reader.send("Sign in", {f"{prefix}username": person.id, f"{prefix}password": person.password})
    assert "you are not one of them" in reader.text
    assert reader.follow("Search the documents").path == f"{SEARCH}/sign-in?to="
