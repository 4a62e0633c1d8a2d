"""Generated requests go to every address of the product's own document, and to those that nothing answers."""

import copy

import pytest
import schemathesis
from schemathesis.core.result import Ok

from tests.campaign import document
from tests.scenes import Site


@pytest.fixture
def served(site: Site) -> document.Json:
    answered: document.Json = site.http.get("/openapi.json").json()
    return answered


def operations(described: document.Json) -> set[tuple[str, str]]:
    return {(method, path) for path, item in described["paths"].items() for method in item}


def test_every_operation_of_the_product_is_in_it_and_beside_them_what_nothing_answers(served: document.Json) -> None:
    beside = operations({"paths": document.nowhere(served)})
    assert len(beside) == 3 * len(document.EVERY_METHOD)
    assert not beside & operations(served)
    assert operations(document.likely(served)) == operations(served) | beside


def test_each_operation_keeps_its_parameters_and_its_bodies(served: document.Json) -> None:
    likely = document.likely(served)
    for method, path in operations(served):
        before, after = served["paths"][path][method], likely["paths"][path][method]
        names = {one["name"] for one in before["parameters"]} - document.SENT_SELDOM
        assert names <= {one["name"] for one in after["parameters"]}
        assert ("requestBody" in before) == ("requestBody" in after)
        if "requestBody" in before:
            assert after["requestBody"]["content"]
        assert after["responses"] == before["responses"]


def test_a_parameter_that_nobody_has_values_for_is_noticed(served: document.Json) -> None:
    other = copy.deepcopy(served)
    other["paths"]["/"]["get"]["parameters"].append({"name": "unheard-of", "in": "query", "schema": {}})
    with pytest.raises(KeyError):
        document.likely(other)


def test_strangers_read_it(served: document.Json) -> None:
    likely = document.likely(served)
    found = list(schemathesis.openapi.from_dict(likely).get_all_operations())
    assert all(isinstance(operation, Ok) for operation in found)
    assert len(found) == len(operations(likely))
