"""ours 22: a statement in DQL selects rows, and writes nothing. The grammar is that of docs/dql.md."""

from typing import Any

import httpx
import lxml.etree
import pytest

from muniment.repository.api.dql import reader
from muniment.repository.search.answering.scope import locations
from tests.scenes import ATOM, Site

JSON = {"Accept": "application/json"}
NAMES = ["apple", "Banana", "Ärger", "cherry"]


class Shelves:
    """A cabinet with a folder and four documents, of which the reader may see three."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.word = site.world.word()
        self.cabinet = site.cabinet(f"cabinet {self.word}")
        site.share(self.cabinet)
        made = self._post(f"folders/{self.cabinet}/folders", {"object_name": "inner"})
        self.folder = made["r_object_id"]
        site.share(self.folder)
        self.ids = [self._make(name, at) for at, name in enumerate(NAMES)]
        for object_id in self.ids[:3]:
            site.share(object_id)

    def _post(self, path: str, properties: dict[str, Any]) -> dict[str, Any]:
        self.site.world.clock.advance(1)
        made = self.site.http.post(
            f"{self.site.repository}/{path}", json={"properties": properties}, headers=self.site.bearer()
        )
        assert made.status_code == 201, made.text
        values: dict[str, Any] = made.json()["properties"]
        return values

    def _make(self, name: str, at: int) -> str:
        folder = self.cabinet if at < 2 else self.folder
        given = {"object_name": name, "title": f"{self.word} {at}%", "keywords": [f"k{at}", "Common"]}
        if at:
            given["subject"] = f"{self.word}s"
        made: str = self._post(f"folders/{folder}/documents", given | {"acl_name": "private"})["r_object_id"]
        return made

    def ask(self, statement: str, *, person: Any = None, **parameters: str) -> httpx.Response:
        spelled = {name.replace("_", "-"): value for name, value in parameters.items()}
        return self.site.http.get(
            self.site.repository, params={"dql": statement, **spelled}, headers=self.site.bearer(person) | JSON
        )

    def rows(self, statement: str, *, person: Any = None, **parameters: str) -> list[dict[str, Any]]:
        answer = self.ask(statement, person=person, **parameters)
        assert answer.status_code == 200, (statement, answer.text)
        return [entry["content"]["properties"] for entry in answer.json()["entries"]]

    def names(self, condition: str, *, person: Any = None, type_name: str = "document") -> list[str]:
        """Names of the documents that meet a condition, among those of this cabinet."""
        statement = (
            f"select object_name from {self.site.type(type_name)} where title like '{self.word}%'"
            f"{' and (' + condition + ')' if condition else ''}"
        )
        return [row["object_name"] for row in self.rows(statement, person=person)]


@pytest.fixture(scope="module")
def shelves(site: Site) -> Shelves:
    return Shelves(site)


CONDITIONS = {
    "": NAMES,
    "object_name = 'APPLE'": ["apple"],
    "object_name <> 'apple' and object_name != 'cherry'": ["Banana", "Ärger"],
    "object_name like 'ban%' or upper(object_name) like '%RGER'": ["Banana", "Ärger"],
    "object_name like '_anana'": ["Banana"],
    "object_name like '_pple_'": [],
    "object_name not like 'a%'": ["Banana", "Ärger", "cherry"],
    "title like '%3\\%' escape '\\'": ["cherry"],
    "object_name in ('cherry', 'apple', 'none')": ["apple", "cherry"],
    "object_name not in ('cherry')": ["apple", "Banana", "Ärger"],
    "object_name between 'apple' and 'banana'": ["apple", "Banana"],
    "keywords between 'k1' and 'k2'": ["Banana", "Ärger"],
    "keywords between 'd' and 'j'": [],  # one value is above, another one below
    "keywords not between 'd' and 'j'": NAMES,
    "object_name like '" + ("\ufdfa" * 60 + "_") * 40 + "'": [],
    "any keywords = 'K1' or any keywords in ('k2')": ["Banana", "Ärger"],
    "subject is null": ["apple"],
    "subject is not null": ["Banana", "Ärger", "cherry"],
    "not (subject is nullstring)": ["Banana", "Ärger", "cherry"],
    "keywords is null": [],
    "r_full_content_size = 0 and r_full_content_size in (0, 1)": NAMES,
    "r_creation_date < date(tomorrow) and r_creation_date > date('01/31/2020', 'mm/dd/yyyy')": NAMES,
    "r_creation_date < date('2020-01-31')": [],
    "owner_name = user": NAMES,
    "acl_name = 'private'": ["cherry"],
}


def test_ours_22_a_condition_leaves_what_meets_it(shelves: Shelves) -> None:
    for condition, left in CONDITIONS.items():
        named = condition.replace("r_", shelves.site.names.system_property_prefix)
        assert sorted(shelves.names(named)) == sorted(left), condition


def test_ours_22_folders_are_named_by_path_and_by_id(shelves: Shelves) -> None:
    path = f"/cabinet {shelves.word}"
    expected = {
        f"folder('{path}')": NAMES[:2],
        f"folder('{path}/inner')": NAMES[2:],
        f"cabinet('{path}', descend)": NAMES,
        f"folder(id('{shelves.folder}'))": NAMES[2:],
        f"not folder('{path}')": NAMES[2:],
        f"folder('{path}') or folder('{path}/inner')": NAMES,
    }
    for condition, left in expected.items():
        assert sorted(shelves.names(condition)) == sorted(left), condition
    refused = shelves.ask(f"select * from {shelves.site.type('document')} where folder('/nowhere {shelves.word}')")
    assert (refused.status_code, refused.json()["code"]) == (400, "E_INVALID_ATTR_VALUE")


def test_ours_22_the_folders_of_a_statement_are_limited_together(
    shelves: Shelves, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locations, "MOST_FOLDERS", 3)
    every = f"folder('/cabinet {shelves.word}', descend)"
    assert sorted(shelves.names(every)) == sorted(NAMES)
    refused = shelves.ask(f"select * from {shelves.site.type('document')} where {every} or {every}")
    assert (refused.status_code, refused.json()["code"]) == (400, "E_BAD_QUERY")
    assert "more than 3 folders" in refused.json()["message"]


def test_ours_22_rows_show_the_columns_in_their_order(shelves: Shelves) -> None:
    prefix = shelves.site.names.system_property_prefix
    statement = (
        f"select d.{prefix}object_id, object_name as name, keywords, d.title heading "
        f"from {shelves.site.type('sysobject')} d where d.object_name = 'Banana' and title like '{shelves.word}%';"
    )
    answer = shelves.ask(statement)
    (entry,) = answer.json()["entries"]
    assert entry["content"]["name"] == "query-result"
    assert list(entry["content"]["properties"].items()) == [
        (f"{prefix}object_id", shelves.ids[1]),
        ("name", "Banana"),
        ("keywords", ["k1", "Common"]),
        ("heading", f"{shelves.word} 1%"),
    ]
    (link,) = entry["content"]["links"]
    assert shelves.site.http.get(link["href"], headers=shelves.site.bearer()).status_code == 200
    (bare,) = shelves.rows(statement.replace(f"d.{prefix}object_id, ", ""))
    assert list(bare) == ["name", "keywords", "heading"]


def test_ours_22_a_star_shows_every_property(shelves: Shelves) -> None:
    statement = (
        f"select * from {shelves.site.type('document')} where object_name = 'apple' and title like '{shelves.word}%'"
    )
    (row,) = shelves.rows(statement)
    shown = shelves.site.http.get(
        f"{shelves.site.repository}/documents/{shelves.ids[0]}", params={"view": ":all"}, headers=shelves.site.bearer()
    ).json()["properties"]
    assert row == shown


def test_ours_22_rows_are_ordered_and_next_goes_on(shelves: Shelves) -> None:
    statement = (
        f"select object_name from {shelves.site.type('document')} where title like '{shelves.word}%' "
        "order by object_name desc"
    )
    page = shelves.ask(statement, items_per_page="3", include_total="true").json()
    assert page["total"] == 4
    following = next(link["href"] for link in page["links"] if link["rel"] == "next")
    behind = shelves.site.http.get(following, headers=shelves.site.bearer() | JSON).json()
    rows = [entry["content"]["properties"]["object_name"] for entry in [*page["entries"], *behind["entries"]]]
    assert rows == sorted(NAMES, reverse=True)
    by_column = shelves.rows(statement.replace("object_name desc", "1 asc"))
    assert [row["object_name"] for row in by_column] == sorted(NAMES)


def test_ours_22_a_count_is_one_row(shelves: Shelves) -> None:
    kind, condition = shelves.site.type("document"), f"where title like '{shelves.word}%'"
    (row,) = shelves.rows(f"SELECT COUNT(*) FROM {kind} {condition}")
    assert row == {f"{shelves.site.names.type_prefix}attr_0001": 4}
    (named,) = shelves.rows(f"select count(*) as total from {kind} {condition}", person=shelves.site.world.reader)
    assert named == {"total": 3}


def test_ours_22_keywords_search_metadata_and_content(site: Site) -> None:
    shelves = Shelves(site)
    stored = site.http.post(
        f"{site.repository}/objects/{shelves.ids[3]}/contents",
        content=b"a walrus and a pump",
        headers=site.bearer() | {"Content-Type": "text/plain"},
    )
    assert stored.status_code == 201, stored.text
    site.world.catch_up()
    kind = site.type("document")
    for contains, left in {
        "'walrus'": ["cherry"],
        "'walrus pump'": ["cherry"],
        "'walrus' or 'banana'": ["Banana", "cherry"],
        f"'{shelves.word}' and not 'walrus'": ["apple", "Banana", "Ärger"],
        "'walrus' and 'banana'": [],
        "''": [],
    }.items():
        statement = (
            f"select object_name from {kind} search document contains {contains} where title like '{shelves.word}%'"
        )
        assert sorted(row["object_name"] for row in shelves.rows(statement)) == sorted(left), contains
    statement = f"select count(*) as n from {kind} search document contains 'walrus' where title like '{shelves.word}%'"
    assert shelves.rows(statement) == [{"n": 1}]
    assert shelves.rows(statement, person=site.world.reader) == [{"n": 0}]


def test_ours_22_nobody_learns_of_what_they_may_not_browse(shelves: Shelves) -> None:
    reader_person = shelves.site.world.reader
    assert sorted(shelves.names("", person=reader_person)) == sorted(NAMES[:3])
    assert shelves.names("object_name = 'cherry'", person=reader_person) == []
    hidden = shelves.names("acl_name = 'private' or subject is not null", person=reader_person)
    assert "cherry" not in hidden


def test_ours_22_users_and_groups_are_those_whom_the_repository_lets_in(shelves: Shelves) -> None:
    site = shelves.site
    writer = site.world.writer
    rows = shelves.rows(f"select user_name, user_login_name from {site.type('user')} where user_name = '{writer.id}'")
    assert rows == [{"user_name": writer.id, "user_login_name": writer.id.partition("@")[0]}]
    groups = shelves.rows(f"select * from {site.type('group')} where group_name like 'writers%' order by group_name")
    assert [row["group_name"] for row in groups] == ["writers@demo"]
    (count,) = shelves.rows(f"select count(*) as n from {site.type('user')} where user_name = user")
    assert count == {"n": 1}
    assert shelves.rows(f"select user_name from {site.type('user')} where user_name = '{site.world.outsider.id}'") == []


REFUSED = {
    "update dm_document objects set title = 'x'": "only SELECT",
    "delete dm_document objects": "only SELECT",
    "drop type x": "only SELECT",
    "selec * from document": "begins with SELECT",
    "select": "FROM",
    "select * from": "name of a type",
    "select *, title from document": "FROM",
    "select count(distinct) from document": "COUNT",
    "select max(title) from document": "no function",
    "select count(title) from document": "COUNT(*)",
    "select title from document, folder": "one type",
    "select title, title from document": "same name",
    "select title from document where": "name of a property",
    "select title from document where title": "comparison",
    "select title from document where title = ": "compared with",
    "select title from document where title = 'x": "no end",
    "select title from document where title = 'x')": "needs its end",
    "select title from document where title in (select title from document)": "within",
    "select title from document where (title = 'x'": "')'",
    "select title from document where title = title": "compared with",
    "select title from document where other.title = 'x'": "alias 'other'",
    "select title from document where title like 'a%b%c%d%e%f%g%h%i%j%k%l'": "'%' more than",
    "select title from document where r_creation_date = date('31.31.2020', 'dd.mm.yyyy')": "not a date",
    "select title from document group by title": "GROUP",
    "select title from document union select title from folder": "UNION",
    "select title from document order by 2": "no column",
    "select title from document order by title, title": "twice",
    "select title from document where folder('relative')": "begins with '/'",
    "select title from document search topic 'x'": "DOCUMENT",
    "select title from document where title = 'x' ; drop table objects": "no ';",
    "select title from document where title = 'x' -- more": "no '--",
    "select user_name from user where folder('/x')": "lie in folders",
    "select user_name from user search document contains 'x'": "neither content",
    "select title from document search document contains " + " or ".join(["'*a'"] * 32): "more than 1024 keywords",
    "select title from document search document contains " + " and not ".join(["'-*a b'"] * 32): "more than 1024",
    "select title from document where " + "(" * 21 + "title = 'x'" + ")" * 21: "deeper than",
    "select title from document where title in (" + ",".join(["'x'"] * 1002) + ")": "more than 1000",
    "select " + ",".join(f"title a{n}" for n in range(201)) + " from document": "more than 200",
    "select title from document where title = '" + "x" * reader.MAX_CHARACTERS + "'": "longer than",
}


def test_ours_22_whatever_else_is_refused_with_its_place(shelves: Shelves) -> None:
    site = shelves.site
    for statement, part in REFUSED.items():
        named = statement
        for kind in ("document", "folder", "user"):
            named = named.replace(f"from {kind}", f"from {site.type(kind)}")
        named = named.replace("r_creation", f"{site.names.system_property_prefix}creation")
        answer = shelves.ask(named)
        assert (answer.status_code, answer.json()["code"]) == (400, "E_BAD_QUERY"), (statement, answer.text)
        assert part.lower() in answer.json()["message"].lower(), (statement, answer.json()["message"])


def test_ours_22_unknown_names_and_wrong_values_are_refused(shelves: Shelves) -> None:
    kind = shelves.site.type("document")
    for statement, code in {
        "select title from no_such_type": "E_INVALID_TYPE_NAME",
        f"select no_such from {kind}": "E_INVALID_ATTR_NAME",
        f"select title from {kind} where no_such = 'x'": "E_INVALID_ATTR_NAME",
        f"select title from {kind} order by no_such": "E_INVALID_ATTR_NAME",
        f"select title from {kind} order by keywords": "E_BAD_SORT",
        f"select title from {kind} where r_full_content_size = 'many'": "E_INVALID_ATTR_VALUE",
        f"select title from {kind} where r_full_content_size like '1%'": "E_INVALID_ATTR_VALUE",
        f"select title from {kind} where title = 'a\ud800b'": "E_INVALID_ATTR_VALUE",
    }.items():
        if "\ud800" in statement:
            continue
        answer = shelves.ask(statement.replace("r_full", f"{shelves.site.names.system_property_prefix}full"))
        assert (answer.status_code, answer.json()["code"]) == (400, code), (statement, answer.text)


def test_ours_22_values_are_data(shelves: Shelves) -> None:
    for text in ("''", "x'' or ''1''=''1", "%", "_", "\\", "ﬀ", "🦭"):
        assert shelves.names(f"object_name = '{text}'") == [], text


def test_ours_22_in_xml_the_rows_are_elements(shelves: Shelves) -> None:
    site = shelves.site
    condition = f"object_name = 'apple' and title like '{shelves.word}%'"
    statement = f"select object_name, keywords from {site.type('document')} where {condition}"
    answer = site.http.get(
        site.repository, params={"dql": statement}, headers=site.bearer() | {"Accept": "application/atom+xml"}
    )
    feed = lxml.etree.fromstring(answer.content)
    (content,) = feed.iterfind(f"{ATOM}entry/{ATOM}content")
    (row,) = content
    assert row.tag == f"{site.vocab}query-result"
    assert [item.text for item in row.iterfind(f"{site.vocab}properties/{site.vocab}keywords/{site.vocab}item")] == [
        "k0",
        "Common",
    ]


def test_ours_22_the_repository_leads_to_its_statements(site: Site) -> None:
    resource = site.http.get(site.repository, headers=site.bearer() | JSON).json()
    templates = {link["rel"]: link.get("hreftemplate") for link in resource["links"]}
    assert templates[f"{site.names.linkrel_base}/dql"] == f"{site.base}{site.repository}{{?dql}}"
