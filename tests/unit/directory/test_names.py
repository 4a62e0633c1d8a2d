"""Names, user ids, locations and scopes: the rules, one by one."""

import pytest

from muniment.directory import names
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadName, InvalidScope
from muniment.naming import LONGEST_DN

NAMES = DirectoryNames()
SUFFIX = NAMES.dn_suffix


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
        f"cn=jo,ou={'a' * LONGEST_DN},ou=People,{SUFFIX}",
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
