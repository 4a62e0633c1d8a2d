"""Time does not tell a hidden object from an absent one: two samples of requests, and the distance between them."""

import asyncio
import random
import statistics
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.campaign.test_directory_attacks import distance
from tests.shelf import Shelf
from tests.unit.repository.api.test_objects import Site

pytestmark = pytest.mark.campaign

TIMINGS = 500
"""Of each of the two kinds of object, taken in turn."""
SAMPLES = 4
"""How often they are taken at most: a difference is in every sample, a disturbance by other work is not."""


@pytest.fixture
def site(shelf: Shelf) -> Iterator[Site]:
    made = Site(shelf)
    yield made
    made.half.transactions._threads.shutdown()


BELOW = ["content-media", "contents", "versions", "versions/current", "parent-links", "aspects"]
BELOW += ["permissions", "permission-set", "index-status"]


@pytest.mark.parametrize("path", ["", *(f"/{name}" for name in BELOW)])
def test_time_does_not_tell_a_hidden_object_from_an_absent_one(site: Site, path: str) -> None:
    """As for failures A2, processor time is what the server adds to a difference that a stranger could see."""
    crowd = [{"accessor": f"person-{number}@demo", "basic-permission": "Read"} for number in range(100)]
    assert site("POST", "/acls", {"name": "crowded", "permitted": crowd}).status_code == 201
    for _ in range(100):
        site.make(acl_name="public")
    hidden = site.make(acl_name="crowded")
    absent = hidden[:-8] + "fffffff0"
    assert any(_alike(site, path, hidden, absent) for _ in range(SAMPLES))


def _alike(site: Site, path: str, hidden: str, absent: str) -> bool:
    """Take a sample, print it, and say whether it tells nothing."""
    took: dict[str, list[tuple[float, float]]] = {hidden: [], absent: []}
    asyncio.run(_ask_in_turn(site, path, took))
    tells_nothing = True
    for what, place, bound in (("of processor time", 0, True), ("by the clock", 1, False)):
        known, unknown = ([one[place] for one in took[object_id]] for object_id in (hidden, absent))
        medians, apart = (statistics.median(known), statistics.median(unknown)), distance(known, unknown)
        print(
            f"{site.shelf.database.dialect}: GET objects/id{path}, {2 * TIMINGS} requests: median {medians[0]:.3f} ms "
            f"{what} hidden, {medians[1]:.3f} ms absent, distance {apart:.3f}"
        )
        if bound:
            tells_nothing = abs(medians[0] - medians[1]) < 0.05 * min(medians) and apart < 0.25
    return tells_nothing


async def _ask_in_turn(site: Site, path: str, took: dict[str, list[tuple[float, float]]]) -> None:
    transport = httpx.ASGITransport(site.application, raise_app_exceptions=False)
    headers, chance = {"Authorization": "Bearer jon"}, random.Random(1)
    async with httpx.AsyncClient(transport=transport, base_url="https://muniment.test", headers=headers) as client:
        for number in range(TIMINGS + 100):
            # In a fixed order one kind may always meet the same half of what takes turns behind it, such as threads.
            for object_id in chance.sample(sorted(took), len(took)):
                began = time.process_time(), time.perf_counter()
                answer = await client.get(f"{site.repository_path}/objects/{object_id}{path}")
                spent = time.process_time() - began[0], time.perf_counter() - began[1]
                assert answer.status_code == 404
                if number >= 100:
                    took[object_id].append((spent[0] * 1000, spent[1] * 1000))
