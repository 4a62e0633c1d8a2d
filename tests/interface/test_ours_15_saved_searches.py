"""ours 15: a saved search opens with its words, and is changed in its place."""

from tests.pages import SEARCH, Reader, parameters
from tests.scenes import Site, fulltext


def test_a_saved_search_opens_with_its_words_and_is_changed_in_its_place(site: Site) -> None:
    word = site.world.word()
    writer = Reader(site, site.world.writer).search(f"{word} pump", size="1-9999", sort="name")
    writer.send("Save", {"name": f"Kept {word}", "description": "for pumps", "public": "yes"})
    search_id = dict(parameters(writer.path))["edited"]
    writer.open(f"{SEARCH}/saved").follow(f"Kept {word}")
    assert writer.root.get_element_by_id("q").get("value") == f"{word} pump"
    assert dict(parameters(writer.path)) == {
        "in": site.world.repository,
        "q": f"{word} pump",
        "size": "1-9999",
        "sort": "name",
        "edited": search_id,
    }
    other = Reader(site, site.world.reader).search(None, saved=search_id)
    assert f"Saved search: Kept {word}" in other.text
    assert "Save the change" not in other.text
    writer.search(f"{word} valve", edited=search_id)
    assert writer.root.get_element_by_id("description").get("value") == "for pumps"
    writer.send("Save the change", {"name": f"Valves {word}"})
    assert "The saved search is changed" in writer.text
    assert dict(parameters(writer.path))["edited"] == search_id
    other.open(f"{SEARCH}/saved").follow(f"Valves {word}")
    assert dict(parameters(other.path))["q"] == f"{word} valve"
    writer.send("Save as a new search", {"name": f"Second {word}"})
    assert dict(parameters(writer.path))["edited"] != search_id
    # Nobody changes the saved search of somebody else.
    (mark,) = {field.get("value") for field in other.root.xpath("//input[@name='csrf']")}
    stolen = {"csrf": mark, "action": "change", "address": f"?q=x&edited={search_id}", "name": "mine"}
    assert other.http.post(f"{SEARCH}/saved", data=stolen).status_code == 403
    assert other.http.post(f"{SEARCH}/saved", data=stolen | {"address": "?q=x"}).status_code == 400


def test_typed_fields_and_signs_open_as_they_were_typed(site: Site) -> None:
    """They opened as a base without words, or in other words."""
    word = site.world.word()
    typed = [f"{word} -pump", f'!pump {word} -"red valve"', f"-(pump OR valve) {word}", f"type:document {word}"]
    typed += [f"name:{word} -format:pdf", f"{word} after:2020 -owner:nobody", f'colour:"dark red" {word}', f"{word} *"]
    for words in typed:
        writer = Reader(site, site.world.writer).search(words, size="1-9999", words="all")
        writer.send("Save", {"name": words, "public": "yes"})
        search_id = dict(parameters(writer.path))["edited"]
        for who in (site.world.writer, site.world.reader):
            reader = Reader(site, who).search(None, saved=search_id)
            asked = {"q": words, "size": "1-9999", "words": "all", "edited": search_id}
            assert dict(parameters(reader.path)) == asked
            assert reader.root.get_element_by_id("q").get("value") == words
    changed = {"query-document": site.aql(fulltext(word))}
    answer = site.http.post(f"{site.repository}/saved-searches/{search_id}", json=changed, headers=site.bearer())
    assert answer.status_code == 200, answer.text
    assert "q" not in dict(parameters(reader.search(None, saved=search_id).path))


def test_a_typed_folder_that_is_gone_does_not_become_words(site: Site) -> None:
    word = site.world.word()
    folder = site.http.post(
        f"{site.repository}/cabinets", json={"properties": {"object_name": word}}, headers=site.bearer()
    )
    assert folder.status_code == 201, folder.text
    writer = Reader(site, site.world.writer).search(f"pump in:/{word}")
    writer.send("Save", {"name": word})
    search_id = dict(parameters(writer.path))["edited"]
    address = f"{site.repository}/cabinets/{folder.json()['properties']['r_object_id']}"
    assert site.http.delete(address, headers=site.bearer()).status_code == 204
    answer = writer.http.get(SEARCH, params={"saved": search_id})
    assert answer.status_code == 400
    assert "There is no folder" in answer.text


def test_a_saved_search_that_the_page_cannot_ask_stays_a_base(site: Site) -> None:
    word = site.world.word()
    body = {
        "properties": {"object_name": f"Either {word}"},
        "query-document": site.aql(fulltext(word), fulltext("pump"), operator="OR"),
    }
    made = site.http.post(f"{site.repository}/saved-searches", json=body, headers=site.bearer())
    assert made.status_code == 201, made.text
    reader = Reader(site, site.world.writer).open(f"{SEARCH}/saved").follow(f"Either {word}")
    assert "saved" in dict(parameters(reader.path))
    assert f"Saved search: Either {word}" in reader.text


def test_what_is_typed_with_fields_and_signs_keeps_its_meaning_when_it_is_saved(site: Site) -> None:
    one, other = site.world.word(), site.world.word()
    kept = site.create(f"{one}.txt", f"{one} command not found".encode())
    site.create(f"{one}-2.txt", f"{one} {other}".encode())
    site.world.catch_up()
    for words in (f"{one} -{other}", f"name:{one} -{other}", f"{one} not found"):
        reader = Reader(site, site.world.writer).search(words, words="all")
        assert len(reader.titles) == 1, words
        reader.send("Save", {"name": f"{words} kept"})
        assert "The search is saved" in reader.text
        first, *others = reader.root.xpath("//section[@class='hits']//li/h3/a/@href")
        assert f"/objects/{kept}?" in first
        assert not others or "-" not in words
