"""What does a process remember from one search for the next?"""

import pytest

from muniment.repository.options import RepositoryNames
from muniment.repository.search.answering.cache import GrantedAcls, SearchCache
from muniment.repository.search.aql.tree import PropertyList, Query, QueryLimits, RelativeDate
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission
from tests.counting import cost
from tests.shelf import JON, MARTA, Shelf


@pytest.mark.slow
def test_what_acls_grant_is_read_once_for_all_with_the_same_groups(shelf: Shelf) -> None:
    memory = SearchCache()
    with shelf.database.begin() as cx:
        read = acls.add(cx, shelf.repository.id, "read", MARTA, {"guests@demo": Permission.READ}, shelf.now).id
        browse = acls.add(cx, shelf.repository.id, "browse", MARTA, {"guests@demo": Permission.BROWSE}, shelf.now).id
        public = acls.built_in(cx, shelf.repository.id, "public", shelf.now)
    with shelf.database.read() as cx:
        first = memory.granted_acls(cx, shelf.repository.id, JON)
        assert first == GrantedAcls(frozenset({read, browse, public}), frozenset({read, public}))
        assert memory.granted_acls(cx, shelf.repository.id, MARTA).read == {public}
    with shelf.database.read() as cx, cost(shelf.database) as counted:
        assert memory.granted_acls(cx, shelf.repository.id, JON) is first
    assert len(counted.statements) == 1, "the marks"


def test_a_query_is_bound_once_for_each_meaning_of_its_acls(shelf: Shelf) -> None:
    memory, query = SearchCache(), Query(condition=PropertyList("acl_name", "IN", ("public",)))
    with shelf.database.read() as cx:
        first = memory.bind(cx, shelf.repository.id, query, {"public": 1}, shelf.now)
        assert memory.bind(cx, shelf.repository.id, query, {"public": 1}, shelf.now) is first
        assert memory.bind(cx, shelf.repository.id, query, {"public": 2}, shelf.now) != first
        assert memory.bind(cx, shelf.repository.id, query, {}, shelf.now) != first


def test_a_query_that_depends_on_the_moment_is_bound_each_time(shelf: Shelf) -> None:
    memory, query = SearchCache(), Query(condition=RelativeDate("r_modify_date", "GREATER_THAN", -1, "DAY"))
    with shelf.database.read() as cx:
        first = memory.bind(cx, shelf.repository.id, query, {}, shelf.now)
        assert memory.bind(cx, shelf.repository.id, query, {}, shelf.now + 1) != first


def test_a_document_is_read_once_in_each_spelling() -> None:
    memory, read = SearchCache(), []

    def reader(document: bytes, _names: RepositoryNames, _limits: QueryLimits) -> Query:
        read.append(document)
        return Query((document.decode(),))

    def other_reader(_document: bytes, _names: RepositoryNames, _limits: QueryLimits) -> Query:
        return Query(("other",))

    for document in (b"a", b"b", b"a"):
        assert memory.read(reader, document, RepositoryNames(), QueryLimits()) == Query((document.decode(),))
    assert read == [b"a", b"b"]
    assert memory.read(other_reader, b"a", RepositoryNames(), QueryLimits()) == Query(("other",))
