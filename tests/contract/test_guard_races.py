"""A new guard and the removal of its resource at one moment, each with Databases of its own: one of them is refused."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from muniment.database.connections import Database
from muniment.directory.administration import decisions
from muniment.directory.entries import resources
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import SignsTokens, StillGuards, UnknownResource
from muniment.ground.clock import Instant
from muniment.integration import guards
from muniment.repository.store import repositories
from tests.conftest import Fresh

NAMES = DirectoryNames()
ROUNDS = 10


class Process:
    """Both databases, as one process has them."""

    def __init__(self, directory: str, repository: str) -> None:
        self.directory, self.repository = Database(directory), Database(repository)

    def guard(self, name: str, resource_id: str) -> None:
        """Do as ``repository guard`` does."""
        with self.directory.begin() as directory, self.repository.begin() as cx:
            guards.guard(directory, cx, name, resource_id)

    def add(self, name: str, resource_id: str, now: Instant) -> None:
        """Do as ``repository add`` does."""
        with self.directory.begin() as directory, self.repository.begin() as cx:
            guards.add_repository(directory, cx, name, resource_id, now)

    def remove(self, resource: resources.Resource, now: Instant) -> None:
        """Do as ``resource remove`` does."""
        with self.directory.begin() as directory:
            guards.remove_resource(directory, self.repository.read, resource, now)

    def unguarded(self) -> list[str]:
        """Name the repositories whose resource is not there."""
        with self.directory.read() as directory, self.repository.read() as cx:
            there = {one.id for one in resources.all_resources(directory)}
            return [one.name for one in repositories.all_repositories(cx) if one.resource_id not in there]

    def close(self) -> None:
        """Give the connections back."""
        self.directory.close()
        self.repository.close()


@pytest.fixture
def processes(fresh: Fresh) -> Iterator[tuple[Process, Process]]:
    with ExitStack() as closing:
        urls = fresh("directory"), fresh("repository")
        one, other = Process(*urls), Process(*urls)
        closing.callback(one.close)
        closing.callback(other.close)
        yield one, other


def slow(monkeypatch: pytest.MonkeyPatch, noun: Any, question: str) -> None:
    """Let time pass between what is asked and what is done because of it."""
    asked = getattr(noun, question)

    def answer(*about: Any) -> Any:
        found = asked(*about)
        time.sleep(0.02)
        return found

    monkeypatch.setattr(noun, question, answer)


@pytest.mark.parametrize("spell", [str.upper, "{{{}}}".format])
def test_a_guard_is_stored_as_the_directory_spells_it_however_it_was_named(
    processes: tuple[Process, Process], now: Instant, spell: Callable[[str], str]
) -> None:
    process = processes[0]
    with process.directory.begin() as cx:
        decisions.initialise(cx, now)
        added, later = (resources.add(cx, NAMES, name, now) for name in ("Added", "Later"))
    process.add("main", spell(added.id), now)
    with pytest.raises(StillGuards):
        process.remove(added, now)
    process.guard("main", spell(later.id))
    with pytest.raises(StillGuards):
        process.remove(later, now)
    process.remove(added, now)


def test_what_issues_signed_tokens_guards_nothing_and_a_guard_issues_none(
    processes: tuple[Process, Process], now: Instant
) -> None:
    process = processes[0]
    with process.directory.begin() as cx:
        decisions.initialise(cx, now)
        guard, signing = (resources.add(cx, NAMES, name, now) for name in ("Guard", "Signing"))
        resources.change(cx, signing, token_format="RS256")
    process.add("main", guard.id, now)
    with pytest.raises(SignsTokens, match="opaque"):
        process.guard("main", signing.id)
    with pytest.raises(SignsTokens):
        process.add("other", signing.id, now)
    with process.directory.begin() as cx, pytest.raises(StillGuards, match="opaque"):
        guards.check_tokens(cx, process.repository.read, resources.by_id(cx, guard.id))
    with process.directory.begin() as cx:
        guards.check_tokens(cx, process.repository.read, resources.by_id(cx, signing.id))
        resources.change(cx, signing, token_format="opaque")
    process.guard("main", signing.id)


@pytest.mark.parametrize("first", ["guard", "remove", "neither"])
@pytest.mark.parametrize("way", ["guard", "add"])
def test_a_repository_has_its_guard_or_the_guard_was_refused(
    processes: tuple[Process, Process], now: Instant, monkeypatch: pytest.MonkeyPatch, way: str, first: str
) -> None:
    """failures C12"""
    one, other = processes
    with one.directory.begin() as cx:
        decisions.initialise(cx, now)
        last = resources.add(cx, NAMES, "first guard", now)
    one.add("main", last.id, now)
    slow(monkeypatch, resources, "by_id")
    slow(monkeypatch, repositories, "guarded_by")

    def attempt(act: Callable[[], None], start: threading.Barrier, late: bool) -> bool:
        start.wait()
        time.sleep(0.005 * late)
        try:
            act()
        except (UnknownResource, StillGuards):
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        for round_ in range(ROUNDS):
            with one.directory.begin() as cx:
                resource = resources.add(cx, NAMES, f"guard {round_}", now)
            start = threading.Barrier(2)

            def guard(resource: resources.Resource = resource, name: str = f"{way} {round_}") -> None:
                if way == "guard":
                    one.guard("main", resource.id)
                else:
                    one.add(name, resource.id, now)

            def remove(resource: resources.Resource = resource) -> None:
                other.remove(resource, now)

            guarded = threads.submit(attempt, guard, start, first == "remove")
            removed = threads.submit(attempt, remove, start, first == "guard")
            assert guarded.result(60) is not removed.result(60), "one of the two, and one alone"
            assert one.unguarded() == other.unguarded() == []
