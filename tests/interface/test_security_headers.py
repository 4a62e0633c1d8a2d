"""Every address of the route tables, asked in every way: no answer lacks the headers that keep a browser safe."""

import inspect
import re
from typing import Any

import httpx
import pytest

from tests.scenes import Site

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
POLICY = re.compile(r"default-src 'none'.*frame-ancestors 'none'|sandbox")


def addresses(site: Site) -> list[str]:
    """Every path the application knows, with something in its place holders."""
    application: Any = site.application
    table = inspect.getclosurevars(application._transport._app).nonlocals["witness"].app
    paths = {*table._endpoints_by_path, *(route.path for routes in table._open.values() for route in routes)}
    paths -= {path for path in paths if "/v1/" in path and path.replace("/v1/", "/rest/") in paths}
    filled = {
        "repository": site.world.repository,
        "name": "style.css",
        "page": "settings.md",
        "rest": "nothing",
        "token": "x" * 60,
    }
    return [re.sub(r"\{(\w+)(:\w+)?\}", lambda found: filled.get(found[1], "none"), path) for path in paths]


def faults(answer: httpx.Response, prefix: str) -> list[str]:
    """What the answer lacks, or says too much."""
    headers, path = answer.headers, answer.request.url.path
    policy, caches = headers.get("content-security-policy", ""), headers.get("cache-control", "")
    static = path.startswith(f"{prefix}/static/")
    # What clients find of an authorization server, and its public keys, are for every cache.
    found = ".well-known/" in path or path.endswith("/oauth2/jwks")
    sound = {
        "nosniff": headers.get("x-content-type-options") == "nosniff",
        "referrer policy": headers.get("referrer-policy") == "same-origin",
        "HSTS": "max-age=31536000" in headers.get("strict-transport-security", ""),
        "CSP": POLICY.search(policy) and not re.search("script-src|unsafe", policy),
        "no frames, also for browsers that read no CSP": headers.get("x-frame-options") == "DENY"
        or not headers.get("content-type", "").startswith("text/html"),
        "silence about what it runs on": not {"server", "x-powered-by"} & set(headers),
        "long life of static files": not (static and answer.status_code == 200) or "immutable" in caches,
        "short life of the directory's answers": static or found or not path.startswith(prefix) or "no-store" in caches,
        "privacy": static or found or "public" not in caches,
        "cookies for HTTPS, for no script": all(_guarded(cookie) for cookie in headers.get_list("set-cookie")),
        "no credentials for other sites": "access-control-allow-credentials" not in headers,
    }
    return [what for what, holds in sound.items() if not holds]


def _guarded(cookie: str) -> bool:
    words = {word.strip().lower() for word in cookie.split(";")[1:]}
    return {"secure", "httponly", "samesite=lax"} <= words and any(word.startswith("path=/") for word in words)


@pytest.mark.parametrize(
    ("signed_in", "accept"),
    [
        pytest.param(False, "text/html", id="stranger-pages"),
        pytest.param(True, "*/*", id="user-anything"),
        pytest.param(False, "*/*", id="stranger-anything", marks=pytest.mark.campaign),
        pytest.param(True, "text/html", id="user-pages", marks=pytest.mark.campaign),
    ],
)
def test_no_answer_lacks_a_header(site: Site, accept: str, signed_in: bool) -> None:
    bearer = site.bearer() if signed_in else {}
    seen: set[str] = set()
    for address in addresses(site):
        for method in METHODS:
            answer = site.http.request(method, address, headers={"Accept": accept, **bearer})
            assert answer.status_code < 500, (method, address)
            assert not (lacks := faults(answer, site.directory)), (method, address, answer.status_code, lacks)
            seen.add(answer.headers.get("content-type", "").partition(";")[0])
    assert {"text/html", "application/json", "text/css"} <= seen


def test_every_cookie_of_a_sign_in_is_for_https_and_for_no_script(site: Site) -> None:
    site.http.cookies.clear()
    answer = site.http.get(site.login, headers={"Accept": "text/html"})
    assert answer.headers.get_list("set-cookie")
    assert faults(answer, site.directory) == []


def test_over_plain_http_nothing_asks_for_https_alone_and_no_cookie_is_set(site: Site) -> None:
    for address in addresses(site):
        answer = site.http.get(f"http://muniment.test{address}", headers={"Accept": "text/html"})
        assert "strict-transport-security" not in answer.headers
        assert "set-cookie" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert POLICY.search(answer.headers["content-security-policy"])
        if address.startswith(site.directory):
            assert answer.status_code == 403
