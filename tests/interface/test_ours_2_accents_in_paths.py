"""ours 2: names in paths are compared in one Unicode form, however their accents are composed."""

import unicodedata

import pytest

from tests.interface.test_ours_2_shapes_of_old_clients import Desk
from tests.scenes import Site

NAMES = {
    "composed": "Répertoire",
    "decomposed": "Re\u0301pertoire",
    "in part": "Re\u0301pe\u0301rt\u00f3ire",
    "of two letters for one": "\u212bngstro\u0308m",
    "two marks in the other order": "Ti\u0323\u0302\u0301ng",
    "syllables": "\u1112\u1161\u11ab\uae00",
}


@pytest.mark.parametrize("name", list(NAMES.values()), ids=list(NAMES))
def test_ours_2_a_path_leads_to_its_object_in_any_composition(site: Site, name: str) -> None:
    desk, word, r = Desk(site), site.world.word(), site.names.system_property_prefix
    cabinet = desk.make("cabinets", object_name=f"{word} {name}")
    folder = desk.make(f"folders/{cabinet}/folders", object_name=name)
    paper = desk.make(f"folders/{folder}/documents", object_name=f"{word} {name}.txt")
    site.world.catch_up()
    folder_type = site.type("folder")
    for form in ("NFC", "NFD"):
        path = unicodedata.normalize(form, f"/{word} {name}/{name}")
        document = unicodedata.normalize(form, f"{path}/{word} {name}.txt")
        for asked, found in ((document, paper), (path, folder), (path.rpartition("/")[0], cabinet)):
            answer = desk.send("GET", "object-by-path", params={"path": asked})
            assert answer.status_code == 200, (form, answer.text)
            assert answer.json()["properties"][f"{r}object_id"] == found
        searched = desk.send("GET", "search", params={"q": word, "locations": path, "words": "all"})
        assert [entry["id"] for entry in searched.json().get("entries", [])] == [paper], (form, searched.text)
        for condition, kind in (
            (f"folder('{path}')", site.type("document")),
            (f"any {r}folder_path = '{path}'", folder_type),
            (f"{r}folder_path like '{path}%'", folder_type),
            (f"{r}folder_path like '/{word}%/{path.rpartition('/')[2]}'", folder_type),
        ):
            rows = desk.send("GET", "", params={"dql": f"select {r}object_id from {kind} where {condition}"})
            ids = [entry["content"]["properties"][f"{r}object_id"] for entry in rows.json()["entries"]]
            assert ids == [paper if "folder('" in condition else folder], (form, condition, rows.text)
    missing = desk.send("GET", "object-by-path", params={"path": f"/{word} {name}/{name}x"})
    assert missing.status_code == 404
