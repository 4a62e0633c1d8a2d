"""Client generators can read the OpenAPI document of each half: what they stumble over is not in it.

`tests/peers/test_generated_clients.py` runs them; these rules hold without.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import pytest

from muniment.directory.api import routes as directory_routes
from muniment.directory.options import DirectoryNames
from muniment.front import routes as front_routes
from muniment.installation import settings
from muniment.repository.api import routes as repository_routes
from muniment.repository.options import RepositoryNames
from muniment.repository.page import routes as search_page_routes
from muniment.web import openapi
from muniment.web.addresses import AddressTable
from tests.environments import ROOT

pytestmark = pytest.mark.slow

Json: TypeAlias = Mapping[str, Any]

SENT = re.compile(r"application/([\w.]+\+)?json|application/octet-stream|application/x-www-form-urlencoded")
"""The media types of a body that every generated client can send."""


def _tables(directory: DirectoryNames, repository: RepositoryNames) -> dict[str, tuple[AddressTable[Any], ...]]:
    of_directory, of_repository = directory_routes.table(directory), repository_routes.table(repository)
    return {
        "directory": (front_routes.table(), of_directory),
        "repository": (front_routes.table(), of_repository, search_page_routes.table()),
        "both": (front_routes.table(), of_directory, of_repository, search_page_routes.table()),
    }


@pytest.fixture(
    params=[(half, names) for half in ("directory", "repository", "both") for names in ("neutral", "field")]
)
def document(request: pytest.FixtureRequest) -> Json:
    half, names = request.param
    file = ROOT / "examples" / "names-of-the-field.toml" if names == "field" else None
    chosen = settings.read(file, {}, (), file_must_exist=bool(file))
    tables = _tables(chosen.directory.names, chosen.repository.names)[half]
    return openapi.document(tables, "https://muniment.test", "1", "ticket", openapi.CallerCredentials(basic=True))


def operations(document: Json) -> list[Json]:
    return [operation for item in document["paths"].values() for operation in item.values()]


def inside(thing: Any, place: str = "") -> Iterator[tuple[str, Json]]:
    """Every object of the document, with its place."""
    if isinstance(thing, dict):
        yield place, thing
    for key, part in thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ():
        yield from inside(part, f"{place}/{key}")


def test_no_schema_is_a_constant_or_null_alone(document: Json) -> None:
    stumbling = [
        place
        for place, schema in inside(document)
        if isinstance(schema.get("const"), str | int)
        or (schema.get("type") == "null" and not re.search(r"/(anyOf|oneOf)/\d+\Z", place))
    ]
    assert stumbling == []


def test_each_parameter_and_each_choice_has_a_type(document: Json) -> None:
    parameters = [(one["operationId"], parameter) for one in operations(document) for parameter in one["parameters"]]
    assert [(where, one["name"]) for where, one in parameters if "type" not in one["schema"]] == []
    assert [place for place, schema in inside(document) if "enum" in schema and "type" not in schema] == []


def test_a_body_can_be_sent_and_the_first_of_several_is_the_one_that_clients_choose(document: Json) -> None:
    """Some clients take the schema of the first media type, and send it as the first JSON."""
    for operation in operations(document):
        if taken := operation.get("requestBody", {}).get("content"):
            assert "*/*" not in taken, operation["operationId"]
            assert SENT.fullmatch(next(iter(taken))), operation["operationId"]


def test_bytes_are_known_as_bytes(document: Json) -> None:
    for operation in operations(document):
        for answer in operation["responses"].values():
            if "*/*" in answer.get("content", {}):
                assert next(iter(answer["content"])) == "application/octet-stream", operation["operationId"]


def test_no_two_names_become_one(document: Json) -> None:
    """A client in Python, Go or Java spells a name in its own way."""
    ids = [one["operationId"] for one in operations(document)]
    names = [ids, list(document["components"]["schemas"])]
    names += [[parameter["name"] for parameter in one["parameters"]] for one in operations(document)]
    names += [list(schema.get("properties", ())) for _, schema in inside(document) if schema.get("type") == "object"]
    for several in names:
        spelled = sorted(re.sub(r"[^a-z0-9]", "", name.lower()) for name in several)
        assert [one for one, next_one in itertools.pairwise(spelled) if one == next_one] == []


def test_an_object_says_whether_it_has_further_properties(document: Json) -> None:
    """Some clients refuse an answer with a property that they do not know, unless its schema says that it may have."""
    objects = [(where, one) for where, one in inside(document) if one.get("type") == "object" and "properties" in one]
    assert [where for where, one in objects if "additionalProperties" not in one] == []
    assert document["components"]["schemas"]["PlainError"]["additionalProperties"] is True


def test_every_part_of_a_path_is_a_parameter_that_it_needs(document: Json) -> None:
    for path, item in document["paths"].items():
        for operation in item.values():
            parts = [one["name"] for one in operation["parameters"] if one["in"] == "path" and one["required"]]
            assert sorted(parts) == sorted(re.findall(r"\{(\w+)\}", path))
