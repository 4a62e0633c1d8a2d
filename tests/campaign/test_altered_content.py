"""Bytes altered on the disk: found, named, and never given out as good."""

from pathlib import Path

import httpx
import pytest

from muniment.repository.store.content.contract import PIECE
from tests.campaign.house import REPOSITORY, Visitor
from tests.contents import lose, spoil
from tests.e2e.processes import ServedHouse, muniment


def test_altered_content_is_found_named_and_never_served_as_good(tmp_path: Path) -> None:
    house = ServedHouse(tmp_path)
    folder = house.data / "content"
    with house.serve() as server:
        visitor = Visitor(server, house.world)
        contents = [b"short", b"l" * (3 * PIECE + 5), b"g" * 70_000, b"gone", b"kept"]
        for number, content in enumerate(contents):
            assert visitor.create(f"paper {number}", content).status_code == 201
        short, long, gone, also, kept = visitor.contents_by_id
        sound = muniment(house.data, "content", "check")
        assert (sound.returncode, "demo: sound: 5 whole, 0 missing" in sound.stdout) == (0, True), sound
        spoil(folder, contents[0], at=2)
        spoil(folder, contents[1], at=10)
        lose(folder, contents[2])
        lose(folder, contents[3])
        for object_id in (short, gone, also):
            answer = visitor.media(object_id)
            assert (answer.status_code, answer.json()["code"]) == (500, "E_CONTENT_DAMAGED")
        with pytest.raises(httpx.TransportError):
            visitor.media(long)
        assert visitor.media(kept).content == contents[4]
        checked = muniment(house.data, "content", "check", "-r", "demo")
        assert checked.returncode == 1
        assert "demo: NOT SOUND: 1 whole, 4 missing or altered" in checked.stdout
        assert {line.split(":")[0].strip() for line in checked.stdout.splitlines()[1:]} == {short, long, gone, also}
        assert visitor.replace(short, b"new").status_code == 201
        assert visitor.media(short).content == b"new"
        assert visitor.http.get(f"{REPOSITORY}/objects/{long}").status_code == 200
