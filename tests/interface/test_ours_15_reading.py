"""ours 15: the page of an object."""

import pytest

from muniment.repository.page import folders
from muniment.repository.store import repositories
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from tests.pages import SEARCH, Reader
from tests.scenes import Site


def members(reader: Reader) -> list[str]:
    """Give the names that a folder's page lists."""
    return [str(link.text_content()) for link in reader.root.xpath("//section[@aria-labelledby='contents']/ul/li/a")]


def filed(site: Site, folder_id: str, name: str, **more: str) -> str:
    """Make a document in a folder; give its id."""
    properties = {"object_name": name, **more}
    address = f"{site.repository}/folders/{folder_id}/documents"
    made = site.http.post(address, json={"properties": properties}, headers=site.bearer())
    return str(made.json()["properties"]["r_object_id"])


def test_the_page_of_a_folder_lists_what_the_caller_may_see_in_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_LISTED", 2)
    word = site.world.word()
    cabinet = site.cabinet(f"cabinet {word}")
    made = [filed(site, cabinet, f"{word} {number}", title=f"Title {number}") for number in range(3)]
    for shared in (cabinet, *made[1:]):
        site.share(shared)
    reader = Reader(site, site.world.reader).open(f"{SEARCH}/objects/{cabinet}")
    assert members(reader) == [f"{word} 1", f"{word} 2"]
    assert "Title 1" in reader.text
    assert "Next part" not in reader.text
    writer = Reader(site, site.world.writer).open(f"{SEARCH}/objects/{cabinet}")
    assert members(writer) == [f"{word} 0", f"{word} 1"]
    assert members(writer.follow("Next part")) == [f"{word} 2"]
    assert writer.follow(f"{word} 2").follow(f"in cabinet {word}").path.startswith(f"{SEARCH}/objects/{cabinet}")
    assert "There is no more here" in writer.open(f"{SEARCH}/objects/{cabinet}", part=3).text
    writer.open(f"{SEARCH}/objects/{cabinet}", part=999_999, status=400)
    empty = site.cabinet(f"empty {word}")
    assert "Nothing that you may see lies in this folder" in writer.open(f"{SEARCH}/objects/{empty}").text


def test_properties_have_names_that_people_read(site: Site) -> None:
    world, kind = site.world, f"t{site.world.word()}"
    own = (PropertyDefinition("due", "date", label="Due on"), PropertyDefinition("batch", "string"))
    with world.repository_db.begin() as cx:
        repository = repositories.find(cx, world.repository)
        type_editing.add_type(cx, repository.id, ObjectType(kind, "document", own), world.clock())
    document = site.create(f"{kind}.txt", b"x", r_object_type=kind, due="2026-11-21T00:00:00.000+00:00", batch="b7")
    reader = Reader(site, world.writer).open(f"{SEARCH}/objects/{document}")
    headings = [str(heading.text_content()) for heading in reader.root.iter("dt")]
    assert {"Name", "Version", "Latest version", "Due on", "batch"} <= {*headings}
    assert [heading for heading in headings if "_" in heading] == []
    assert "Checked out by" not in headings
