"""Names, user ids, locations and scopes: the rules, one by one."""

import pytest

from muniment.directory import names
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadName, InvalidScope

NAMES = DirectoryNames()
SUFFIX = NAMES.dn_suffix


def test_names_that_differ_in_case_or_composition_are_the_same() -> None:
    assert names.key("Ångström") == names.key("a\u030angstro\u0308m".upper())
    assert names.key("straße") == names.key("STRASSE")


def test_a_key_holds_nothing_that_a_database_cannot_store() -> None:
    assert names.key("a\x00\ud800") == "a\ufffd\ufffd"


@pytest.mark.parametrize("bad", ["", " a", "a ", "a\nb", "a\x00b", "a\u2028b", "a\ufffd", "\ud800", "x" * 121])
def test_a_name_that_nobody_could_type_is_refused(bad: str) -> None:
    with pytest.raises(BadName):
        names.check(bad)


def test_a_partition_has_no_at_sign_but_a_user_may() -> None:
    assert names.check("a@b") == "a@b"
    with pytest.raises(BadName):
        names.check("a@b", partition=True)


def test_a_user_id_is_split_at_its_last_at_sign() -> None:
    assert names.split_user_id("jo@example.org@People") == ("jo@example.org", "People")


@pytest.mark.parametrize("bad", ["", "jo", "@People", "jo@", "@"])
def test_a_user_id_without_a_name_or_partition_is_refused(bad: str) -> None:
    with pytest.raises(BadName):
        names.split_user_id(bad)


def test_a_location_is_spelled_from_the_name_outwards() -> None:
    written = names.location(NAMES, "People", ("Inner", "Outer"), name="jo")
    assert written == f"cn=jo,ou=Inner,ou=Outer,ou=Root,ou=People,{SUFFIX}"
    assert names.location(NAMES, "People") == f"ou=Root,ou=People,{SUFFIX}"
    assert names.location(NAMES, "People", root=False) == f"ou=People,{SUFFIX}"


def test_a_location_is_escaped_as_rfc_4514_says() -> None:
    assert names.escape(' #a,b+c"d\\e<f>g;h=i ') == '\\ #a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\ '
    assert names.escape("#a") == "\\#a"
    assert names.read_dn("CN=Lu\\C4\\8Di\\C4\\87, ou = x\\, y ") == [("cn", "Lučić"), ("ou", "x, y")]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "cn=jo",
        "cn",
        "=x",
        f"cn=jo,{SUFFIX}",
        SUFFIX,
        f"cn=jo,ou=People,{SUFFIX}",
        f"cn=jo,ou=Elsewhere,ou=People,{SUFFIX}",
        f"cn=a,cn=b,ou=Root,ou=People,{SUFFIX}",
        "cn=jo,ou=Root,ou=People,dc=elsewhere",
        f"cn=\\FF,ou=Root,ou=People,{SUFFIX}",
        "cn=jo\\",
        f"cn=jo,ou={'a' * names.MAX_LOCATION},ou=People,{SUFFIX}",
    ],
)
def test_what_is_no_location_is_refused(bad: str) -> None:
    with pytest.raises(BadName):
        names.split_location(NAMES, bad)


def test_a_scope_spells_spaces_as_plus_signs() -> None:
    assert names.scope("My Own API") == "resource:My+Own+API"


def test_plus_and_space_in_a_scope_name_the_same_resource() -> None:
    assert names.resource_name("resource:My+Own API") == "My Own API"


@pytest.mark.parametrize("bad", ["", "resource:", "Resource:x", "openid", "openid resource:x"])
def test_a_scope_of_another_form_is_refused(bad: str) -> None:
    with pytest.raises(InvalidScope):
        names.resource_name(bad)


def test_a_resource_has_no_plus_sign_in_its_name() -> None:
    with pytest.raises(BadName):
        names.check_resource("a+b")
