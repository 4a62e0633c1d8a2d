"""ours 1: every address of the table in every media type it lists, with either suffix, and with OPTIONS.

The rows come from the table that serves the addresses: a new one is asked like all others.
"""

import json
from collections.abc import Iterator, Mapping

import lxml.etree
import pytest

from muniment.repository.api import operations, routes
from muniment.repository.api.context import RepositoryContext
from muniment.repository.options import RepositoryNames
from muniment.repository.store import repositories
from muniment.repository.store.objects import objects
from muniment.repository.store.permissions.principals import Principals
from muniment.web.addresses import SUFFIXES, Address, AddressTable
from tests.interface.test_bad_input import is_repository
from tests.scenes import Site

NEUTRAL = routes.table(RepositoryNames())
PATHS = [address.path for address in NEUTRAL.addresses]
READ = [
    address.path
    for address in NEUTRAL.addresses
    if "GET" in address.operations and not address.path.endswith("/index-report")
]
"""What a writer may read: the report of an index is for administrators (test_ours_1_matrix)."""

SUFFIXED = [address.path for address in NEUTRAL.addresses if NEUTRAL.takes_suffix(address)]
WRITTEN = [
    (method, address.path)
    for address in NEUTRAL.addresses
    for method, operation in address.operations.items()
    if operation.body and not address.path.endswith(("/contents", "/contents/content", "/versions"))
]
"""Every method that reads a document; an object's content is any bytes, and so may be what is checked in."""


class Things:
    """One thing of each kind on a site, and the addresses that they have there."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.table: AddressTable[RepositoryContext] = routes.table(site.names)
        cabinet = site.cabinet("with everything")
        self._made("cabinets", site.world.writer.name)
        folder = self._made(f"folders/{cabinet}/folders", "a folder")
        document = self._made(f"folders/{folder}/documents", "a document")
        kept = site.http.post(
            f"{site.repository}/objects/{document}/contents",
            content=b"some words",
            headers=site.bearer() | {"Content-Type": "text/plain"},
        )
        assert kept.status_code == 201, kept.text
        self._ids = {"cabinets": cabinet, "folders": folder, "documents": document, "objects": document}
        for _ in range(2):
            self._made(f"folders/{folder}/documents", "twin")
        self._ids["wastebasket"] = self._made("objects", "deleted")
        with site.world.repository_db.begin() as cx:
            repository = repositories.find(cx, site.world.repository)
            administrator = Principals("admin@directory.admin", administrator=True)
            gone, now = self._ids["wastebasket"], site.world.clock()
            objects.delete(cx, repository, administrator, gone, now, keep_days=30)
        self._search = self._saved("saved-searches", "query-document")
        self._template = self._saved("search-templates", "query-document-template")
        ends = {"relation_name": f"{site.names.type_prefix}peer", "parent_id": document, "child_id": folder}
        self._ids["relations"] = self._posted("relations", ends)
        self._ids["comments"] = self._posted(f"objects/{document}/comments", {"content": "a comment"})
        stored = site.http.put(f"{site.repository}/saved-searches/{self._search}/results", headers=site.bearer())
        assert stored.status_code == 200, stored.text

    def _made(self, path: str, name: str) -> str:
        made = self.site.http.post(
            f"{self.site.repository}/{path}", json={"properties": {"object_name": name}}, headers=self.site.bearer()
        )
        assert made.status_code == 201, made.text
        object_id: str = made.json()["properties"]["r_object_id"]
        return object_id

    def _posted(self, path: str, properties: Mapping[str, str]) -> str:
        made = self.site.http.post(
            f"{self.site.repository}/{path}", json={"properties": properties}, headers=self.site.bearer()
        )
        assert made.status_code == 201, made.text
        made_id: str = made.json()["properties"][f"{self.site.names.system_property_prefix}object_id"]
        return made_id

    def _saved(self, path: str, document: str) -> str:
        fulltext = {"expression-type": "fulltext", "value": "words", "template": True}
        made = self.site.http.post(
            f"{self.site.repository}/{path}",
            json={"properties": {"object_name": "words"}, document: {"expression-set": {"expressions": [fulltext]}}},
            headers=self.site.bearer(),
        )
        assert made.status_code == 201, made.text
        made_id: str = made.json()["properties"]["r_object_id"]
        return made_id

    def address(self, path: str) -> Address[RepositoryContext]:
        """Find an address of the site's own table."""
        return next(address for address in self.table.addresses if address.path == path)

    def url(self, path: str, suffix: str = "") -> str:
        """Fill in the open parts of a path, and say in the query what the address cannot do without."""
        kind = path.removeprefix(operations.BELOW).split("/")[1] if "{id}" in path else ""
        parts = {"repository": self.site.world.repository, "id": self._ids.get(kind, ""), "acl": "public"}
        in_group = "/groups/{person}/" in path
        parts["person"] = self.site.world.writer.id if "/users/{person}" in path else "everyone@demo"
        if in_group:
            parts["person"] = "writers@demo" if "/users" in path else "everyone@demo"
        parts["member"] = self.site.world.writer.id if "/users/" in path else "writers@demo"
        parts |= {"search": self._search, "template": self._template, "format": "pdf", "location": "local"}
        parts["relation_type"] = f"{self.site.names.type_prefix}peer"
        parts["other"] = self._ids["folders" if kind == "objects" else "objects"]
        query = f"?object={self._ids['documents']}" if path.endswith("/explanation") else ""
        query = "?path=/with everything/a folder/twin" if path.endswith("/object-by-path") else query
        query = f"?object-id={self._ids['documents']}" if path.endswith("/archived-contents") else query
        return f"/{self.site.names.prefix}{path.format(**parts, name=self.site.type('document'))}{suffix}{query}"

    def media_types(self, path: str) -> Mapping[str, object]:
        """List what the table says of the answer to a GET."""
        return self.address(path).operations["GET"].answers[0].content


