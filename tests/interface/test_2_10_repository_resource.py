"""given 2.10: the repository resource leads to the search."""

from typing import Any

from tests.scenes import Site

TEMPLATE = (
    "search{?collections,facet,include-total,inline,items-per-page,locations,object-type,page,q,sort,timezone,view}"
)


def read(site: Site) -> dict[str, Any]:
    answer = site.http.get(site.repository, headers=site.bearer() | {"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_2_10_links_is_an_array_of_rel_and_hreftemplate_or_href(site: Site) -> None:
    links = read(site)["links"]
    assert isinstance(links, list)
    for link in links:
        assert "rel" in link
        assert ("hreftemplate" in link) != ("href" in link)


def test_2_10_the_search_link_is_there_once(site: Site) -> None:
    relation = f"{site.names.linkrel_base}/search"
    assert [link["rel"] for link in read(site)["links"]].count(relation) == 1


def test_2_10_the_template_is_given_character_for_character(site: Site) -> None:
    relation = f"{site.names.linkrel_base}/search"
    (template,) = [link["hreftemplate"] for link in read(site)["links"] if link["rel"] == relation]
    assert template == f"{site.base}{site.repository}/{TEMPLATE}"


def test_2_10_the_template_leads_to_a_search(site: Site) -> None:
    relation = f"{site.names.linkrel_base}/search"
    (template,) = [link["hreftemplate"] for link in read(site)["links"] if link["rel"] == relation]
    address = template.partition("{")[0]
    assert site.http.get(address, params={"q": site.world.word()}, headers=site.bearer()).status_code == 200


def test_2_10_the_repository_is_named(site: Site) -> None:
    assert read(site)["name"] == site.world.repository
