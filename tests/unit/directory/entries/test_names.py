"""Names, user ids, locations and scopes: the rules, one by one."""

import msgspec
import pytest

from muniment.directory.entries import names
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadName, InvalidScope
from muniment.ground.naming import LONGEST_DN

NAMES = DirectoryNames()
SUFFIX = NAMES.dn_suffix


@pytest.mark.parametrize("bad", ["", " a", "a ", "a\nb", "a\x00b", "a\u2028b", "a\ufffd", "\ud800", "x" * 121])
def test_a_name_that_nobody_could_type_is_refused(bad: str) -> None:
    with pytest.raises(BadName):
        names.check(bad)


DISGUISED = [
    *("ann\u202ea", "ann\u2066a", "an\u200bna", "anna\u200d", "an\u200dna", "\ufeffanna", "an\u2060na", "an\u00adna"),
    *("an\u034fna", "anna\ufe0f", "an\u3164na", "an\U000e0041na", "anna\u00a0smith", "anna\u2003smith"),
    *(
        "\u0430nna",
        "ann\u0430",
        "\u0430\u0301nna",
        "\u03bfscar",
        "\u0430dm1n",
        "\uff41nna",
        "\U0001d41anna",
        "\u13aanna",
    ),
    *("\u0441\u03bf\u0441", "Smith \u0430nna"),
]
"""Names that are read as other ones."""


@pytest.mark.parametrize("bad", DISGUISED)
def test_a_name_that_is_read_as_another_one_is_refused(bad: str) -> None:
    with pytest.raises(BadName):
        names.check(bad)


@pytest.mark.parametrize(
    "good",
    [
        *(
            "Anna Sm\u00edth",
            "\u0410\u043d\u043d\u0430",
            "\u041e\u041e\u041e Siemens",
            "IT-\u043e\u0442\u0434\u0435\u043b",
            "\u039d\u03af\u03ba\u03bf\u03c2 7",
            "10\u00b5m \u2126 m\u00b2",
        ),
        *(
            "\u5c71\u7530 Taro",
            "\u30c6\u30b9\u30c8abc",
            "\uae40 Kim",
            "\uff21\uff22\uff23\u5546\u4e8b",
            "\u5c71\u7530\u3000\u592a\u90ce",
            "\u06af\u0631\u0648\u0647\u200c\u0647\u0627",
            "\u0915\u094d\u200d\u0937",
        ),
        *("\u05d0\u05d1", "caf\u0065\u0301", "\U0001f600 team", "O\u2019Brien", "Stra\u00dfe", "Dvo\u0159\u00e1k"),
    ],
)
def test_a_name_of_any_script_is_taken(good: str) -> None:
    assert names.check(good)


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


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("cn=a+b;c", "a+b;c"),
        ("cn=#1", "#1"),
        ('cn="x" <y>', '"x" <y>'),
        ("cn=Doe, Jane", "Doe, Jane"),
        ("cn=Doe\\, Jane + one", "Doe, Jane + one"),
        ("CN = a\\+b+c", "a+b+c"),
    ],
)
def test_a_location_that_lacks_escapes_is_read(written: str, name: str) -> None:
    """Clients put names into locations as they are, or escape some of what they should."""
    location = f"{written},ou=Inner,ou=Root,ou=People,{SUFFIX}"
    assert names.split_location(NAMES, location) == (name, ["Inner"], "People")


def test_a_location_of_another_suffix_is_refused_with_ours() -> None:
    with pytest.raises(BadName, match=SUFFIX):
        names.split_location(NAMES, "cn=jo,ou=Root,ou=People,dc=identity,dc=elsewhere")


def test_a_resource_has_a_location_beside_those_of_people() -> None:
    assert names.resource_location(NAMES, "My, API") == "cn=My\\, API,ou=Resources,dc=identity,dc=muniment"
    plain = msgspec.structs.replace(NAMES, dn_suffix="dc=identity")
    assert names.resource_location(plain, "My API") == "cn=My API,ou=Resources,dc=identity"


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