@pytest.fixture(scope="module")
def things(site: Site) -> Things:
    return Things(site)


def test_the_table_has_the_addresses_that_are_asked() -> None:
    assert len(READ) > 15
    assert len(WRITTEN) > 8
    assert set(PATHS) - set(SUFFIXED) == {
        f"{operations.BELOW}/objects/{{id}}/content-media",
        f"{operations.BELOW}/archived-contents",
    }


@pytest.mark.parametrize("path", READ)
def test_ours_1_each_media_type_that_an_address_lists_is_answered(site: Site, things: Things, path: str) -> None:
    listed = things.media_types(path)
    assert "*/*" in listed or {"application/json", "application/xml", f"{site.names.media_type}+xml"} <= listed.keys()
    for media_type in listed:
        answer = site.http.get(things.url(path), headers=site.bearer() | {"Accept": media_type})
        assert answer.status_code == 200, (media_type, answer.text)
        if media_type != "*/*":
            assert answer.headers["content-type"] == media_type
            (json.loads if media_type.endswith("json") else lxml.etree.fromstring)(answer.content)
        liked = f"image/png, {media_type};q=0.5;charset=UTF-8, */*;q=0.1"
        chosen = site.http.get(things.url(path), headers=site.bearer() | {"Accept": liked}).headers["content-type"]
        assert media_type in {"*/*", chosen}


@pytest.mark.parametrize("path", READ)
def test_ours_1_without_accept_json_is_answered(site: Site, things: Things, path: str) -> None:
    request = site.http.build_request("GET", things.url(path), headers=site.bearer())
    del request.headers["Accept"]
    answer = site.http.send(request)
    expected = {
        "/services": "application/home+json",
        "/content-media": "text/plain",
        "/archived-contents": "application/zip",
    }
    last = f"/{path.rpartition('/')[2]}"
    assert answer.headers["content-type"] == expected.get(last, f"{site.names.media_type}+json")


