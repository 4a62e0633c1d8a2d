"""Laws of names: reading what was written gives the same."""

import unicodedata
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from muniment.directory.entries import names
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadName, InvalidScope
from muniment.ground import naming

NAMES = DirectoryNames()


def _is_name(text: str) -> bool:
    try:
        return names.check(text) == text
    except BadName:
        return False


NAME = st.text(min_size=1, max_size=40).map(lambda text: unicodedata.normalize("NFC", text.strip())).filter(_is_name)
AWKWARD = st.text(alphabet=' #,+"\\<>;=@aé', min_size=1, max_size=12).map(str.strip).filter(_is_name)
ANY_NAME = NAME | AWKWARD
PARTITION = ANY_NAME.filter(lambda name: "@" not in name)


@given(ANY_NAME, PARTITION)
def test_a_user_id_reads_back(name: str, partition: str) -> None:
    assert names.split_user_id(names.user_id(name, partition)) == (name, partition)


@given(PARTITION, st.lists(ANY_NAME, max_size=4), st.none() | ANY_NAME)
def test_a_location_reads_back(partition: str, units: list[str], name: str | None) -> None:
    written = names.location(NAMES, partition, units, name=name)
    assert names.split_location(NAMES, written) == (name, units, partition)


@given(PARTITION)
def test_a_partitions_location_reads_back(partition: str) -> None:
    assert names.split_location(NAMES, names.location(NAMES, partition, root=False)) == (None, None, partition)


@given(st.text())
def test_any_value_of_a_location_reads_back(value: str) -> None:
    assert naming.read_dn(f"cn={naming.escape(value)},ou=x") == [("cn", value), ("ou", "x")]


@given(ANY_NAME.filter(lambda name: "+" not in name))
def test_a_scope_reads_back(name: str) -> None:
    assert names.resource_name(names.scope(name)) == name


@given(ANY_NAME.filter(lambda name: "+" not in name), ANY_NAME.filter(lambda name: "+" not in name))
def test_two_resources_with_one_scope_have_one_name(one: str, two: str) -> None:
    assert (names.scope(one) == names.scope(two)) == (one == two)


@given(st.text())
def test_a_key_is_its_own_key(text: str) -> None:
    assert naming.fold_name(naming.fold_name(text)) == naming.fold_name(text)
    naming.fold_name(text).encode()


@given(ANY_NAME)
def test_a_key_is_the_same_in_any_composition(name: str) -> None:
    assert naming.fold_name(name) == naming.fold_name(unicodedata.normalize("NFD", name))


@given(st.text())
def test_no_string_brings_a_reader_down(text: str) -> None:
    for read, refusal in (
        (names.split_user_id, BadName),
        (naming.read_dn, naming.MalformedName),
        (lambda text: names.split_location(NAMES, text), BadName),
        (names.resource_name, InvalidScope),
        (lambda text: names.resource_name("resource:" + text), InvalidScope),
        (names.check, BadName),
    ):
        with suppress(refusal):
            read(text)
