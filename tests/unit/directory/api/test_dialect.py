"""The two dialects: how answers are written, and what of a body is read in either."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from muniment.directory.api.rest import dialect
from muniment.directory.api.rest.dialect import Dialect, spelled
from muniment.ground.refusals import Malformed


class Inner(msgspec.Struct):
    """A part."""

    inner_name: str = ""


@spelled({"user_partition_id": "userPartitionID", "plain": "_plain"}, {"plain": "_plain"})
class Thing(msgspec.Struct, kw_only=True):
    """A thing."""

    user_partition_id: str = ""
    plain: str = ""
    several: list[Inner] = []
    by_key: dict[str, list[str]] = {}
    is_on: bool = False
    life_time: int | None = None
    description: str | msgspec.UnsetType = msgspec.UNSET


class Same(msgspec.Struct):
    """A type whose keys are the same in both dialects."""

    name: str


def read(body: Any) -> Thing:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    return asyncio.run(dialect.read(request, "rest", Thing))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("rest", {"userPartitionID", "_plain", "several", "byKey", "isOn", "lifeTime"}),
        ("v1", {"user_partition_id", "_plain", "several", "by_key", "is_on", "life_time"}),
    ],
)
def test_an_answer_has_the_keys_of_its_dialect(name: Dialect, keys: set[str]) -> None:
    thing = Thing(several=[Inner("x")], by_key={"user_name": ["kept as it is"]}, description="d")
    written = json.loads(dialect.encode(name, thing))
    assert written.keys() == keys | {"description"}
    assert written["several"] == [{"innerName" if name == "rest" else "inner_name": "x"}]
    assert thing.by_key in written.values()


def test_a_type_whose_keys_do_not_differ_has_no_twin() -> None:
    assert dialect.type_in("rest", Same) is Same
    assert dialect.type_in("v1", Inner) is Inner
    assert dialect.type_in("rest", Inner).__name__ == "RestInner"
    assert dialect.type_in("rest", Thing) is dialect.type_in("rest", Thing)


@pytest.mark.parametrize("key", ["user_partition_id", "userPartitionId", "userPartitionID"])
def test_every_spelling_of_a_key_is_read(key: str) -> None:
    assert read({key: "People"}).user_partition_id == "People"


@pytest.mark.parametrize(
    ("body", "read_as"),
    [
        ({"isOn": "True"}, Thing(is_on=True)),
        ({"isOn": " FALSE "}, Thing()),
        ({"isOn": ""}, Thing()),
        ({"lifeTime": "60"}, Thing(life_time=60)),
        ({"lifeTime": ""}, Thing()),
        ({"lifeTime": None}, Thing()),
        ({"plain": 5, "_plain": 5}, Thing(plain="5")),
        ({"plain": True}, Thing(plain="true")),
        ({"description": None}, Thing()),
        ({"description": ""}, Thing(description="")),
        ({"several": [{"innerName": 1.5}, None]}, Thing(several=[Inner("1.5")])),
        ({"byKey": {"a_b": [1, True, None]}}, Thing(by_key={"a_b": ["1", "true"]})),
        ({"unknown": {"anything": []}}, Thing()),
        (b"", Thing()),
        (b"  ", Thing()),
    ],
)
def test_a_body_is_read_leniently(body: Any, read_as: Thing) -> None:
    assert read(body) == read_as


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        {"userPartitionID": "a", "user_partition_id": "b"},
        {"isOn": "perhaps"},
        {"lifeTime": "soon"},
        {"lifeTime": 1.5},
        {"several": {}},
        {"several": [5]},
        {"byKey": []},
        {"plain": []},
    ],
)
def test_what_no_reading_fits_is_refused(body: Any) -> None:
    with pytest.raises(Malformed):
        read(body)
