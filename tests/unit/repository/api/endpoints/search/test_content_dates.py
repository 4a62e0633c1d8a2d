"""The date that was found in a file is the content's date everywhere: in lists, DQL, searches and facets."""

from urllib.parse import urlencode

import pytest

from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import found_properties
from tests.unit.repository.api.endpoints.search.test_facets import got, posted, values
from tests.unit.repository.api.endpoints.search.test_index_status import REPOSITORY, titles
from tests.unit.repository.api.endpoints.search.test_search import HERE, Site, site

__all__ = ["site"]


@pytest.mark.slow
def test_lists_and_searches_agree_about_the_date_that_was_found_in_a_file(site: Site) -> None:
    shelf = site.shelf
    cabinet = shelf.create({"object_name": "c"}, type_name="cabinet")
    for name, given in (("uploaded", {}), ("imported", {"a_content_date": "2001-02-03"})):
        shelf.create({"object_name": name, **given}, folder_id=cabinet.id, content=shelf.content(name))
        shelf.catch_up()
        with shelf.database.begin() as cx:
            job = queue.take(cx, shelf.now)
            assert job is not None
            found_properties.keep_found_properties(cx, job, {"a_content_date": ["1999-12-31T23:59:59Z"]}, shelf.now)
            assert queue.finish(cx, job, name, shelf.now)
    shelf.catch_up()
    documents = f"{REPOSITORY}/folders/{cabinet.id}/documents"
    assert titles(got(site, f"{documents}?sort=a_content_date")) == ["uploaded", "imported"]
    filtered = urlencode({"filter": "a_content_date < date('2000-01-01')"})
    assert titles(got(site, f"{documents}?{filtered}")) == ["uploaded"]
    statement = "select object_name from document where a_content_date < date('2000-01-01')"
    (row,) = got(site, f"{REPOSITORY}?{urlencode({'dql': statement})}")["entries"]
    assert row["content"]["properties"]["object_name"] == "uploaded"
    assert titles(got(site, f"{HERE}?q=&object-type=document&sort=a_content_date")) == ["uploaded", "imported"]
    (facet,) = posted(site, {"id": "year", "attributes": ["a_content_date"], "group-by": "year"})["facets"]
    assert values(facet) == {"1999": 1, "2001": 1}
    assert shelf.report().sound
