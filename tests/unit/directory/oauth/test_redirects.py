"""Where an answer may go: addresses that are equal as strings, and nothing that looks like them (failures A17)."""

import pytest

from muniment.directory.oauth import redirects

REGISTERED = "https://app.example/back?tenant=1"

LOOKING_ALIKE = (
    "https://app.example/back",
    "https://app.example/back?tenant=1&more=1",
    "https://app.example/back/?tenant=1",
    "https://app.example/back/../evil?tenant=1",
    "https://app.example/BACK?tenant=1",
    "https://APP.example/back?tenant=1",
    "HTTPS://app.example/back?tenant=1",
    "https://app.example/%62ack?tenant=1",
    "https://app.example/back%3Ftenant=1",
    "https://app.example:443/back?tenant=1",
    "https://app.example:8443/back?tenant=1",
    "https://app.example./back?tenant=1",
    "https://app-example/back?tenant=1",
    "https://evil.example/back?tenant=1",
    "https://app.example.evil.example/back?tenant=1",
    "https://evil.example/https://app.example/back?tenant=1",
    "https://user@app.example/back?tenant=1",
    "https://app.example@evil.example/back?tenant=1",
    "https://app.example\\@evil.example/back?tenant=1",
    "https:\\\\app.example\\back?tenant=1",
    "https:/app.example/back?tenant=1",
    "http://app.example/back?tenant=1",
    "//app.example/back?tenant=1",
    "/back?tenant=1",
    "https://app.example/back?tenant=1#",
    "https://app.example/back?tenant=1#fragment",
    " https://app.example/back?tenant=1",
    "https://app.example/back?tenant=1\n",
    "https://app.example/back?tenant=1\r\nSet-Cookie: a=b",
    "https://app.example/back?tenant=1\t",
    "https://аpp.example/back?tenant=1",
    "javascript:alert(1)//https://app.example/back?tenant=1",
    "",
)


@pytest.mark.parametrize("public", [False, True])
def test_an_address_is_registered_letter_for_letter(public: bool) -> None:
    assert redirects.is_registered(REGISTERED, ["https://other.example/", REGISTERED], public=public)
    assert [each for each in LOOKING_ALIKE if redirects.is_registered(each, [REGISTERED], public=public)] == []


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "myapp://back",
        "file:///etc/passwd",
        "https://app.example/#fragment",
        "https://user:word@app.example/",
        "https://app.example\\evil/",
        "https:app.example",
        "https://",
        "https://app.example;evil/",
        "https://app.example,evil/",
        "https://app.example 'unsafe-inline'/",
        "https://app.example/" + "a" * 4000,
    ],
)
def test_even_if_it_is_registered_nobody_is_led_to_what_is_no_place_to_lead_to(address: str) -> None:
    assert redirects.origin(address) is None
    assert not redirects.is_registered(address, [address], public=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_a_native_application_takes_any_port_of_the_loopback(host: str) -> None:
    """RFC 8252 7.3, and only there."""
    for registered in (f"http://{host}/back", f"http://{host}:5000/back"):
        for asked in (f"http://{host}/back", f"http://{host}:1/back", f"http://{host}:65535/back"):
            assert redirects.is_registered(asked, [registered], public=True)
            assert redirects.is_registered(asked, [registered], public=False) == (asked == registered)
        for other in (
            f"http://{host}:1/other",
            f"http://{host}:1/back/",
            f"http://{host}:1/back?more=1",
            f"http://{host}:/back",
            f"http://{host}:x/back",
            f"http://{host}:1:2/back",
            f"http://{host}:123456/back",
            f"https://{host}:1/back",
            f"http://user@{host}:1/back",
            f"http://{host}.evil.example:1/back",
            f"http://{host}:1@evil.example/back",
        ):
            assert not redirects.is_registered(other, [registered], public=True), other


def test_one_name_of_the_loopback_does_not_stand_for_another() -> None:
    for registered in ("http://127.0.0.1/back", "http://[::1]/back", "http://localhost/back"):
        for host in ("127.0.0.1", "[::1]", "localhost", "127.1", "127.0.0.2", "[0:0:0:0:0:0:0:1]", "LOCALHOST"):
            asked = f"http://{host}:1/back"
            assert redirects.is_registered(asked, [registered], public=True) == (f"//{host}/" in registered)


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("https://app.example/back?a=b", "https://app.example"),
        ("https://app.example", "https://app.example"),
        ("https://app.example:8443?a", "https://app.example:8443"),
        ("http://127.0.0.1:5000/back", "http://127.0.0.1:5000"),
        ("com.example.app:/back", "com.example.app:"),
        ("com.example.app://back", "com.example.app:"),
    ],
)
def test_a_page_names_the_place_and_nothing_more(address: str, place: str) -> None:
    assert redirects.origin(address) == place


def test_parameters_follow_those_that_an_address_has() -> None:
    assert redirects.extended("https://a.example/", [("state", "a b&c")]) == "https://a.example/?state=a+b%26c"
    assert redirects.extended("https://a.example/?t=1", [("code", "x")]) == "https://a.example/?t=1&code=x"
    assert redirects.extended("https://a.example/", [("state", "\r\nX: y")]) == "https://a.example/?state=%0D%0AX%3A+y"


def test_a_policy_cannot_spell_an_address_of_ipv6() -> None:
    assert redirects.form_source("https://app.example:8443") == "https://app.example:8443"
    assert redirects.form_source("http://127.0.0.1:5000") == "http://127.0.0.1:5000"
    assert redirects.form_source("com.example.app:") == "com.example.app:"
    assert redirects.form_source("http://[::1]:5000") == "http:"
    assert redirects.form_source("https://[2001:db8::1]") == "https:"
