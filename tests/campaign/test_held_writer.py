"""Transactional batches of several callers on SQLite: the others' ends of rights are not kept waiting."""

import json
import statistics
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.campaign.house import LOGIN, REPOSITORY, Visitor
from tests.e2e.processes import ServedHouse, Server
from tests.scenes import Person, World

pytestmark = pytest.mark.campaign

SENDERS = 6
ENDINGS = 100
BOUND = 1.0


def signed_in(server: Server, world: World, person: Person) -> httpx.Client:
    http = server.client()
    form = {"grant_type": "password", "client_id": world.client_id, "scope": world.scope}
    issued = http.post(LOGIN, data=form | {"username": person.id, "password": person.password}).json()
    http.headers.update({"Authorization": f"Bearer {issued['access_token']}", "Content-Type": "application/json"})
    return http


def batch(number: int) -> bytes:
    """Ask for as many writes as a batch may have, and then for a list."""
    body = json.dumps({"properties": {"object_name": f"held {number}"}})
    kind = [{"name": "Content-Type", "value": "application/json"}]
    create = {"uri": f"/repositories/{World.repository}/objects", "method": "POST", "entity": body, "headers": kind}
    read = {"uri": f"/repositories/{World.repository}/relations"}
    requests = [*[create] * 99, read]
    operations = [{"id": str(place), "request": request} for place, request in enumerate(requests)]
    return json.dumps({"transactional": True, "operations": operations}).encode()


@pytest.mark.parametrize("workers", [1, 2])
def test_ends_of_rights_come_before_batches(tmp_path: Path, workers: int) -> None:
    people = list[Person]()
    house = ServedHouse(tmp_path, furnish=lambda world: people.extend(world.person() for _ in range(SENDERS)))
    with house.serve("--set", f"web.workers={workers}") as server:
        owner = Visitor(server, house.world)
        entry = {"accessor": people[0].id, "basic-permission": "Read"}
        made = owner.http.post(f"{REPOSITORY}/acls", json={"name": "shared", "permitted": [entry]})
        assert made.status_code == 201, made.text
        ended, answers = threading.Event(), Counter[int]()

        def send(person: Person) -> None:
            http = signed_in(server, house.world, person)
            while not ended.is_set():
                answers[http.post(f"{REPOSITORY}/batches", content=batch(len(took)), timeout=60).status_code] += 1
            http.close()

        senders = [threading.Thread(target=send, args=[person]) for person in people for _ in range(2)]
        for sender in senders:
            sender.start()
        took = list[float]()
        try:
            while len(took) < ENDINGS or sum(answers.values()) < 3 * SENDERS:
                permitted = [] if len(took) % 2 == 0 else [entry]
                began = time.monotonic()
                answer = owner.http.post(made.headers["location"], json={"permitted": permitted}, timeout=60)
                took.append(time.monotonic() - began)
                assert answer.status_code == 200, answer.text
        finally:
            ended.set()
            for sender in senders:
                sender.join()
    worst = statistics.quantiles(took, n=100)[98]
    print(
        f"{workers} workers, batches {dict(answers)}: an end of rights took {statistics.median(took) * 1000:.0f} ms, "
    )
    print(f"p99 {worst * 1000:.0f} ms (bound {BOUND * 1000:.0f})")
    assert worst < BOUND
