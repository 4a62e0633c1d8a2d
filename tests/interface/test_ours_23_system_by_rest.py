"""Ours 23: administrators' programs set system attributes, trusted sites, the password policy and the audit."""

import pytest

from tests.interface.by_rest import Rest
from tests.scenes import Site


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


def test_a_system_attribute_is_added_changed_and_removed(rest: Rest) -> None:
    name, path = f"directory.test.{rest.site.world.word()}", "/systemconfig/system_attributes"
    added = rest("POST", path, {"name": name, "value": "a", "friendlyName": "For people"})
    assert added.status_code == 201
    assert added.json() == {"name": name, "value": "a", "friendlyName": "For people"}
    assert rest("POST", path, {"name": name, "value": "b"}).status_code == 409
    changed = rest("PUT", f"{path}/{name}", {"name": name, "value": "b"})
    assert (changed.status_code, changed.json()) == (200, {"name": name, "value": "b", "friendlyName": "For people"})
    assert changed.json() in rest.done("GET", path)["attributes"]
    assert rest("PUT", f"{path}/{name}", {"name": "other", "value": "b"}).status_code == 400
    assert rest("DELETE", f"{path}/{name}").status_code == 204
    assert rest("GET", f"{path}/{name}").status_code == 404
    assert rest.done("PUT", f"{path}/{name}", {"value": "c"})["value"] == "c", "or it is added"


def test_the_switch_of_tls_is_the_one_that_the_directory_reads(rest: Rest) -> None:
    path = "/systemconfig/system_attributes/directory.auth.EnforceSSL"
    assert rest("PUT", path, {"value": "perhaps"}).status_code == 400
    assert rest.done("PUT", path, {"name": "DIRECTORY.auth.enforcessl", "value": "FALSE"})["value"] == "false"
    plain = rest.site.http.post(f"http://muniment.test{rest.site.login}", data={"grant_type": "password"})
    assert plain.json()["error"] == "invalid_request", "and not refused for want of TLS"
    assert "TLS" not in plain.text
    assert rest("DELETE", path).status_code == 204
    assert rest.site.http.post(f"http://muniment.test{rest.site.login}", data={}).status_code == 403


def test_trusted_sites_are_regular_expressions_and_replaced_as_a_whole(rest: Rest) -> None:
    path = "/systemconfig/whitelist"
    for wanted in (["https://a/.*", "b"], []):
        assert rest("PUT", path, {"stringList": wanted}).status_code == 204
        assert rest.done("GET", path) == {"stringList": wanted}
    assert rest("PUT", path, {"stringList": ["("]}).status_code == 400
    assert rest("PUT", path, {"stringList": [""]}).status_code == 400


def test_the_password_policy_shows_what_holds_and_keeps_what_is_set(rest: Rest) -> None:
    path, options = "/systemconfig/passwordpolicy", rest.site.installation.settings.directory
    before = rest.done("GET", path)
    assert before["lockoutFailureCount"] == options.lockout_failures
    characters = before["minimumNumberOfCharacters"] + 1
    wanted = {"minimumNumberOfCharacters": characters, "complexPasswordValidationEnabled": "True", "unknown": 1}
    changed = rest.done("PUT", path, wanted)
    assert changed == before | {"minimumNumberOfCharacters": characters, "complexPasswordValidationEnabled": True}
    assert "maxNumberOfConsecutiveANCharsInPassword" in changed
    assert rest.done("GET", path) == changed
    assert rest("PUT", path, {"minimumNumberOfDigits": -1}).status_code == 400
    assert rest("PUT", path, {"minimumNumberOfDigits": "many"}).status_code == 400


def test_what_is_asked_of_the_audit_is_kept(rest: Rest) -> None:
    path = "/systemconfig/audit"
    wanted = {"daysToKeep": "7", "enabled": True, "auditTo": "DATABASE", "eventIDs": ["User Create"]}
    assert rest.done("PUT", path, wanted) == wanted
    assert rest.done("PUT", path, {"enabled": False}) == wanted | {"enabled": False}
    assert rest.done("GET", path) == wanted | {"enabled": False}


@pytest.mark.parametrize("dialect", ["rest", "v1"])
def test_both_dialects_read_both_spellings(site: Site, dialect: str) -> None:
    rest = Rest(site, dialect)
    for key in ("stringList", "string_list"):
        assert rest("PUT", "/systemconfig/whitelist", {key: ["a"]}).status_code == 204
    rest.done("PUT", "/systemconfig/audit", {"event_ids": ["x"], "daysToKeep": 3})
    shown = rest.done("GET", "/systemconfig/audit")
    assert shown["eventIDs" if dialect == "rest" else "event_ids"] == ["x"]
    assert shown["daysToKeep" if dialect == "rest" else "days_to_keep"] == "3"
