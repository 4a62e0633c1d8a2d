"""The admin console (given 5.4), without a browser."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from sqlalchemy.engine import Connection

from muniment.directory.api import routes
from muniment.directory.api.rest import addresses
from muniment.directory.api.routes import FORM
from muniment.directory.entries import entries, memberships, resources, system
from muniment.ground.refusals import Overloaded
from tests.console.conftest import Application, Page, Scene
from tests.office import PASSWORD

ATTRIBUTES = "/dirws/console/system-attributes"
PAGES = ("/dirws/console", ATTRIBUTES)


@pytest.fixture
def admin(scene: Scene) -> Scene:
    """The scene with the administrator signed in."""
    assert scene.sign_in(scene.admin).status_code == 303
    return scene


def _set(scene: Scene, name: str, value: str) -> None:
    with scene.database.begin() as cx:
        system.put(cx, name, value, scene.clock(), free=True)


def _value(scene: Scene, name: str) -> str | None:
    with scene.database.read() as cx:
        return system.get(cx, name)


@pytest.mark.parametrize("address", PAGES)
def test_who_is_not_signed_in_is_led_to_the_sign_in_page(scene: Scene, address: str) -> None:
    answer = scene.browser.get(address)
    page = address.removeprefix("/dirws")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/dirws/login?RFA=&page={page}")
    assert "to Directory Administration" in scene.open(answer.headers["location"]).text


@pytest.mark.parametrize("address", PAGES)
def test_who_is_signed_in_elsewhere_is_no_administrator(scene: Scene, address: str) -> None:
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    assert scene.browser.get(address).status_code == 303


@pytest.mark.parametrize("address", PAGES)
def test_an_administrator_who_is_one_no_more_sees_nothing_more(admin: Scene, address: str) -> None:
    assert admin.browser.get(address).status_code == 200
    with admin.database.begin() as cx:
        memberships.remove_members(cx, entries.administrators(cx), [admin.admin])
    assert admin.browser.get(address).status_code == 303


def test_the_overview_lists_partitions_and_resources(admin: Scene) -> None:
    text = admin.open("/dirws/console").text
    for part in ("People Our people", "OAuthClients", "directory.admin", "TLS is required"):
        assert part in text
    for part in (f"My API {admin.resource.id} activated", f"Directory Administration {admin.administration.id}"):
        assert part in text


def test_the_overview_names_clients_that_may_do_what_is_advised_against(admin: Scene, web: Application) -> None:
    """RFC 9700 2.1.1, 2.4"""
    web.settings(pkce="none")
    rows = admin.open("/dirws/console").tree.xpath("//section[h2/@id = 'clients']//tbody/tr")
    shown = {row.findtext("th"): row.findtext("td") for row in rows}
    assert shown == {"web": "neither PKCE nor nonce, password grant", "app": "password grant"}
    web.settings(pkce="required", denied_grants=("password",))
    assert "web" not in admin.open("/dirws/console").tree.get_element_by_id("clients").getparent().text_content()
    app = Application(admin)
    app.settings(denied_grants=("password",), pkce="none")
    assert "advised against" not in admin.open("/dirws/console").text, "a public client always sends a challenge"


def test_every_form_of_every_page_is_bound_to_the_session(admin: Scene) -> None:
    _set(admin, "a", "1")
    for address in PAGES:
        forms = admin.open(address).forms()
        assert forms
        for form in forms:
            assert form.method == "POST"
            assert dict(form.form_values())["m_csrf"]


def test_the_schemas_of_the_forms_name_the_fields_that_the_pages_send(admin: Scene) -> None:
    """Every form is described by a schema of its address, and every field of a schema is in one of the forms."""
    _set(admin, "a", "1")
    addresses = {f"/dirws{each.path}": each for each in routes.table(admin.names).addresses}
    sent: dict[str, list[set[str]]] = {}
    described: dict[str, list[Mapping[str, Any]]] = {}
    visitor = admin.new_browser()
    signed_out = admin.open("/dirws/login?RFA=&page=/console", visitor)
    admin.sign_in(admin.user, resource_id=admin.resource.id, browser=visitor)
    signed_in = admin.open(f"/dirws/login?RFA={admin.resource.id}", visitor)
    for page in (signed_out, signed_in, *map(admin.open, PAGES)):
        for form in page.forms():
            path = form.action.removeprefix("https://muniment.test")
            schema = addresses[path].operations["POST"].body[FORM]
            assert isinstance(schema, Mapping)
            described[path] = [one for one in schema.get("anyOf", [schema]) if "grant_type" not in one["properties"]]
            sent.setdefault(path, []).append(set(form.xpath(".//@name")))
    assert {path: len(forms) for path, forms in sent.items()} == {"/dirws/login": 4, ATTRIBUTES: 2}
    for path, forms in sent.items():
        of_schema = [[form for form in forms if form >= set(schema["required"])] for schema in described[path]]
        assert sum(map(len, of_schema)) == len(forms)
        for schema, those in zip(described[path], of_schema, strict=True):
            assert set().union(*those) == set(schema["properties"])


def test_an_administrator_adds_changes_and_deletes_an_attribute(admin: Scene) -> None:
    asked = Page(admin.open(ATTRIBUTES).send(admin.browser, name="some.Attribute", value="one"))
    assert asked.status == 400
    assert "No part of this release reads" in asked.text
    assert _value(admin, "some.Attribute") is None
    answer = asked.send(admin.browser, free="yes")
    page = admin.open(answer.headers["location"])
    assert "The attribute was added." in page.text
    assert _value(admin, "some.Attribute") == "one"
    admin.open(ATTRIBUTES).send(admin.browser, 1, button="change", value="two")
    assert _value(admin, "some.Attribute") == "two"
    answer = admin.open(ATTRIBUTES).send(admin.browser, 1, button="delete")
    assert _value(admin, "some.Attribute") is None
    assert "The attribute is gone." in admin.open(answer.headers["location"]).text


def test_permitting_plain_http_holds_from_the_next_request_on(admin: Scene) -> None:
    plain = admin.new_browser("http://muniment.test")
    assert plain.get("/dirws/login").status_code == 403
    admin.open(ATTRIBUTES).send(admin.browser, name="directory.auth.EnforceSSL", value="false")
    assert plain.get("/dirws/login").status_code == 200
    assert "TLS is not required" in admin.open("/dirws/console").text
    assert "may travel unencrypted" in admin.open(ATTRIBUTES).text
    admin.open(ATTRIBUTES).send(admin.browser, 1, button="delete")
    assert plain.get("/dirws/login").status_code == 403


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("", "x", "name has 1 to 200"),
        ("n" * 201, "x", "name has 1 to 200"),
        ("ok", "v" * 4001, "at most 4000"),
        ("a\nb", "x", "printable"),
        ("Taken", "x", "is set already"),
        (" tAKEN ", "x", "is set already"),
        ("Directory.Auth.enforceSSL", "no", "is true or false"),
    ],
)
def test_what_cannot_be_added_is_said_beside_what_was_typed(admin: Scene, name: str, value: str, said: str) -> None:
    _set(admin, "taken", "1")
    page = Page(admin.open(ATTRIBUTES).send(admin.browser, name=name, value=value))
    assert page.status == 400
    assert said in page.text
    assert _value(admin, "taken") == "1"
    if "\n" not in name:
        assert page.forms()[-1].inputs["name"].value == (name or None) or page.forms()[-1].inputs["name"].value == name


@pytest.mark.parametrize("how", ["no mark", "another session", "another site", "not signed in"])
def test_a_forged_form_changes_nothing(admin: Scene, how: str) -> None:
    typed = {"name": "directory.auth.EnforceSSL", "value": "false"}
    browser, headers = admin.browser, {}
    page = admin.open(ATTRIBUTES)
    if how == "no mark":
        typed["m_csrf"] = ""
    elif how == "another session":
        other = admin.new_browser()
        admin.sign_in(admin.admin, browser=other)
        typed["m_csrf"] = str(dict(admin.open(ATTRIBUTES, other).forms()[0].form_values())["m_csrf"])
    elif how == "another site":
        headers["Sec-Fetch-Site"] = "cross-site"
    else:
        browser = admin.new_browser()
    answer = page.send(browser, headers=headers, typed=typed)
    assert answer.status_code == (303 if how == "not signed in" else 403)
    assert _value(admin, "directory.auth.EnforceSSL") is None


def test_a_form_that_says_nothing_to_do_is_refused_on_a_page(admin: Scene) -> None:
    answer = admin.browser.post(ATTRIBUTES, data={"action": "explode"})
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/html")


def test_values_are_shown_as_text_never_as_markup(admin: Scene) -> None:
    """failures B12."""
    _set(admin, "<b>bold", '"><script>alert(1)</script>')
    page = admin.open(ATTRIBUTES)
    assert "<script" not in page.response.text
    assert "<b>" not in page.response.text


def test_signing_out_from_the_console_ends_the_session(admin: Scene) -> None:
    answer = admin.open("/dirws/console").send(admin.browser, 0)
    assert answer.headers["location"] == "/dirws/login?RFA="
    assert admin.browser.get("/dirws/console").status_code == 303


def test_the_stylesheet_and_the_icon_are_ours_and_kept_by_the_browser(scene: Scene) -> None:
    page = scene.open()
    for link in page.tree.iter("link"):
        address = str(link.get("href"))
        assert address.startswith("/dirws/static/")
        answer = scene.browser.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert scene.browser.get("/dirws/static/frame.html").status_code == 404
    assert scene.browser.get("/dirws/static/..%2ftemplates%2fframe.html").status_code == 404


def test_a_method_that_a_page_does_not_know_is_answered_on_a_page(admin: Scene) -> None:
    answer = admin.browser.delete("/dirws/console")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert admin.browser.head("/dirws/console").status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


def refused(scene: Scene, monkeypatch: pytest.MonkeyPatch, why: str, **headers: str) -> httpx.Response:
    if why in {"bug", "overloaded"}:
        error = RuntimeError("secret detail") if why == "bug" else Overloaded("Too many people.", 7)

        def fail(_cx: Connection) -> None:
            raise error

        monkeypatch.setattr(resources, "administration", fail)
        return scene.browser.get("/dirws/login", headers=headers)
    if why == "plain http":
        return scene.new_browser("http://muniment.test").get("/dirws/console", headers=headers)
    method, address = {
        "no page": ("GET", "/dirws/console/users"),
        "nowhere": ("GET", "/dirws/nothing"),
        "method": ("DELETE", "/dirws/console"),
        "method at login": ("PUT", "/dirws/login"),
        "forged": ("POST", "/dirws/login"),
    }[why]
    data = {"m_csrf": "forged"} if why == "forged" else None
    return scene.browser.request(method, address, data=data, headers=headers)


REFUSED = {
    "no page": (404, "Page not found"),
    "nowhere": (404, "Page not found"),
    "method": (405, "This page cannot do that"),
    "method at login": (405, "This page cannot do that"),
    "forged": (403, "This is not allowed"),
    "plain http": (403, "This is not allowed"),
    "bug": (500, "Something went wrong"),
    "overloaded": (503, "The server is busy"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_refusal_is_a_page_with_a_way_on(scene: Scene, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    page = Page(refused(scene, monkeypatch, why))
    status, heading = REFUSED[why]
    assert (page.status, page.response.headers["cache-control"]) == (status, "no-store")
    assert [one.text_content() for one in page.tree.iter("h1")] == [heading]
    assert len(page.tree.xpath("//*[@role='alert']")) == 1
    links = {link.text_content(): link.get("href") for link in page.tree.find(".//main").iter("a")}
    assert links == {
        "Go to the sign-in page": "https://muniment.test/dirws/login",
        "Go to the front page": "https://muniment.test/",
    }
    assert "secret detail" not in page.text
    assert (page.response.headers["x-request-id"] in page.text) is (status >= 500)


@pytest.mark.parametrize(
    ("why", "keys"),
    [
        ("nowhere", {"status", "error", "errorDetails"}),
        ("method at login", {"error", "error_description"}),
    ],
)
@pytest.mark.parametrize("accepts", ["*/*", "application/json", "application/json, text/html;q=0.5"])
def test_a_refusal_keeps_its_shape_for_a_program(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, why: str, keys: set[str], accepts: str
) -> None:
    answer = refused(scene, monkeypatch, why, Accept=accepts)
    assert (answer.status_code, answer.json().keys()) == (REFUSED[why][0], keys)


FOR_EVERYBODY = {
    "/dirws/login",
    "/dirws/v1/authentication/oauth/tokeninfo",
    "/dirws/v1/authentication/tokeninfo",
    "/dirws/v1/authentication/oauth/{token}",
    "/dirws/rest/authentication/oauth/tokeninfo",
    "/dirws/rest/authentication/oauth/{token}",
    "/dirws/rest/openapi.json",
    "/dirws/oauth2/token",
    "/dirws/oauth2/introspect",
    "/dirws/oauth2/revoke",
    "/dirws/oauth2/userinfo",
    "/dirws/oauth2/jwks",
    "/dirws/oauth2/.well-known/openid-configuration",
    "/dirws/.well-known/openid-configuration",
    "/dirws/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration/dirws",
    "/.well-known/oauth-authorization-server/dirws",
    "/dirws/static/{name}",
    "/dirws/oauth2/auth",
    "/dirws/oauth2/authorize",
    "/dirws/oauth2/device",
    "/dirws/oauth2/device_authorization",
    "/dirws",
    "/dirws/{rest:path}",
}


BY_REST = {f"/dirws/{dialect}{row.path}" for row in addresses.ROWS for dialect in ("rest", "v1")}
"""tests/rights/test_directory_by_rest.py asks these."""


@pytest.mark.parametrize("who", ["nobody", "a user with a ticket", "a user with a token"])
def test_every_other_address_refuses_whoever_is_no_administrator(scene: Scene, who: str) -> None:
    """failures A21, failures A22: the list is the route table's, so an address added later is asked too."""
    guarded = [route.path for route in routes.routes(scene.directory) if route.path not in FOR_EVERYBODY | BY_REST]
    assert len(guarded) >= 2
    browser = scene.new_browser()
    if who == "a user with a ticket":
        assert scene.sign_in(scene.user, resource_id=scene.resource.id, browser=browser).status_code == 303
    if who == "a user with a token":
        form = {"grant_type": "password", "client_id": scene.client_id, "scope": "resource:My+API"}
        form |= {"username": scene.shown_id(scene.user), "password": PASSWORD}
        browser.headers["Authorization"] = f"Bearer {browser.post('/dirws/login', data=form).json()['access_token']}"
    form = {"action": "add", "name": "planted", "value": "1", "m_csrf": "x"}
    for path in guarded:
        assert "{" not in path, f"say here what {path} is to be asked with"
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            answer = browser.request(method, path, data=form if method in {"POST", "PUT", "PATCH"} else None)
            led_away = answer.status_code == 303 and answer.headers["location"].startswith("/dirws/login")
            assert led_away or answer.status_code in {401, 403, 405}, (method, path, answer.status_code)
    assert _value(scene, "planted") is None
