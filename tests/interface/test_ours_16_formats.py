"""ours 16: names of formats, and the lists without members that clients of the field look up."""

from typing import Any

import pytest

from tests.scenes import Site


def ask(site: Site, path: str, accept: str = "application/json", /, **parameters: str) -> Any:
    headers = {"Accept": accept} | site.bearer()
    return site.http.get(f"{site.repository}/{path}", params=parameters, headers=headers)


def test_ours_16_formats_are_a_list_of_names_with_media_types(site: Site) -> None:
    page = ask(site, "formats", inline="true", filter="mime_type='application/pdf'", **{"include-total": "true"}).json()
    assert page["total"] == 1
    (entry,) = page["entries"]
    assert (entry["title"], entry["summary"]) == ("pdf", "application/pdf")
    assert entry["content"]["properties"] == {"name": "pdf", "mime_type": "application/pdf"}
    assert ask(site, "formats/pdf").json()["properties"] == entry["content"]["properties"]
    names = [entry["title"] for entry in ask(site, "formats").json()["entries"]]
    assert names == sorted(names)
    assert {"crtext", "pdf", "unknown"} <= set(names)


def test_ours_16_a_format_names_what_an_upload_takes_and_a_content_shows(site: Site) -> None:
    made = site.create("notes", b"some words")
    content = ask(site, f"objects/{made}/contents/content").json()["properties"]
    assert ask(site, f"formats/{content['format_name']}").status_code == 200


def test_ours_16_an_unknown_format_is_not_found(site: Site) -> None:
    refused = ask(site, "formats/nothing")
    assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_FORMAT")


@pytest.mark.parametrize(
    ("name", "title"),
    [("aspect-types", "Aspect types"), ("lifecycles", "Lifecycles")],
)
def test_ours_16_lists_without_members_are_feeds(site: Site, name: str, title: str) -> None:
    page = ask(site, name, **{"include-total": "true"}).json()
    assert (page["title"], page["total"], page["entries"]) == (title, 0, [])
    feed = ask(site, name, "application/atom+xml")
    assert feed.headers["Content-Type"].startswith("application/atom+xml")
    assert b"<entry" not in feed.content
    links = site.http.get(site.repository, headers=site.bearer() | {"Accept": "application/json"}).json()["links"]
    assert any(link["rel"].endswith(f"linkrel/{name}") and link["href"].endswith(f"/{name}") for link in links)


def test_ours_16_this_server_is_the_one_network_location(site: Site) -> None:
    page = ask(site, "network-locations", **{"include-total": "true", "inline": "true"}).json()
    (entry,) = page["entries"]
    assert (page["title"], page["total"], entry["title"]) == ("Network locations", 1, "local")
    shown = ask(site, "network-locations/local").json()
    assert entry["content"] == shown
    kind = f"{site.names.system_property_prefix}object_type"
    assert shown["properties"] == {
        "object_name": "local",
        kind: site.type("network_location_map"),
        "netloc_ident": "local",
        "netloc_display_name": "This server",
    }
    assert [link["href"] for link in entry["links"]] == [shown["links"][0]["href"]]
    filtered = ask(site, "network-locations", filter="netloc_ident='other'").json()
    assert filtered["entries"] == []
    refused = ask(site, "network-locations/other")
    assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_OBJECT")
    assert b"<network-location" in ask(site, "network-locations/local", "application/xml").content
    links = site.http.get(site.repository, headers=site.bearer() | {"Accept": "application/json"}).json()["links"]
    assert any(link["rel"].endswith("linkrel/network-locations") for link in links)


def test_ours_16_only_who_may_enter_reads_them(site: Site) -> None:
    for path in ("formats", "formats/pdf", "aspect-types"):
        assert site.http.get(f"{site.repository}/{path}").status_code == 401
