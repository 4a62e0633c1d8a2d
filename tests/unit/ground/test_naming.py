"""How names are compared, and what a distinguished name says to both halves."""

import pytest

from muniment.directory.entries import names
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadName
from muniment.ground.naming import (
    LONGEST_DN,
    MOST_COMPOSITIONS,
    MalformedName,
    compositions,
    escape,
    fold_name,
    is_storable,
    make_storable,
    read_dn,
)
from muniment.repository.api.callers import tokeninfo

SUFFIX = DirectoryNames().dn_suffix


def test_names_that_differ_in_case_or_composition_are_the_same() -> None:
    assert fold_name("Ångström") == fold_name("a\u030angstro\u0308m".upper())
    assert fold_name("straße") == fold_name("STRASSE")


def test_a_folded_name_holds_nothing_that_a_database_cannot_store() -> None:
    assert fold_name("a\x00\ud800") == "a\ufffd\ufffd"
    assert fold_name("A\x00") == "a\ufffd"


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("plan", ()),
        ("\u00e9", ("e\u0301",)),
        ("\u212bngstro\u0308m", ("\u00c5ngstr\u00f6m", "A\u030angstr\u00f6m", "\u00c5ngstro\u0308m")),
        ("\u1ec7", ("e\u0323\u0302", "\u1eb9\u0302", "\u00ea\u0323")),
        ("\ud55c", ("\u1112\u1161\u11ab", "\ud558\u11ab")),
        ("\u0915\u093c", ("\u0958",)),
        ("\u1f71", ("\u03ac", "\u03b1\u0301")),
    ],
)
def test_a_name_is_known_however_its_accents_are_composed(name: str, others: tuple[str, ...]) -> None:
    assert {name, *others} <= compositions(name)
    for other in others:
        assert compositions(other) == compositions(name)


def test_a_name_of_very_many_accents_has_few_compositions() -> None:
    many = "\u00e9" * 200
    assert len(compositions("\u00e9" * 8)) == MOST_COMPOSITIONS
    assert compositions(many) == {many, "e\u0301" * 200}


@pytest.mark.parametrize("name", ["Jo", "JÖRG", "İ", "ſ", "ΑΣ", "ﬃ", "Å", "日本"])
def test_a_folded_name_folds_to_itself(name: str) -> None:
    assert fold_name(fold_name(name)) == fold_name(name)


@pytest.mark.parametrize(("text", "stored"), [("a", "a"), ("\x00", "\ufffd"), ("x\udfff", "x\ufffd"), ("😀", "😀")])
def test_text_is_stored_as_it_is_where_it_can_be(text: str, stored: str) -> None:
    assert make_storable(text) == stored
    assert is_storable(text) == (text == stored)


def test_a_value_is_escaped_as_rfc_4514_says() -> None:
    assert escape(' #a,b+c"d\\e<f>g;h=i ') == '\\ \\#a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\ '
    assert escape("#a") == "\\#a"
    assert escape("R&D#") == "R&D\\#", "ldap3 demands it, RFC 4514 allows it"
    assert read_dn("cn=R&D#,ou=C\\#") == [("cn", "R&D#"), ("ou", "C#")], "earlier releases wrote it bare"


DNS = [
    ("cn=jo", [("cn", "jo")]),
    ("CN=Lu\\C4\\8Di\\C4\\87, ou = x\\, y ", [("cn", "Lučić"), ("ou", "x, y")]),
    ("cn=,ou=b", [("cn", ""), ("ou", "b")]),
    ("cn=a=b", [("cn", "a=b")]),
    ("cn=trail\\ ,ou=b", [("cn", "trail "), ("ou", "b")]),
    ("cn=trail\\\\ ,ou=b", [("cn", "trail\\"), ("ou", "b")]),
    ("cn=\\ lead\\,\\+", [("cn", " lead,+")]),
    ("cn=\\00", [("cn", "\x00")]),
    ("cn=\ud800", [("cn", "\ud800")]),
    ("cn=a\nb", [("cn", "a\nb")]),
    ("cn=\\\n", [("cn", "\n")]),
]
NO_DNS = [
    "",
    "cn",
    "=x",
    "cn=jo\\",
    "cn=jo,",
    ",cn=jo",
    "cn=jo,,ou=b",
    "cn=\\FF",
    "cn=\\C3x",
    "cn=a+sn=b,ou=c",
    "cn=#0403",
    'cn="a,b"',
    "cn=a;ou=b",
    "cn=<a>",
    f"cn={'a' * LONGEST_DN}",
]


@pytest.mark.parametrize(("text", "pairs"), DNS)
def test_a_distinguished_name_is_read_as_rfc_4514_says(text: str, pairs: list[tuple[str, str]]) -> None:
    assert read_dn(text) == pairs


@pytest.mark.parametrize("text", NO_DNS)
def test_what_is_no_distinguished_name_is_refused(text: str) -> None:
    with pytest.raises(MalformedName):
        read_dn(text)


@pytest.mark.parametrize("value", [*(value for _, pairs in DNS for _, value in pairs), "\\", " ", "#", " #x ", ",=+"])
def test_what_was_escaped_is_read_again(value: str) -> None:
    assert read_dn(f"cn={escape(value)},ou=b") == [("cn", value), ("ou", "b")]


ODD_NAMES = [
    "a+b",
    "a\\+b",
    '"a"',
    "#a",
    "\\#a",
    "a;b",
    "a\\\\",
    "a\\2cb",
    "a\\c3\\bc",
    "\\ff",
    " a ",
    "\\ a\\ ",
    "a=b",
    "ſ",
    "ΑΣ",
    "e\u0301",
    "\ud800",
    "a\\00",
]


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_both_halves_read_a_location_alike(odd: str) -> None:
    """The rights of a group hang on it: the directory writes where a group lies, the repository reads it."""
    location = f"cn={odd},ou=Root,ou=Staff,{SUFFIX}"
    group = tokeninfo._group(location, SUFFIX)
    try:
        name, _, partition = names.split_location(DirectoryNames(), location)
    except BadName:
        assert group is None
    else:
        # People may leave out an escape; the directory itself never does.
        written = location == names.location(DirectoryNames(), partition, name=name or "")
        assert group == fold_name(f"{name}@{partition}") or (group is None and not written)
