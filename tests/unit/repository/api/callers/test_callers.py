"""What a tokeninfo document says about a caller."""

import asyncio

import msgspec
import pytest

from muniment.repository.api.callers.callers import Callers
from muniment.repository.api.callers.credentials import RequestCredentials
from muniment.repository.api.callers.tokeninfo import Attributes
from muniment.repository.refusals import DirectoryUnavailable
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

SUFFIX = "ou=IdentityProviders,dc=identity,dc=muniment"
REPOSITORY = Repository(1, "demo", "", "6f2f6ab0-0000-4000-8000-000000000001", 0)


def document(*groups: object, user_id: str = "Marta@Staff", attribute: str = "memberOf") -> bytes:
    """Write a tokeninfo document of a user in these groups."""
    return msgspec.json.encode({"user": {"id": user_id, "values": [{"name": attribute, "values": list(groups)}]}})


def identified(answer: bytes, member_of: str = "memberOf") -> Principals:
    """Identify a caller whose token the directory answers like this."""

    def ask(token: str, resource_id: str) -> bytes:
        assert (token, resource_id) == ("abc", REPOSITORY.resource_id)
        return answer

    async def identify() -> Principals:
        return (await callers.identify(RequestCredentials("abc"), REPOSITORY)).principals()

    callers = Callers.in_process(
        ask, ("administrators@directory.admin", "boss@staff"), SUFFIX, Attributes(groups=member_of)
    )
    return asyncio.run(identify())


def test_groups_are_named_by_their_partition_and_compared_without_case() -> None:
    answer = document(
        f"cn=Editors,ou=Unit,ou=Root,ou=Staff,{SUFFIX}", f"CN=Readers , OU=Root,ou=Staff,{SUFFIX.upper()}"
    )
    assert identified(answer) == Principals("Marta@Staff", frozenset({"editors@staff", "readers@staff"}), False)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a\\,b", "a,b"),
        ("a\\2Cb", "a,b"),
        ("M\\C3\\BCller", "müller"),
        ("\\ lead", " lead"),
        ("trail\\ ", "trail "),
        ("a\\=b", "a=b"),
        ("a\\+b", "a+b"),
        ("ou\\=x\\,ou\\=Other", "ou=x,ou=other"),
    ],
)
def test_escapes_of_rfc_4514_are_undone(written: str, name: str) -> None:
    assert identified(document(f"cn={written},ou=Root,ou=Staff,{SUFFIX}")).groups == {f"{name}@staff"}


@pytest.mark.parametrize(
    "location",
    [
        "cn=Editors,ou=Root,ou=Staff,dc=elsewhere",
        SUFFIX,
        f"ou=Staff,{SUFFIX}",
        f"cn=Editors,{SUFFIX}",
        f"uid=Editors,ou=Root,ou=Staff,{SUFFIX}",
        "",
        "\\",
        7,
        None,
    ],
)
def test_what_is_no_location_of_a_group_gives_no_group(location: object) -> None:
    assert identified(document(location)).groups == frozenset()


def test_only_the_configured_attribute_lists_groups() -> None:
    answer = document(f"cn=Editors,ou=Root,ou=Staff,{SUFFIX}", attribute="oTMemberOf")
    assert not identified(answer).groups
    assert identified(answer, member_of="oTMemberOf").groups == {"editors@staff"}


@pytest.mark.parametrize(
    ("answer", "administers"),
    [
        (document(), False),
        (document(user_id="BOSS@staff"), True),
        (document(f"cn=administrators,ou=Root,ou=directory.admin,{SUFFIX}"), True),
        (document(f"cn=administrators,ou=Root,ou=Staff,{SUFFIX}"), False),
    ],
)
def test_administrators_are_users_and_groups_by_name(answer: bytes, *, administers: bool) -> None:
    assert identified(answer).administrator is administers


@pytest.mark.parametrize(
    "answer", [b"", b"{", b"[]", b'{"user": {}}', b'{"user": {"id": 5}}', b"\xff", b'{"user": {"id": "\xe9@staff"}}']
)
def test_an_unreadable_document_makes_the_directory_unavailable(answer: bytes) -> None:
    with pytest.raises(DirectoryUnavailable):
        identified(answer)
