"""ours 22: what clients of the field ask by DQL. The grammar is that of docs/dql.md."""

from typing import Any

import httpx
import pytest

from tests.scenes import Person, Site

JSON = {"Accept": "application/json"}


class Client:
    """A caller who asks by DQL, with the names of the site."""

    def __init__(self, site: Site, person: Person | None = None) -> None:
        self.site, self.person = site, person
        self.type, self.r = site.names.type_prefix, site.names.system_property_prefix

    def ask(self, statement: str, **parameters: str) -> httpx.Response:
        return self.site.http.get(
            self.site.repository, params={"dql": statement, **parameters}, headers=self.site.bearer(self.person) | JSON
        )

    def rows(self, statement: str, **parameters: str) -> list[dict[str, Any]]:
        answer = self.ask(statement, **parameters)
        assert answer.status_code == 200, (statement, answer.text)
        return [entry["content"]["properties"] for entry in answer.json()["entries"]]

    def refusal(self, statement: str) -> str:
        answer = self.ask(statement)
        assert answer.status_code == 400, (statement, answer.text)
        return f"{answer.json()['code']}"

    def post(self, path: str, **properties: Any) -> str:
        made = self.site.http.post(
            f"{self.site.repository}/{path}", json={"properties": properties}, headers=self.site.bearer(self.person)
        )
        assert made.status_code == 201, made.text
        return f"{made.json()['properties'][f'{self.r}object_id']}"


@pytest.fixture
def client(site: Site) -> Client:
    return Client(site)


def test_ours_22_formats_types_and_relations_are_tables(client: Client) -> None:
    prefix = client.type
    (text,) = client.rows(
        f"select name,description from {prefix}format where mime_type = 'TEXT/plain' and name like 'cr%'"
    )
    assert text["name"] == "crtext"
    assert text["description"]
    (row,) = client.rows(
        f"select name, super_name as parent, attr_name from {prefix}type where name = '{prefix}folder'"
    )
    assert (row["name"], row["parent"]) == (f"{prefix}folder", f"{prefix}sysobject")
    assert {"object_name", f"{client.r}object_id", f"{client.r}folder_path"} <= set(row["attr_name"])
    below = client.rows(f"select name from {prefix}type where super_name = '{prefix}folder' order by name desc")
    assert below == [{"name": f"{prefix}cabinet"}]
    (count,) = client.rows(f"select count(*) as n from {prefix}relation_type where relation_name like '%peer'")
    assert count == {"n": 1}
    client.post("objects", object_name="x")
    acls = client.rows(f"select * from {prefix}acl where object_name = 'public'")
    assert [list(each) for each in acls] == [
        [f"{client.r}object_id", "object_name", "owner_name", "acl_domain", "description", f"{client.r}modify_date"]
    ]
    assert client.refusal(f"select name from {prefix}format where folder('/x')") == "E_BAD_QUERY"
    assert client.refusal(f"select colour from {prefix}format") == "E_INVALID_ATTR_NAME"
    assert client.refusal(f"select name from {prefix}type where colour = 'x'") == "E_INVALID_ATTR_NAME"
    answer = client.ask(f"select name from {prefix}type where name = '{prefix}document'").json()
    links = answer["entries"][0]["content"]["links"]
    assert links[0]["href"].endswith(f"/types/{prefix}document")


def test_ours_22_only_relations_of_visible_objects_are_rows(site: Site, client: Client) -> None:
    word, prefix = site.world.word(), client.type
    ends = [client.post("objects", object_name=word) for _ in range(2)]
    site.share(ends[0])
    types = [each["name"] for each in client.rows(f"select name from {prefix}relation_type") if "peer" in each["name"]]
    relation = client.post("relations", relation_name=types[0], parent_id=ends[0], child_id=ends[1])
    asked = f"select {client.r}object_id, child_id from {prefix}relation where parent_id = '{ends[0]}'"
    assert client.rows(asked) == [{f"{client.r}object_id": relation, "child_id": ends[1]}]
    assert Client(site, site.world.reader).rows(asked) == []
    site.share(ends[1])
    assert len(Client(site, site.world.reader).rows(asked)) == 1


