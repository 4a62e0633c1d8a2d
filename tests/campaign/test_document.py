"""Generated requests go to every address of the product's own document, and to those that nothing answers."""

import copy
import random
from typing import Any

import pytest
import schemathesis
from hypothesis import Phase, given, seed, settings
from schemathesis.core.result import Ok

from tests.campaign import document, right
from tests.campaign.json_bodies import Json
from tests.scenes import Site


@pytest.fixture
def served(site: Site) -> Json:
    answered: Json = site.http.get("/openapi.json").json()
    return answered


def operations(described: Json) -> set[tuple[str, str]]:
    return {(method, path) for path, item in described["paths"].items() for method in item}


def test_every_operation_of_the_product_is_in_it_and_beside_them_what_nothing_answers(served: Json) -> None:
    beside = operations({"paths": document.nowhere(served)})
    assert len(beside) == 3 * len(document.EVERY_METHOD)
    assert not beside & operations(served)
    assert operations(document.likely(served)) == operations(served) | beside


def test_each_operation_keeps_its_parameters_and_its_bodies(served: Json) -> None:
    likely = document.likely(served)
    for method, path in operations(served):
        before, after = served["paths"][path][method], likely["paths"][path][method]
        names = {one["name"] for one in before["parameters"]} - document.SENT_SELDOM
        assert names <= {one["name"] for one in after["parameters"]}
        assert ("requestBody" in before) == ("requestBody" in after)
        if "requestBody" in before:
            assert after["requestBody"]["content"]
        assert after["responses"] == before["responses"]


def test_a_parameter_that_nobody_has_values_for_is_noticed(served: Json) -> None:
    other = copy.deepcopy(served)
    other["paths"]["/"]["get"]["parameters"].append({"name": "unheard-of", "in": "query", "schema": {}})
    with pytest.raises(KeyError):
        document.likely(other)


def test_draws_of_a_body_fit_and_some_do_not(served: Json) -> None:
    """Where a value that leads somewhere stands beside any text, each is drawn now and then."""
    path = next(path for path in served["paths"] if path.endswith("/objects/{id}/parent-links"))
    schema = schemathesis.openapi.from_dict(document.likely(served))
    (operation,) = (
        one.ok()
        for one in schema.get_all_operations()
        if isinstance(one, Ok) and one.ok().path == path and one.ok().method == "post"
    )
    drawn: list[object] = []

    @seed(1)
    @settings(max_examples=120, database=None, deadline=None, phases=[Phase.generate])
    @given(operation.as_strategy())
    def collect(case: Any) -> None:
        if case.media_type == "application/json":
            drawn.append(case.body["href"])

    collect()
    likely = sum("PROP-" in str(href) for href in drawn)
    assert len(drawn) / 5 < likely < len(drawn)


def test_each_address_has_a_right_request(served: Json) -> None:
    """An address that takes JSON or a form has a right body, and each place of a path has what stands there."""
    for method, path in operations(served):
        operation = served["paths"][path][method]
        for parameter in operation["parameters"]:
            if parameter["in"] == "path":
                assert right.place(method.upper(), path, parameter["name"])
        taken = operation.get("requestBody", {}).get("content", {})
        if {"application/json", "application/x-www-form-urlencoded"} & set(taken):
            assert right.bodies(method.upper(), path), (method, path)


def test_a_damaged_body_is_another_one_and_the_right_one_stays() -> None:
    body = {"properties": {"object_name": "x", "keywords": ["a"]}}
    before = copy.deepcopy(body)
    damaged = [right.damaged(body, random.Random(number)) for number in range(50)]
    assert body == before
    assert sum(one != body for one in damaged) > 45


def test_strangers_read_it(served: Json) -> None:
    likely = document.likely(served)
    found = list(schemathesis.openapi.from_dict(likely).get_all_operations())
    assert all(isinstance(operation, Ok) for operation in found)
    assert len(found) == len(operations(likely))
