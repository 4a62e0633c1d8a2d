"""What is proved of every index, of one in OpenSearch with three shards: the contract, the oracle, the twin."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment.repository.search.index.document import Document
from muniment.repository.store.change_log.changes import Position
from tests.cluster import OnCluster
from tests.contract.test_index import (  # noqa: F401 - pytest collects the tests here
    NAMES,
    POSITION,
    Subject,
    documents,
    test_a_change_and_a_new_property_are_found_at_once,
    test_it_finds,
    test_it_holds_each_document_once,
    test_it_is_true_to_its_position,
    test_it_obeys_however_many_acls_the_caller_has,
    test_it_obeys_what_the_caller_may_see,
)
from tests.properties.test_aql_oracle import (  # noqa: F401 - as above
    test_a_wider_range_never_loses_a_hit,
    test_dropping_a_part_of_an_and_never_loses_a_hit,
    test_pages_joined_are_the_whole,
    test_the_index_finds_what_the_oracle_finds,
    test_what_has_all_words_of_a_question_comes_first,
)
from tests.properties.test_twin_index import (  # noqa: F401 - as above
    test_set_total_terms_excerpts_and_facets_are_those_of_the_twin,
    test_words_with_wildcards_rank_as_in_the_twin,
)

SHARDS = 3


def just_built(made: OnCluster) -> Subject:
    made.writer.apply(documents(), (), POSITION)
    return Subject(made.reader, made.writer)


def opened_again(made: OnCluster) -> Subject:
    just_built(made)
    made.writer = made.index.writer(made.generation)
    return Subject(made.index.reader(), made.writer)


def rebuilt(made: OnCluster) -> Subject:
    first = just_built(made)
    generation = made.index.begin()
    writer = made.index.writer(generation)
    for each in first.index.snapshot().documents():
        writer.apply([each], (), POSITION)
    made.index.switch(generation)
    return Subject(first.index, writer)


def replaced(made: OnCluster) -> Subject:
    for round_ in range(3):
        old = [Document(name, 9, 9, "document", 9, "x@y", {}, f"old pump {round_}") for name in NAMES]
        made.writer.apply(old, (), Position(0, 1))
    made.writer.apply(documents(), ("0900000100000009",), POSITION)
    return Subject(made.reader, made.writer)


@pytest.fixture(params=[just_built, opened_again, rebuilt, replaced])
def subject(request: pytest.FixtureRequest, opensearch: str, tmp_path: Path) -> Iterator[Subject]:
    made = OnCluster(opensearch, tmp_path, shards=SHARDS)
    make: Callable[[OnCluster], Subject] = request.param
    yield make(made)
    made.close()


@pytest.fixture(scope="module")
def shelf(opensearch: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnCluster]:
    made = OnCluster(opensearch, tmp_path_factory.mktemp("shelf"), shards=SHARDS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def twin(opensearch: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnCluster]:
    made = OnCluster(opensearch, tmp_path_factory.mktemp("twin"), shards=SHARDS)
    yield made
    made.close()
