"""What is remembered of a token never outlives the token: another process ends it, and the next question is refused."""

import itertools
import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple

import pytest

from muniment.database.audit import SYSTEM, acting
from muniment.database.connections import Database
from muniment.directory.entries import editing, entries, resources
from muniment.directory.oauth import revocation, tokeninfo, tokens
from muniment.directory.options import DirectoryNames
from tests.scenes import Loop, Site, World

pytestmark = pytest.mark.campaign_on("postgresql")

HOUR = 3_600_000_000
ASKED_BEFORE = 3
"""How often a token is asked about before it is ended: once to work the answer out, then from memory."""


class Ending(NamedTuple):
    """What the other process does: end the grant of a token, or take its user out of the resource's access role."""

    token: str
    user: str | None
    resource_id: str
    now: int


def end(pipe: Pipe, url: str) -> None:
    """Be the other process: commit a hundred times a second, and meanwhile end what the pipe says, one by one."""
    database, names, stop, commits = Database(url), DirectoryNames(), threading.Event(), itertools.count()
    grant, now = pipe.recv()

    def commit() -> None:
        while not stop.wait(0.01):
            with database.begin() as cx:  # as a refresh does
                tokens.add_access_tokens(cx, [(grant, now + HOUR)], now)[0]
            next(commits)

    committing = threading.Thread(target=commit)
    committing.start()
    try:
        while (ending := pipe.recv()) is not None:
            with database.begin() as cx, acting(SYSTEM, lambda: now):
                if ending.user is None:
                    revocation.revoke(cx, names, ending.token, ending.now)
                else:
                    role = resources.by_id(cx, ending.resource_id)
                    resources.remove_from_role(cx, role, entries.find_user(cx, names, ending.user))
            pipe.send("ended")
    finally:
        stop.set()
        committing.join()
        pipe.send(next(commits))
        database.close()


@contextmanager
def other_process(world: World) -> Iterator[Pipe]:
    """Another process with the same directory, and the pipe to it."""
    here, there = multiprocessing.Pipe()
    url = world.installation.database_url("directory")
    process = multiprocessing.get_context("spawn").Process(target=end, args=(there, url))
    process.start()
    try:
        yield here
    finally:
        here.send(None)
        process.join(60)
    assert process.exitcode == 0


def signed_in(world: World, name: str) -> tuple[str, tokens.Grant]:
    """Make a user in the access role, and give an access token of theirs."""
    now = world.clock()
    with world.directory_db.begin() as cx:
        user = editing.add_user(cx, entries.find_partition(cx, world.names, world.partition), name, now)
        resource = resources.by_id(cx, world.resource_id)
        resources.add_to_role(cx, resource, user)
        client = entries.find_client(cx, world.client_id)
        grant, _ = tokens.open_grant(cx, user.id, client.id, resource.id, now, now + HOUR)
        return tokens.add_access_tokens(cx, [(grant, now + HOUR)], now)[0], grant


@pytest.mark.parametrize("races", [20, pytest.param(1000, marks=pytest.mark.campaign)])
def test_a_token_that_another_process_ends_is_refused_from_the_next_question_on(
    world: World, loop: Loop, monkeypatch: pytest.MonkeyPatch, races: int
) -> None:
    from_memory, recall = [0], tokeninfo.recall

    def counted(*args: Any) -> bytes | None:
        answer = recall(*args)
        from_memory[0] += answer is not None
        return answer

    monkeypatch.setattr(tokeninfo, "recall", counted)
    site, in_time = Site(world, "neutral", loop), 0
    try:
        with other_process(world) as pipe:
            _, busy = signed_in(world, f"busy-{races}")
            pipe.send((busy, world.clock()))
            for race in range(races):
                name = f"raced-{races}-{race}"
                token, _ = signed_in(world, name)
                assert {site.tokeninfo(token).status_code for _ in range(ASKED_BEFORE)} == {200}
                user = f"{name}@{world.partition}" if race % 2 else None
                pipe.send(Ending(token, user, world.resource_id, world.clock()))
                while not pipe.poll():
                    in_time += site.tokeninfo(token).status_code == 200
                assert pipe.recv() == "ended"
                assert site.tokeninfo(token).status_code == (401 if user else 410), f"race {race}"
        commits = pipe.recv()
    finally:
        site.close()
    print(f"{races} endings among {commits} commits; {from_memory[0]} answers from memory, {in_time} during an ending")
    assert from_memory[0] >= races, "nothing was remembered"
    assert commits
