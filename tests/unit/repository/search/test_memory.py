"""What does a process remember from one search for the next?"""

from muniment.repository.aql.tree import PropertyList, PropertyRange, Query
from muniment.repository.objects import object_types
from muniment.repository.objects.object_types import ObjectType
from muniment.repository.objects.properties import PropertyDefinition
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Permission
from muniment.repository.search.memory import GrantedAcls, SearchMemory
from tests.counting import cost
from tests.shelf import JON, MARTA, Shelf


def test_what_acls_grant_is_read_once_for_all_with_the_same_groups(shelf: Shelf) -> None:
    memory = SearchMemory()
    with shelf.database.begin() as cx:
        read = acls.add(cx, shelf.repository.id, "read", MARTA, {"guests@demo": Permission.READ}, shelf.now).id
        browse = acls.add(cx, shelf.repository.id, "browse", MARTA, {"guests@demo": Permission.BROWSE}, shelf.now).id
        public = acls.built_in(cx, shelf.repository.id, "public", shelf.now)
    with shelf.database.read() as cx:
        first = memory.granted(cx, shelf.repository.id, JON)
        assert first == GrantedAcls(frozenset({read, browse, public}), frozenset({read, public}))
        with cost(shelf.database) as counted:
            assert memory.granted(cx, shelf.repository.id, JON) is first
        assert len(counted.statements) == 1, "the marks"
        assert memory.granted(cx, shelf.repository.id, MARTA).read == {public}


def test_a_query_is_bound_once_for_each_meaning_of_its_acls(shelf: Shelf) -> None:
    memory, query = SearchMemory(), Query(condition=PropertyList("acl_name", "IN", ("public",)))
    with shelf.database.read() as cx:
        first = memory.bind(cx, shelf.repository.id, query, {"public": 1})
        assert memory.bind(cx, shelf.repository.id, query, {"public": 1}) is first
        assert memory.bind(cx, shelf.repository.id, query, {"public": 2}) != first
        assert memory.bind(cx, shelf.repository.id, query, {}) != first


def test_values_that_python_takes_for_equal_are_queries_of_their_own(shelf: Shelf) -> None:
    memory = SearchMemory()
    with shelf.database.begin() as cx:
        kind = ObjectType("well", "document", (PropertyDefinition("depth", "double"),))
        object_types.add_type(cx, shelf.repository.id, kind, shelf.now)
    queries = [Query(condition=PropertyRange("depth", "BETWEEN", low, 5)) for low in (1, 1.0, True)]
    with shelf.database.read() as cx:
        bound = [memory.bind(cx, shelf.repository.id, query, {}).condition for query in queries]
    lows = [each.low for each in bound if isinstance(each, PropertyRange)]
    assert [type(low) for low in lows] == [int, float, bool]


def test_a_document_is_read_once() -> None:
    memory, read = SearchMemory(), []

    def reader(document: bytes) -> Query:
        read.append(document)
        return Query((document.decode(),))

    for document in (b"a", b"b", b"a"):
        assert memory.read(document, reader) == Query((document.decode(),))
    assert read == [b"a", b"b"]