def test_ours_22_distinct_shows_equal_rows_once(site: Site, client: Client) -> None:
    word, sysobject = site.world.word(), f"{client.type}sysobject"
    for at in range(6):
        client.post(
            "objects",
            object_name=f"{word} {at}",
            title=f"{word}{at % 2}",
            keywords=["k", f"{at // 4}"],
            **({"subject": "s"} if at > 3 else {}),
        )
    of_word = f"from {sysobject} where object_name like '{word}%'"
    assert [row["title"] for row in client.rows(f"select distinct title {of_word}")] == [f"{word}0", f"{word}1"]
    assert [row["title"] for row in client.rows(f"SELECT DISTINCT title {of_word} ORDER BY title DESC")] == [
        f"{word}1",
        f"{word}0",
    ]
    assert [row["subject"] for row in client.rows(f"select distinct subject {of_word}")] == ["", "s"]
    assert [row["keywords"] for row in client.rows(f"select distinct keywords {of_word}")] == [["k", "0"], ["k", "1"]]
    assert len(client.rows(f"select distinct title, keywords {of_word}")) == 4
    assert len(client.rows(f"select distinct {client.r}object_id, title {of_word}")) == 6
    assert len(client.rows(f"select all title {of_word}")) == 6
    assert client.rows(f"select distinct owner_name, {client.r}object_type, acl_name, i_folder_id {of_word}") == [
        {
            "owner_name": site.world.writer.id,
            f"{client.r}object_type": sysobject,
            "acl_name": "private",
            "i_folder_id": [],
        }
    ]
    assert client.rows(f"select count(distinct title) as n {of_word}") == [{"n": 2}]
    first = client.ask(f"select distinct title {of_word}", **{"items-per-page": "1", "include-total": "true"}).json()
    assert first["total"] == 2
    following = next(link["href"] for link in first["links"] if link["rel"] == "next")
    second = site.http.get(following, headers=site.bearer() | JSON).json()
    assert [entry["content"]["properties"] for entry in second["entries"]] == [{"title": f"{word}1"}]
    # Rows that the caller may not see count for nothing.
    assert Client(site, site.world.reader).rows(f"select distinct title {of_word}") == []
    assert client.rows(f"select distinct mime_type from {client.type}format where mime_type = 'text/plain'") == [
        {"mime_type": "text/plain"}
    ]


def test_ours_22_dates_have_the_forms_of_the_field(site: Site, client: Client) -> None:
    word = site.world.word()
    client.post("objects", object_name=word, a_content_date="2026-01-02T03:04:05Z")
    for date in (
        "DATE('2026/01/02 03:04:05','yyyy/mm/dd hh:mi:ss')",
        "date('2026/01/02 03:04:05')",
        "date('01/02/2026 03:04:05')",
        "DATE('2026/01/02 03:04:05', 'YYYY/MM/DD HH24:MI:SS')",
        "date('02-jan-2026 03:04:05', 'dd-mon-yyyy hh:mi:ss')",
        "date('2026-01-02T03:04:05Z')",
    ):
        found = client.rows(
            f"select object_name from {client.type}sysobject where object_name = '{word}' and a_content_date = {date}"
        )
        assert found == [{"object_name": word}], date
    for date in ("date('02-abc-2026', 'dd-mon-yyyy')", "date('2026/13/01')", "date('1/2/26')", "date('x', 'hh')"):
        asked = f"select object_name from {client.type}sysobject where a_content_date = {date}"
        assert client.refusal(asked) == "E_BAD_QUERY", date


def test_ours_22_like_is_for_every_text(site: Site, client: Client) -> None:
    word, r = site.world.word(), client.r
    mine = {"accessor": f"{client.type}owner", "basic-permission": "Delete"}
    made = site.http.post(
        f"{site.repository}/acls", json={"name": f"{word}_Papers", "permitted": [mine]}, headers=site.bearer()
    )
    assert made.status_code == 201, made.text
    object_id = client.post("objects", object_name=word, acl_name=f"{word}_Papers")
    asked = f"select {r}object_id from {client.type}sysobject where object_name = '{word}' and "
    own = [{f"{r}object_id": object_id}]
    for condition, found in (
        (f"acl_name like '{word}%'", own),
        ("acl_name like '%PAPERS'", own),
        (f"acl_name like '%@demo/{word}%'", own),
        ("acl_name like 'private%'", []),
        (f"acl_name not like '{word}%'", []),
        (f"{r}object_id like '{object_id[:12]}%'", own),
        (f"{r}object_type like '%OBJECT'", own),
        (f"{r}version_label like 'CURR%'", own),
        (f"owner_name like '{site.world.writer.name}%'", own),
    ):
        assert client.rows(asked + condition) == found, condition
    assert client.refusal(f"select object_name from {client.type}sysobject where {r}creation_date like '2%'")
    acls = client.rows(f"select object_name from {client.type}acl where object_name like '{word}%'")
    assert acls == [{"object_name": f"{word}_Papers"}]
    # An ACL that the caller may not see is not found by its name.
    site.share(object_id)
    reader = Client(site, site.world.reader)
    assert reader.rows(asked + f"acl_name like '{word}%'") == []
    assert client.rows(asked + f"acl_name like '{word}%'") == []
