"""ours 1: where a client begins, as clients of the field read it."""

import tomllib
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import httpx
import lxml.etree
import msgspec
import pytest

from muniment.repository.api import operations, routes
from muniment.repository.options import RepositoryNames
from tests.house.sources import ROOT
from tests.scenes import Loop, Site

STRANGER = {"Authorization": "Basic bm9ib2R5OndoYXRldmVy"}
"""Old clients send a name and a password with every request, also where nobody asks."""


def services(site: Site) -> str:
    return f"/{site.names.prefix}/services"


def read(site: Site, address: str, media_type: str = "application/json") -> httpx.Response:
    answer = site.http.get(address, headers=STRANGER | {"Accept": media_type})
    assert answer.status_code == 200, answer.text
    return answer


def resources(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = read(site, services(site), "application/home+json").json()["resources"]
    return found


def repository(site: Site, media_type: str = "application/json", address: str = "") -> httpx.Response:
    answer = site.http.get(address or site.repository, headers=site.bearer() | {"Accept": media_type})
    assert answer.status_code == 200, answer.text
    return answer


def test_ours_1_an_old_client_finds_its_repository_and_the_search(site: Site) -> None:
    """It looks relations up, compares the entries' titles, and cuts the template at its brace."""
    home, vendor = resources(site), f"{site.names.media_type}+json"
    about = read(site, home["about"]["href"], vendor).json()
    assert float(about["properties"]["major"]) >= 16.4
    listed = read(site, home[f"{site.names.linkrel_base}/repositories"]["href"], vendor).json()
    (entry,) = [entry for entry in listed["entries"] if entry["title"] == site.world.repository]
    (edit,) = [link["href"] for link in entry["links"] if link["rel"] == "edit"]
    assert entry["content"]["src"] == edit
    links = {link["rel"]: link for link in repository(site, vendor, edit).json()["links"]}
    search = links[f"{site.names.linkrel_base}/search"]["hreftemplate"].partition("{")[0]
    found = site.http.get(search, params={"q": "words", "inline": "false"}, headers=site.bearer() | {"Accept": vendor})
    assert found.status_code == 200
    assert found.headers["content-type"] == vendor


@pytest.mark.parametrize("media_type", ["application/home+json", "application/*+json", "*/*", ""])
def test_ours_1_the_home_document_lists_what_there_is_with_its_hints(site: Site, media_type: str) -> None:
    answer = read(site, services(site), media_type)
    assert answer.headers["content-type"] == "application/home+json"
    home = answer.json()["resources"]
    searching = home.pop(f"{site.names.linkrel_base}/search")
    assert searching["href"] == f"{site.base}/{site.names.prefix}/search"
    assert searching["hints"]["allow"] == ["GET", "POST"]
    assert home.keys() == {f"{site.names.linkrel_base}/repositories", "about"}
    for resource in home.values():
        assert resource["hints"]["allow"] == ["GET"]
        assert f"{site.names.media_type}+json" in resource["hints"]["representations"]
        for representation in resource["hints"]["representations"]:
            assert read(site, resource["href"], representation).headers["content-type"] == representation
    assert "application/atom+xml" in home[f"{site.names.linkrel_base}/repositories"]["hints"]["representations"]


def test_ours_1_the_home_document_in_xml_says_the_same(site: Site) -> None:
    answer = read(site, services(site), "application/home+xml")
    assert answer.headers["content-type"] == "application/home+xml"
    root, vocab = lxml.etree.fromstring(answer.content), site.vocab
    assert root.tag == f"{vocab}resources"
    found = {
        element.get("rel"): {
            "href": next(element.iter(f"{vocab}link")).get("href"),
            "hints": {
                hint: [item.text for item in element.findall(f"{vocab}hints/{vocab}{hint}/{vocab}i")]
                for hint in ("allow", "representations")
            },
        }
        for element in root.findall(f"{vocab}resource")
    }
    assert found == resources(site)


def test_ours_1_the_home_document_leads_to_every_address_that_needs_no_repository(site: Site) -> None:
    paths = {
        f"{site.base}/{site.names.prefix}{address.path}"
        for address in routes.table(site.names).addresses
        if "{" not in address.path and address.path != "/services"
    }
    assert {resource["href"] for resource in resources(site).values()} == paths


def test_ours_1_product_info_says_what_clients_compare_and_our_own_release(site: Site) -> None:
    address = resources(site)["about"]["href"]
    about = read(site, address).json()
    names = ("product", "product_version", "major", "minor", "build_number", "revision_number")
    assert tuple(about["properties"]) == names
    assert about["properties"]["major"] == site.names.major == "16.4"
    assert about["properties"]["product"] == about["name"] == site.names.product
    assert about["properties"]["product_version"] == about["properties"]["build_number"] != ""
    root = lxml.etree.fromstring(read(site, address, "application/xml").content)
    assert root.tag == f"{site.vocab}product-info"
    in_xml = {name: root.findtext(f"{site.vocab}properties/{site.vocab}{name}") for name in names}
    assert in_xml == about["properties"]


def test_ours_1_a_repository_names_its_server(site: Site) -> None:
    (server,) = repository(site).json()["servers"]
    host = urlsplit(site.base).hostname
    assert server == {
        "name": site.world.repository,
        "host": host,
        "version": read(site, resources(site)["about"]["href"]).json()["properties"]["product_version"],
        "docbroker": host,
    }
    root = lxml.etree.fromstring(repository(site, "application/xml").content)
    (element,) = root.findall(f"{site.vocab}server")
    assert {child.tag.removeprefix(site.vocab): child.text for child in element} == server


def test_ours_1_a_repository_links_each_address_it_offers_and_nothing_else(site: Site) -> None:
    below = [address.path.removeprefix(f"{operations.BELOW}/") for address in routes.table(site.names).addresses]
    offered = {path for path in below if "/" not in path and "{" not in path}
    assert {"search", "cabinets", "types", "acls", "objects"} <= offered
    links = repository(site).json()["links"]
    assert {link["rel"].rpartition("/")[2] for link in links} == {
        {"currentuser": "current-user"}.get(name, name) for name in offered | {"self", "dql"}
    }
    for link in links:
        template = link["rel"].endswith(("/search", "/dql", "/object-by-path"))
        address = link["hreftemplate" if template else "href"].partition("{")[0]
        assert ("hreftemplate" in link) == template
        assert site.http.request("OPTIONS", address).status_code == 204
    elements = lxml.etree.fromstring(repository(site, "application/xml").content).iter(f"{site.vocab}link")
    assert [dict(element.attrib) for element in elements] == links


def test_ours_1_links_false_leaves_the_links_out(site: Site) -> None:
    plain = repository(site).json()
    assert repository(site, address=f"{site.repository}?links=true").json() == plain
    del plain["links"]
    assert repository(site, address=f"{site.repository}?links=false").json() == plain
    assert site.http.get(f"{site.repository}?links=perhaps", headers=site.bearer()).status_code == 400


def test_ours_1_relations_of_our_own_have_a_base_of_their_own(site: Site, loop: Loop) -> None:
    own = "https://relations.example.org"
    bases = (f"repository.names.own_linkrel_base={own}", "repository.names.linkrel_base=urn:field")
    with closing(Site(site.world, site.kind, loop, *bases)) as renamed:
        relations = {link["rel"] for link in repository(renamed).json()["links"]}
        assert {f"{own}/objects", "urn:field/cabinets", "urn:field/acls", "urn:field/search"} <= relations
        document = renamed.http.get(
            f"{renamed.repository}/objects/{renamed.create('linked')}", headers=renamed.bearer()
        )
        relations = {link["rel"] for link in document.json()["links"]}
        assert {f"{own}/index-status", "urn:field/content-media", "urn:field/delete"} <= relations


def test_ours_1_hal_has_the_same_links_by_relation(site: Site) -> None:
    links = repository(site, "application/hal+json").json()["_links"]
    assert links.keys() == {link["rel"] for link in repository(site).json()["links"]}
    assert links[f"{site.names.linkrel_base}/search"]["templated"] is True
    listed = site.http.get(f"{site.repository}/types", headers=site.bearer() | {"Accept": "application/hal+json"})
    assert listed.headers["content-type"] == "application/hal+json"
    assert len(listed.json()["_embedded"]["entries"]) > 3
    assert all("edit" in entry["_links"] for entry in listed.json()["_embedded"]["entries"])


def test_every_name_of_the_repository_is_in_the_file_of_the_fields_names() -> None:
    """Whoever adds a name says what the field calls it; format names of the field are built in."""
    file = tomllib.loads((ROOT / "examples" / "names-of-the-field.toml").read_text("utf-8"))
    names = {field.name for field in msgspec.structs.fields(RepositoryNames)}
    assert names - file["repository"]["names"].keys() == {"formats"}
