"""What a client asks for: at most one resource, and scopes beside it (facts 3.1, RFC 6749 3.3, RFC 8707)."""

from typing import Any, get_args

import msgspec
import pytest

from muniment.directory.entries import resources
from muniment.directory.entries.oauth_clients import DEFAULTS, Made
from muniment.directory.entries.resources import Resource
from muniment.directory.oauth import scopes
from muniment.directory.oauth.scopes import RequestedScope
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import InvalidScope, InvalidTarget
from muniment.ground.clock import Instant
from tests.office import SCOPE, Office, counted

FIELD = DirectoryNames(scope_prefix="otds:")


def read(
    office: Office,
    scope: str | None,
    resource: str | None = None,
    *,
    names: DirectoryNames | None = None,
    made: Made = "authorization_code",
    **settings: Any,
) -> RequestedScope:
    """Read what a client with these settings asks for."""
    with office.db.read() as cx:
        return scopes.read(
            cx, names or office.names, msgspec.structs.replace(DEFAULTS, **settings), made, scope, resource
        )


def named(office: Office, name: str, now: Instant) -> Resource:
    """Make a resource that issues tokens."""
    with office.db.begin() as cx:
        resource = resources.add(cx, office.names, name, now)
        resources.activate(cx, resource.id, now)
        return resources.by_id(cx, resource.id)


def test_one_resource_stands_beside_the_other_scopes(office: Office) -> None:
    asked = read(office, f"profile openid {SCOPE} groups")
    assert (asked.resource_id, asked.text, asked.told) == (office.resource.id, "openid profile groups", "")
    alone = read(office, "openid")
    assert (alone.resource_id, alone.text, alone.told) == ("", "openid", "")
    by_id = read(office, f"resource:{office.resource.id} email")
    assert (by_id.resource_id, by_id.scopes) == (office.resource.id, ("email",))


def test_the_scopes_of_the_field_have_its_prefix(office: Office) -> None:
    assert read(office, "otds:roles otds:groupids", names=FIELD).scopes == ("roles", "groupids")
    with pytest.raises(InvalidScope):
        read(office, "roles", names=FIELD)
    assert scopes.spell(FIELD, office.resource, ("openid", "roleids")) == f"{SCOPE} openid otds:roleids"


def test_a_decoded_name_has_spaces_and_the_longest_name_counts(office: Office, now: Instant) -> None:
    longer = named(office, "My API email", now)
    assert read(office, "openid resource:My API profile").resource_id == office.resource.id
    assert read(office, "resource:My API email").resource_id == longer.id
    assert read(office, "resource:My API email email").text == "email"
    with counted(office.db) as sent, pytest.raises(InvalidScope):
        read(office, "resource:none" + " email" * 120)
    assert len(sent) < 40


def test_two_resources_are_refused_and_so_is_an_unknown_one(office: Office, now: Instant) -> None:
    other = named(office, "Other", now)
    for scope, resource in ((f"{SCOPE} resource:Other", None), (f"resource:Other {SCOPE} openid", None)):
        with pytest.raises(InvalidScope, match="two resources"):
            read(office, scope, resource)
    with pytest.raises(InvalidTarget, match="two resources"):
        read(office, SCOPE, f"urn:uuid:{other.id}")
    with pytest.raises(InvalidScope):
        read(office, "openid resource:Nothing")


def test_the_parameter_names_the_address_exactly_or_the_identifier(office: Office) -> None:
    address = "https://api.example.org/v1"
    with office.db.begin() as cx:
        resources.change(cx, office.resource, address=address)
    for text in (address, f"urn:uuid:{office.resource.id}", f"URN:UUID:{office.resource.id.upper()}"):
        asked = read(office, "openid", text)
        assert (asked.resource_id, asked.told) == (office.resource.id, f"{SCOPE} openid")
    for text in (f"{address}/", "https://API.example.org/v1", f"{address}#x", "urn:uuid:none", "", office.resource.id):
        with pytest.raises(InvalidTarget):
            read(office, "openid", text)
    with office.db.read() as cx:
        elsewhere = scopes.read(
            cx, office.names, DEFAULTS, "authorization_code", "openid", "https://b/", lambda _, __: office.resource.id
        )
    assert elsewhere.resource_id == office.resource.id


def test_what_is_left_out_is_the_clients_default(office: Office, now: Instant) -> None:
    chosen: dict[str, Any] = {"default_resource": office.resource.id, "default_scopes": ("openid", "search")}
    asked = read(office, None, **chosen)
    assert (asked.resource_id, asked.text, asked.told) == (office.resource.id, "openid", f"{SCOPE} openid")
    assert read(office, None) == RequestedScope(None, ())
    other = named(office, "Other", now)
    assert read(office, "resource:Other", **chosen).resource_id == other.id
    with office.db.begin() as cx:
        resources.change(cx, office.resource, authentication_enabled=False)
    with pytest.raises(InvalidTarget):
        read(office, None, **chosen)


def test_an_unknown_scope_is_refused_unless_it_stands_beside_openid(office: Office) -> None:
    for scope in ("search", f"search {SCOPE}", "openid" * 200):
        with pytest.raises(InvalidScope):
            read(office, scope)
    asked = read(office, "openid offline_access")
    assert (asked.scopes, asked.told) == (("openid",), "openid")


def test_allowed_scopes_leave_the_given_password_grant_as_it_is(office: Office) -> None:
    """given 4.1: they were kept and shown before they bound anything."""
    assert (
        read(office, f"openid {SCOPE}", made="password", allowed_scopes=("search",)).resource_id == office.resource.id
    )
    for made in get_args(Made):
        if made != "password":
            with pytest.raises(InvalidScope):
                read(office, f"openid {SCOPE}", made=made, allowed_scopes=("search",))


def test_a_client_gets_no_more_than_its_allowed_scopes(office: Office) -> None:
    narrow: dict[str, Any] = {"allowed_scopes": (SCOPE, "openid")}
    assert read(office, f"openid {SCOPE}", **narrow).resource_id == office.resource.id
    for scope in ("openid profile", f"openid resource:{office.names.administration_resource}"):
        with pytest.raises(InvalidScope):
            read(office, scope, may_administer=True, **narrow)
    given = read(office, None, allowed_scopes=("openid",), default_resource=office.resource.id)
    assert given.resource_id == office.resource.id


@pytest.mark.parametrize("made", ["authorization_code", "device_code", "token_exchange"])
def test_only_a_marked_client_asks_for_the_administration(office: Office, made: Made) -> None:
    scope = scopes.spell(office.names, office.administration, ())
    for asked, default in ((scope, ""), ("openid", office.administration.id)):
        with pytest.raises(InvalidScope, match="first allow"):
            read(office, asked, made=made, default_resource=default)
    with pytest.raises(InvalidScope):
        read(office, "openid", f"urn:uuid:{office.administration.id}", made=made)
    assert read(office, scope, made=made, may_administer=True).resource_id == office.administration.id
    assert read(office, scope, made="password").resource_id == office.administration.id
