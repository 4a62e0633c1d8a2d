"""ours 1: which other sites' pages may read the repository's answers (CORS, the Fetch standard 3.3)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.scenes import Loop, Site

APP, OTHER = "https://app.example.org", "https://other.example.org"
ALLOWED = "Access-Control-Allow-Origin"

Sites = Callable[..., Site]


@pytest.fixture
def sites(site: Site, loop: Loop) -> Iterator[Sites]:
    """Make sites with settings of their own."""
    with ExitStack() as closing:

        def make(*overrides: str) -> Site:
            made = Site(site.world, site.kind, loop, *overrides)
            closing.callback(made.close)
            return made

        yield make


def preflight(site: Site, address: str, origin: str, method: str = "POST", **more: str) -> httpx.Response:
    headers = {"Origin": origin, "Access-Control-Request-Method": method, **more}
    return site.http.request("OPTIONS", address, headers=headers)


def of_cors(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control")}


def test_ours_1_without_a_setting_no_other_site_reads_anything(site: Site) -> None:
    answer = site.http.get(site.repository, headers=site.bearer() | {"Origin": APP})
    assert (answer.status_code, of_cors(answer)) == (200, {})
    assert "Origin" not in answer.headers["Vary"]
    asked = preflight(site, site.repository, APP)
    assert (asked.status_code, of_cors(asked)) == (204, {})


def test_ours_1_a_page_of_an_allowed_origin_reads_answers_and_their_headers(sites: Sites) -> None:
    served = sites(f"repository.cors_origins={APP},{OTHER}")
    for origin in (APP, OTHER):
        answer = served.http.get(f"{served.repository}?spaceship=1", headers=served.bearer() | {"Origin": origin})
        assert answer.status_code == 200
        assert of_cors(answer).keys() == {"access-control-allow-origin", "access-control-expose-headers"}
        assert answer.headers[ALLOWED] == origin
        exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
        assert {"ETag", "Location", "Muniment-Position", "Muniment-Ignored", "WWW-Authenticate"} <= set(exposed)
        assert f"{served.names.csrf_prefix}-Token" in exposed
        assert "Origin" in answer.headers["Vary"]
        assert "Accept" in answer.headers["Vary"]


@pytest.mark.parametrize(
    "origin", [OTHER, "null", "https://app.example.org.evil.example", f"{APP}:8443", f"{APP}/", ""]
)
def test_ours_1_a_page_of_another_origin_reads_nothing(sites: Sites, origin: str) -> None:
    served = sites(f"repository.cors_origins={APP}", "repository.cors_credentials=true")
    for answer in (
        served.http.get(served.repository, headers=served.bearer() | {"Origin": origin}),
        preflight(served, served.repository, origin),
    ):
        assert of_cors(answer) == {}
        assert "Origin" in answer.headers["Vary"], "a cache must not give this answer to the allowed origin"
    assert "Origin" in served.http.get(served.repository, headers=served.bearer()).headers["Vary"]
    twice = served.http.get(served.repository, headers=[("Origin", APP), ("Origin", origin)])
    assert of_cors(twice) == {}


def test_ours_1_a_preflight_names_the_methods_of_its_address(sites: Sites) -> None:
    served = sites(f"repository.cors_origins={APP}", "repository.cors_seconds=60")
    for path, methods in (("/objects/x", "DELETE, GET, HEAD, OPTIONS, POST"), ("/formats.json", "GET, HEAD, OPTIONS")):
        wanted = "authorization, content-type, muniment-position"
        answer = preflight(
            served, served.repository + path, APP, "DELETE", **{"Access-Control-Request-Headers": wanted}
        )
        assert (answer.status_code, answer.content) == (204, b"")
        assert of_cors(answer) == {
            "access-control-allow-origin": APP,
            "access-control-allow-methods": methods,
            "access-control-allow-headers": wanted,
            "access-control-max-age": "60",
        }


def test_ours_1_a_page_reads_refusals_too(sites: Sites) -> None:
    served = sites(f"repository.cors_origins={APP}")
    prefix = f"/{served.names.prefix}"
    for path, status in ((served.repository, 401), (f"{prefix}/nothing", 404), (f"{served.repository}?q=%zz", 400)):
        answer = served.http.get(path, headers={"Origin": APP})
        assert (answer.status_code, answer.headers[ALLOWED]) == (status, APP)
    in_plain = served.http.get(f"http://muniment.test{served.repository}", headers=served.bearer() | {"Origin": APP})
    assert (in_plain.status_code, in_plain.headers[ALLOWED]) == (403, APP)


def test_ours_1_with_credentials_the_allowed_origin_is_never_a_star(sites: Sites) -> None:
    served = sites(f"repository.cors_origins={APP}", "repository.cors_credentials=true")
    for answer in (
        served.http.get(served.repository, headers=served.bearer() | {"Origin": APP}),
        preflight(served, served.repository, APP),
    ):
        assert answer.headers[ALLOWED] == APP
        assert answer.headers["Access-Control-Allow-Credentials"] == "true"


def test_ours_1_a_star_lets_every_page_read_without_credentials(sites: Sites) -> None:
    served = sites("repository.cors_origins=*")
    answer = served.http.get(f"/{served.names.prefix}/services", headers={"Origin": OTHER})
    assert answer.headers[ALLOWED] == "*"
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_4_4_the_directorys_headers_stay_as_they_are(sites: Sites, site: Site) -> None:
    """given 4.4, whatever the repository's settings are."""
    served = sites(f"repository.cors_origins={APP}", "repository.cors_credentials=true")
    for method in ("DELETE", "OPTIONS"):
        tokens = [one.issue(one.world.reader)["access_token"] for one in (site, served)]
        plain, answer = (
            one.http.request(method, f"{one.oauth}/{token}", headers={"Origin": APP})
            for one, token in zip((site, served), tokens, strict=True)
        )
        assert (plain.status_code, answer.status_code) == (204, 204)
        assert of_cors(plain) == of_cors(answer)
        assert of_cors(answer)["access-control-allow-origin"] == "*"
        assert answer.headers.get("Vary") == plain.headers.get("Vary")
    assert of_cors(served.http.get("/", headers={"Origin": APP})) == {}