@pytest.mark.parametrize("path", READ)
def test_ours_1_an_accept_that_cannot_be_met_is_406_with_the_error_document(
    site: Site, things: Things, path: str
) -> None:
    answer = site.http.get(things.url(path), headers=site.bearer() | {"Accept": "image/png, application/*;q=0"})
    if path.endswith(("/content-media", "/archived-contents")):
        assert answer.status_code == 200
    else:
        assert answer.status_code == 406
        is_repository(answer, site)
        assert answer.json()["code"] == "E_NOT_ACCEPTABLE"


@pytest.mark.parametrize(("method", "path"), WRITTEN)
def test_ours_1_a_body_of_another_media_type_is_415_with_the_error_document(
    site: Site, things: Things, method: str, path: str
) -> None:
    for kind in ("image/png", "application/problem+json", ""):
        headers = site.bearer() | ({"Content-Type": kind} if kind else {})
        answer = site.http.request(method, things.url(path), content=b"{}", headers=headers)
        if kind == "application/problem+json" and "*/*" in things.address(path).operations[method].body:
            continue
        assert answer.status_code == 415, (kind, answer.text)
        assert "application/json" in is_repository(answer, site) or path.endswith("/search")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("path", sorted(set(READ) & set(SUFFIXED)))
def test_ours_1_a_suffix_chooses_the_media_type_whatever_accept_says(
    site: Site, things: Things, path: str, suffix: str
) -> None:
    other = "application/xml" if suffix == "json" else "application/json"
    headers = site.bearer() | {"Accept": other}
    answer = site.http.get(things.url(path, f".{suffix}"), headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == next(kind for kind in things.media_types(path) if kind.endswith(suffix))
    (json.loads if suffix == "json" else lxml.etree.fromstring)(answer.content)
    assert site.http.get(things.url(path, ".txt"), headers=headers).status_code == 404
    assert site.http.get(things.url(path, f".{suffix}.txt"), headers=headers).status_code == 404


def test_ours_1_a_suffix_of_what_is_not_there_writes_the_refusal(site: Site) -> None:
    for path in ("/objects/0900000000000000", "/types/nothing", "/acls/nothing"):
        answer = site.http.get(f"{site.repository}{path}.xml", headers=site.bearer() | {"Accept": "application/json"})
        assert (answer.status_code, answer.headers["content-type"]) == (404, f"{site.names.media_type}+xml")


def test_ours_1_content_has_no_suffix(site: Site, things: Things) -> None:
    media = things.url(f"{operations.BELOW}/objects/{{id}}/content-media")
    assert site.http.get(media, headers=site.bearer()).content == b"some words"
    assert site.http.get(f"{media}.json", headers=site.bearer()).status_code == 404


def test_ours_1_a_thing_is_changed_and_removed_by_its_address_with_a_suffix(site: Site) -> None:
    address = f"{site.repository}/objects/{site.create('to be changed')}.xml"
    changed = site.http.post(address, json={"properties": {"title": "new"}}, headers=site.bearer())
    assert (changed.status_code, changed.headers["content-type"]) == (200, f"{site.names.media_type}+xml")
    assert site.http.delete(address, headers=site.bearer()).status_code == 204
    assert site.http.get(address, headers=site.bearer()).status_code == 404


@pytest.fixture
def dotted(site: Site) -> Iterator[str]:
    """A repository whose name is that of the world's one with ``.json`` after it."""
    name = f"{site.world.repository}.json"
    with site.world.repository_db.begin() as cx:
        made = repositories.add(cx, name, site.world.resource_id, "With a dot.", site.world.clock())
    yield name
    with site.world.repository_db.begin() as cx:
        repositories.remove(cx, made)


def test_ours_1_a_repository_whose_whole_name_ends_so_is_found_first(site: Site, dotted: str) -> None:
    plain, named = site.repository, f"/{site.names.prefix}/repositories/{dotted}"
    headers = site.bearer() | {"Accept": "application/xml"}
    found = site.http.get(named, headers=headers)
    assert found.headers["content-type"] == "application/xml"
    assert lxml.etree.fromstring(found.content).findtext(f"{site.vocab}name") == dotted
    assert site.http.get(f"{named}.json", headers=headers).json()["name"] == dotted
    assert site.http.get(f"{named}/types.json", headers=headers).status_code == 200
    assert lxml.etree.fromstring(site.http.get(f"{plain}.xml", headers=headers).content).findtext(
        f"{site.vocab}name"
    ) == (site.world.repository)


def test_ours_1_a_suffix_is_no_part_of_a_name_once_the_longer_one_is_gone(site: Site) -> None:
    shown = site.http.get(f"{site.repository}.json", headers=site.bearer())
    assert shown.json()["name"] == site.world.repository


def test_ours_1_an_acl_whose_whole_name_ends_so_is_found_first(site: Site) -> None:
    name, acls = site.world.word(), f"{site.repository}/acls"
    headers = site.bearer() | {"Accept": "application/json"}

    def shown(called: str) -> str:
        answer = site.http.get(f"{acls}/{called}", headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["name"])

    for called in (name, f"{name}.json"):
        body = {"name": called, "permitted": [{"accessor": site.type("world"), "basic-permission": "Read"}]}
        assert site.http.post(acls, json=body, headers=headers).status_code == 201
        assert shown(f"{name}.json") == called
    assert shown(f"{name}.json.json") == f"{name}.json"
    changed = {"permitted": [{"accessor": site.type("owner"), "basic-permission": "Write"}]}
    assert site.http.post(f"{acls}/{name}.json", json=changed, headers=headers).json()["name"] == f"{name}.json"
    assert site.http.delete(f"{acls}/{name}.json", headers=headers).status_code == 204
    assert shown(f"{name}.json") == name
    assert site.http.get(f"{acls}/{name}.json").status_code == 401


def test_ours_1_an_acl_that_the_caller_may_not_see_is_as_if_there_were_none(site: Site) -> None:
    name, acls = site.world.word(), f"{site.repository}/acls"
    hidden = {"name": f"{name}.json", "permitted": [{"accessor": site.type("owner"), "basic-permission": "Read"}]}
    assert site.http.post(acls, json=hidden, headers=site.bearer()).status_code == 201
    for called in (f"{name}.json", f"{name}.xml"):
        answer = site.http.get(f"{acls}/{called}", headers=site.bearer(site.world.reader))
        assert answer.status_code == 404
        assert answer.headers["content-type"].endswith(called.rpartition(".")[2])


@pytest.mark.only("sqlite", "OPTIONS asks no database.")
@pytest.mark.parametrize("path", PATHS)
def test_ours_1_options_names_the_methods_of_every_address_without_credentials(
    site: Site, things: Things, path: str
) -> None:
    address = things.address(path)
    methods = set(address.operations) | {"OPTIONS"} | ({"HEAD"} if "GET" in address.operations else set())
    for end in ("", *(f".{suffix}" for suffix in SUFFIXES if path in SUFFIXED)):
        answer = site.http.request("OPTIONS", things.url(path, end))
        assert (answer.status_code, answer.content) == (204, b"")
        assert set(answer.headers["allow"].split(", ")) == methods
        assert not [name for name in answer.headers if name.startswith("access-control")]
        refused = site.http.request("PATCH", things.url(path, end))
        assert (refused.status_code, refused.headers["allow"]) == (405, answer.headers["allow"])


def test_ours_1_options_of_an_address_that_nothing_answers_is_404(site: Site) -> None:
    assert site.http.request("OPTIONS", f"{site.repository}/nothing").status_code == 404


def test_every_open_part_at_the_end_of_a_path_is_an_id_or_has_a_finder() -> None:
    """Names of types and formats hold no dot, an id is hexadecimal; whatever else ends a path may be ``x.json``."""
    ends = {path.rpartition("{")[2].removesuffix("}") for path in SUFFIXED if path.endswith("}")}
    plain = {"format", "id", "location", "name", "other", "relation_type", "search", "template"}
    assert ends - NEUTRAL.finders.keys() == plain
