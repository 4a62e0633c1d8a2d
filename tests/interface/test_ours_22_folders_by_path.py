"""ours 22: folders are found by their paths and by what lies above them; hidden ones are never told (docs/dql.md)."""

import pytest

from tests.interface.test_ours_22_dql_of_old_clients import Client
from tests.scenes import Site


class Tree:
    """A cabinet, in it the folders `2025` and `2026`, and a hidden folder with a shared folder `Deep` in it."""

    def __init__(self, site: Site) -> None:
        self.site, self.word = site, site.world.word()
        self.mine, self.reader = Client(site), Client(site, site.world.reader)
        self.cabinet = self.mine.post("cabinets", object_name=self.word)
        self.years = {year: self.folder(self.cabinet, year) for year in ("2025", "2026")}
        self.hidden = self.folder(self.cabinet, "Hidden", shared=False)
        self.deep = self.folder(self.hidden, "Deep")
        site.share(self.cabinet)

    def folder(self, inside: str, name: str, *, shared: bool = True) -> str:
        folder_id = self.mine.post(f"folders/{inside}/folders", object_name=name, acl_name="private")
        if shared:
            self.site.share(folder_id)
        return folder_id

    def names(self, condition: str, who: Client | None = None) -> list[str]:
        asked = f"select object_name from {self.mine.type}folder where {condition}"
        return [row["object_name"] for row in (who or self.mine).rows(asked)]


@pytest.fixture(scope="module")
def tree(site: Site) -> Tree:
    return Tree(site)


def test_ours_22_a_folder_is_found_by_its_path(tree: Tree) -> None:
    r, word = tree.mine.r, tree.word
    asked = f"select {r}object_id, {r}folder_path from {tree.mine.type}folder where any {r}folder_path = '/{word}/2026'"
    for hint in ("", " enable(return_top 1)"):
        assert tree.mine.rows(asked + hint) == [
            {f"{r}object_id": tree.years["2026"], f"{r}folder_path": [f"/{word}/2026"]}
        ]
    for condition, found in (
        (f"{r}folder_path = '/{word}/2026'", ["2026"]),
        (f"any {r}folder_path in ('/{word}/2025', '/{word}', '/nowhere')", [word, "2025"]),
        (f"any {r}folder_path like '/{word}/20%'", ["2025", "2026"]),
        (f"any {r}folder_path like '/{word}/202_' and object_name <> '2025'", ["2026"]),
        (f"{r}folder_path like '/{word[:4]}%/Hidden/%'", ["Deep"]),
        (f"any {r}folder_path = '/{word}/2027' or object_name = '{word}'", [word]),
        (
            f"any i_ancestor_id = '{tree.cabinet}' and not {r}folder_path = '/{word}/2025'",
            [word, "2026", "Hidden", "Deep"],
        ),
        (f"any i_ancestor_id in ('{tree.years['2025']}', '{tree.hidden.upper()}')", ["2025", "Hidden", "Deep"]),
        (f"i_ancestor_id = '{tree.deep}'", ["Deep"]),
        (f"{r}folder_path = ''", []),
        (f"{r}folder_path = '{word}'", []),
    ):
        assert tree.names(condition) == found, condition
    for condition in (f"{r}folder_path > '/'", f"{r}folder_path is null", "i_ancestor_id like '0%'"):
        assert tree.mine.refusal(f"select object_name from {tree.mine.type}folder where {condition}") == "E_BAD_QUERY"


def test_ours_22_a_folder_with_two_paths_is_found_by_either(tree: Tree) -> None:
    r, word, site = tree.mine.r, tree.word, tree.site
    inner = tree.folder(tree.years["2025"], "both")
    href = f"{site.base}{site.repository}/folders/{tree.years['2026']}"
    linked = site.http.post(
        f"{site.repository}/objects/{inner}/parent-links", json={"href": href}, headers=site.bearer()
    )
    assert linked.status_code == 201, linked.text
    for year in ("2025", "2026"):
        assert tree.names(f"any {r}folder_path = '/{word}/{year}/both'") == ["both"]
        assert tree.names(f"any {r}folder_path like '/{word}/{year}/b%'") == ["both"]
    assert site.http.delete(f"{site.repository}/folders/{inner}", headers=site.bearer()).status_code in (204, 409)


def test_ours_22_hidden_folders_are_neither_found_nor_told(tree: Tree) -> None:
    r, word = tree.mine.r, tree.word
    for condition in (
        f"any {r}folder_path = '/{word}/Hidden'",
        f"any {r}folder_path = '/{word}/Hidden/Deep'",
        f"any {r}folder_path like '/{word}/Hid%'",
        f"any {r}folder_path like '%/Deep' and {r}object_id = '{tree.deep}'",
        f"any i_ancestor_id = '{tree.hidden}'",
        f"any i_ancestor_id = '{tree.cabinet}' and object_name = 'Deep'",
    ):
        assert tree.names(condition) != [], condition
        assert tree.names(condition, tree.reader) == [], condition
    (row,) = tree.reader.rows(f"select {r}folder_path from {tree.mine.type}folder where {r}object_id = '{tree.deep}'")
    assert not row[f"{r}folder_path"]


def test_ours_22_the_root_is_a_place(tree: Tree) -> None:
    object_id = tree.mine.post(f"folders/{tree.years['2025']}/documents", object_name=f"{tree.word} paper")
    tree.mine.post("objects", object_name=f"{tree.word} loose")
    of_word = f"select object_name from {tree.mine.type}sysobject where object_name like '{tree.word}%' and"
    found = tree.mine.rows(f"{of_word} folder('/', descend)")
    assert found == [{"object_name": f"{tree.word} paper"}], object_id
    assert tree.mine.rows(f"{of_word} folder('/')") == [{"object_name": tree.word}]
    # Loose objects and cabinets lie in no folder, and what the caller may not browse is in no row.
    tree.site.share(object_id, "private")
    assert tree.reader.rows(f"{of_word} folder('/', descend)") == []


def test_ours_22_a_pattern_of_many_gaps_is_decided_at_once(site: Site) -> None:
    """All combinations of places for its gaps would take for ever."""
    tree = Tree(site)
    r = tree.mine.r
    long = tree.folder(tree.cabinet, "a" * 250)
    assert tree.names(f"{r}folder_path like '/{tree.word}/{'%a' * 9}%b'") == []
    assert tree.names(f"{r}folder_path like '/{tree.word}/{'%a' * 9}%' and {r}object_id = '{long}'") == ["a" * 250]
    assert tree.names(f"{r}folder_path like '/{tree.word}%2%_5'") == ["2025"]
