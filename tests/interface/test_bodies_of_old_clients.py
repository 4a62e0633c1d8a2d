"""Bodies and answers as clients of the field write and read them: objects, types, ACLs, format names.

Source: docs/interface.md, ours 1 to 4.
"""

from collections.abc import Mapping

import httpx
import lxml.etree
import pytest

from tests.scenes import Person, Site

XML = {"Content-Type": "application/xml", "Accept": "application/json"}
XSI = "http://www.w3.org/2001/XMLSchema-instance"


def post(site: Site, path: str, body: str, **headers: str) -> httpx.Response:
    """Post XML below the repository; ``{vocab}`` in it is the vocabulary's namespace."""
    text = body.replace("{vocab}", site.names.vocab_namespace)
    return site.http.post(f"{site.repository}{path}", content=text, headers={**XML, **site.bearer(), **headers})


def properties(answer: httpx.Response) -> Mapping[str, object]:
    assert answer.status_code in {200, 201}, answer.text
    found: Mapping[str, object] = answer.json()["properties"]
    return found


@pytest.mark.parametrize(
    "body",
    [
        (
            "<object xmlns='{vocab}'><properties><object_name>old</object_name><title>a title</title>"
            "<keywords><item>one</item><item>two</item></keywords></properties></object>"
        ),
        (
            "<object xmlns='{vocab}'><properties><object_name xmlns=''>old</object_name><title xmlns=''>a title</title>"
            "<keywords xmlns=''><item>one</item><item>two</item></keywords></properties></object>"
        ),
        (
            "<d:object xmlns:d='{vocab}'><d:properties><d:object_name>old</d:object_name><title>a title</title>"
            "<d:keywords><item>one</item><d:item>two</d:item></d:keywords></d:properties></d:object>"
        ),
        (
            "<object><properties><object_name>old</object_name><title>a title</title>"
            "<keywords><item>one</item><item>two</item></keywords></properties></object>"
        ),
    ],
    ids=["in the namespace", "in none", "any prefix", "no namespace at all"],
)
def test_ours_2_properties_are_read_in_the_vocabularys_namespace_or_in_none(site: Site, body: str) -> None:
    made = properties(post(site, "/objects", body))
    assert made["object_name"] == "old"
    assert made["title"] == "a title"
    assert made["keywords"] == ["one", "two"]


def test_ours_2_a_foreign_namespace_is_refused_with_its_place(site: Site) -> None:
    body = "<object xmlns='{vocab}'><properties>\n <object_name xmlns='urn:other'>x</object_name></properties></object>"
    refused = post(site, "/objects", body)
    assert refused.status_code == 400
    assert "line 2, column 2" in refused.json()["message"]


@pytest.mark.parametrize("empty", ["<title/>", "<title></title>", f"<title xmlns:i='{XSI}' i:nil='true'/>"])
def test_ours_2_an_empty_element_takes_the_value_away(site: Site, empty: str) -> None:
    object_id = site.create("emptied", title="there", keywords=["one"])
    body = f"<object xmlns='{{vocab}}'><properties>{empty}<keywords/></properties></object>"
    changed = properties(post(site, f"/objects/{object_id}", body))
    assert changed["title"] == ""
    assert changed["keywords"] == []


def test_ours_2_a_property_given_twice_is_refused(site: Site) -> None:
    body = (
        "<object xmlns='{vocab}'><properties><title>1</title><object_name>x</object_name>"
        "<title xmlns=''>2</title></properties></object>"
    )
    refused = post(site, "/objects", body)
    assert refused.status_code == 400
    assert "'title' comes twice" in refused.json()["message"]


def test_ours_2_objects_without_a_type_are_sysobjects_with_the_root_object(site: Site) -> None:
    made = site.http.post(
        f"{site.repository}/objects", json={"properties": {"object_name": "plain"}}, headers=site.bearer()
    )
    assert properties(made)["r_object_type"] == site.type("sysobject")
    object_id = properties(made)["r_object_id"]
    assert made.json()["name"] == "object"
    assert made.headers["Location"] == f"{site.base}{site.repository}/objects/{object_id}"


def test_ours_2_what_is_read_as_an_object_links_there_and_names_its_own_address(site: Site) -> None:
    document_id, cabinet_id = site.create("as an object"), site.cabinet(site.world.word())
    for object_id, kind in ((document_id, "document"), (cabinet_id, "cabinet")):
        below = f"{site.base}{site.repository}"
        as_object = site.http.get(f"{below}/objects/{object_id}", headers=site.bearer())
        links = {link["rel"]: link["href"] for link in as_object.json()["links"]}
        assert as_object.json()["name"] == "object"
        assert links["self"] == links["edit"] == f"{below}/objects/{object_id}"
        assert links["canonical"] == f"{below}/{kind}s/{object_id}"
        as_itself = site.http.get(links["canonical"], headers=site.bearer() | {"Accept": "application/json"})
        assert as_itself.json()["name"] == kind
        links = {link["rel"]: link["href"] for link in as_itself.json()["links"]}
        assert links["self"] == f"{below}/{kind}s/{object_id}"
        assert "canonical" not in links
        as_xml = site.http.get(f"{below}/objects/{object_id}", headers=site.bearer() | {"Accept": "application/xml"})
        assert lxml.etree.fromstring(as_xml.content).tag == f"{site.vocab}object"


def test_ours_1_a_type_is_described_by_attributes_in_xml(site: Site) -> None:
    address = f"{site.repository}/types/{site.type('document')}"
    as_json = site.http.get(address, headers=site.bearer() | {"Accept": "application/json"}).json()
    assert as_json["category"] == "standard"
    root = lxml.etree.fromstring(site.http.get(address, headers=site.bearer() | {"Accept": "application/xml"}).content)
    assert root.tag == f"{site.vocab}type"
    attributes = {str(name): str(value) for name, value in root.attrib.items()}
    assert attributes == {name: as_json[name] for name in ("name", "label", "category", "parent")}
    assert [child.tag for child in root] == [f"{site.vocab}properties", f"{site.vocab}links"]
    top = site.http.get(
        f"{site.repository}/types/{site.type('sysobject')}", headers=site.bearer() | {"Accept": "application/xml"}
    )
    assert "parent" not in lxml.etree.fromstring(top.content).attrib


@pytest.mark.parametrize("spelling", ["flat", "properties", "both"])
def test_ours_4_an_acl_may_have_its_name_among_its_properties_and_no_entries(site: Site, spelling: str) -> None:
    name = site.world.word()
    body: dict[str, object] = {} if spelling == "properties" else {"name": name}
    if spelling != "flat":
        body["properties"] = {"object_name": name, "description": "not kept"}
    made = site.http.post(f"{site.repository}/acls", json=body, headers=site.bearer())
    assert made.status_code == 201, made.text
    assert made.json()["permitted"] == []
    assert made.json()["properties"]["object_name"] == name
    assert made.json()["properties"]["r_object_id"] == made.json()["id"]
    changed = site.http.post(
        made.headers["Location"],
        json={"permitted": [{"accessor": site.world.writer.id, "basic-permission": "Read"}]},
        headers=site.bearer(),
    )
    assert changed.status_code == 200, changed.text
    assert changed.json()["properties"]["object_name"] == name
    assert len(changed.json()["permitted"]) == 1


def test_ours_4_an_acl_comes_in_xml_as_it_goes_out(site: Site) -> None:
    name = site.world.word()
    body = (
        f"<acl xmlns='{{vocab}}'><properties><object_name>{name}</object_name></properties><permitted><permission>"
        f"<accessor>{site.world.writer.id}</accessor><basic-permission>Write</basic-permission>"
        "</permission></permitted></acl>"
    )
    made = post(site, "/acls", body, Accept="application/xml")
    assert made.status_code == 201, made.text
    root = lxml.etree.fromstring(made.content)
    assert root.findtext(f"{site.vocab}properties/{site.vocab}object_name") == name
    again = post(site, f"/acls/{root.findtext(f'{site.vocab}id')}", made.text, Accept="application/xml")
    assert again.status_code == 200, again.text
    assert lxml.etree.tostring(lxml.etree.fromstring(again.content)[4]) == lxml.etree.tostring(root[4])


def test_ours_4_two_different_names_and_extended_permissions_are_refused(site: Site) -> None:
    two = {"name": site.world.word(), "properties": {"object_name": site.world.word()}}
    refused = site.http.post(f"{site.repository}/acls", json=two, headers=site.bearer())
    assert (refused.status_code, refused.json()["code"]) == (400, "E_INVALID_ATTR_VALUE")
    entry = {"accessor": site.world.writer.id, "basic-permission": "Read", "extend-permissions": "CHANGE_STATE"}
    extended = {"name": site.world.word(), "permitted": [entry]}
    refused = site.http.post(f"{site.repository}/acls", json=extended, headers=site.bearer())
    assert (refused.status_code, refused.json()["code"]) == (400, "E_NOT_OFFERED_YET")
    inside = "<accessor>a@b</accessor><basic-permission>Read</basic-permission>"
    body = (
        f"<acl xmlns='{{vocab}}'><name>{site.world.word()}</name><permitted><permission>{inside}"
        "<extend-permissions><item>CHANGE_STATE</item></extend-permissions></permission></permitted></acl>"
    )
    refused = post(site, "/acls", body)
    assert (refused.status_code, refused.json()["code"]) == (400, "E_NOT_OFFERED_YET")


@pytest.mark.parametrize(
    ("member", "value"),
    [("extended-permissions", "CHANGE_STATE"), ("permission", "Write"), ("basic_permission", "Write")],
)
def test_ours_4_an_entry_with_an_unknown_member_is_refused_by_its_name(site: Site, member: str, value: str) -> None:
    """Else a right that the caller gives or denies would be lost in silence."""
    name, entry = site.world.word(), {"accessor": site.world.writer.id, "basic-permission": "Read"}
    object_id = site.create("kept as it is")
    address = f"{site.repository}/objects/{object_id}/permission-set"
    before = site.http.get(address, headers=site.bearer()).json()
    inside = "".join(f"<{key}>{text}</{key}>" for key, text in {**entry, member: value}.items())
    for answer in (
        site.http.post(
            f"{site.repository}/acls",
            json={"name": name, "permitted": [{**entry, member: value}]},
            headers=site.bearer(),
        ),
        site.http.put(address, json={"permitted": [{**entry, member: value}]}, headers=site.bearer()),
        post(
            site,
            "/acls",
            f"<acl xmlns='{{vocab}}'><name>{name}</name><permitted><permission>{inside}</permission></permitted></acl>",
        ),
        post(
            site,
            "/acls",
            f"<acl xmlns='{{vocab}}'><name>{name}</name><permitted><permission {member}='{value}'>"
            f"<accessor>{entry['accessor']}</accessor><basic-permission>Read</basic-permission>"
            "</permission></permitted></acl>",
        ),
    ):
        refusal = answer.json()
        assert (answer.status_code, refusal["code"]) == (400, "E_MALFORMED_REQUEST"), answer.text
        assert member in refusal["message"]
    assert site.http.get(f"{site.repository}/acls/{name}", headers=site.bearer()).status_code == 404
    assert site.http.get(address, headers=site.bearer()).json() == before


@pytest.mark.parametrize("member", ["permissions", "restricted"])
def test_ours_4_an_acl_with_an_unknown_member_is_refused_by_its_name(site: Site, member: str) -> None:
    name, entry = site.world.word(), {"accessor": site.world.writer.id, "basic-permission": "Read"}
    inside = "".join(f"<{key}>{text}</{key}>" for key, text in entry.items())
    in_json = site.http.post(f"{site.repository}/acls", json={"name": name, member: [entry]}, headers=site.bearer())
    in_xml = post(
        site,
        "/acls",
        f"<acl xmlns='{{vocab}}'><name>{name}</name><{member}><permission>{inside}</permission></{member}></acl>",
    )
    for answer in (in_json, in_xml):
        assert (answer.status_code, answer.json()["code"]) == (400, "E_MALFORMED_REQUEST"), answer.text
        assert member in answer.json()["message"]


@pytest.mark.parametrize(
    "twice",
    [
        "<permitted>{entry}</permitted><permitted/>",
        "<permitted><permission>{inside}<basic-permission>None</basic-permission></permission></permitted>",
    ],
)
def test_ours_4_an_acl_in_xml_says_nothing_twice(site: Site, twice: str) -> None:
    inside = f"<accessor>{site.world.writer.id}</accessor><basic-permission>Read</basic-permission>"
    members = twice.format(entry=f"<permission>{inside}</permission>", inside=inside)
    refused = post(site, "/acls", f"<acl xmlns='{{vocab}}'><name>{site.world.word()}</name>{members}</acl>")
    assert refused.status_code == 400, refused.text
    assert "comes twice" in refused.json()["message"]


@pytest.mark.parametrize("media_type", ["application/json", "application/hal+json", "application/xml"])
def test_ours_4_an_acl_and_a_permission_set_come_back_as_they_went_out(site: Site, media_type: str) -> None:
    entry = {"accessor": site.world.writer.id, "basic-permission": "Read"}
    body = {"name": site.world.word(), "permitted": [entry]}
    made = site.http.post(f"{site.repository}/acls", json=body, headers=site.bearer())
    of_object = f"{site.repository}/objects/{site.create('sent back')}/permission-set"
    for method, address in (("POST", made.headers["Location"]), ("PUT", of_object)):
        shown = site.http.get(address, headers={**site.bearer(), "Accept": media_type})
        headers = {**site.bearer(), "Accept": media_type, "Content-Type": media_type}
        again = site.http.request(method, address, content=shown.content, headers=headers)
        assert (again.status_code, again.content) == (200, shown.content), again.text


@pytest.mark.parametrize(
    ("format_name", "media_type"),
    [("crtext", "text/plain"), ("pdf", "application/pdf"), ("msw8", "application/msword"), ("text/csv", "text/csv")],
)
def test_ours_3_formats_are_named_as_the_field_names_them(site: Site, format_name: str, media_type: str) -> None:
    object_id = site.create(site.world.word())
    contents = f"{site.repository}/objects/{object_id}/contents"
    replaced = site.http.post(
        contents, params={"format": format_name}, content=b"some bytes", headers=site.bearer() | {"Content-Type": "a/b"}
    )
    assert replaced.status_code == 201, replaced.text
    assert replaced.json()["properties"]["mime_type"] == media_type
    described = site.http.get(f"{contents}/content", params={"format": format_name}, headers=site.bearer())
    assert described.json()["properties"]["mime_type"] == media_type
    if "/" not in format_name:
        assert described.json()["properties"]["format_name"] == format_name
    media = f"{site.repository}/objects/{object_id}/content-media"
    assert site.http.get(media, params={"format": media_type}, headers=site.bearer()).content == b"some bytes"
    other = site.http.get(media, params={"format": "gif"}, headers=site.bearer())
    assert (other.status_code, other.json()["code"]) == (404, "E_NO_CONTENT")
    unknown = site.http.get(media, params={"format": "no-such-format"}, headers=site.bearer())
    assert (unknown.status_code, unknown.json()["code"]) == (400, "E_INVALID_ATTR_VALUE")


def test_ours_3_a_new_object_takes_a_format_name(site: Site) -> None:
    made = site.http.post(
        f"{site.repository}/objects",
        params={"object-name": "letter", "format": "msw8"},
        content=b"bytes",
        headers=site.bearer() | {"Content-Type": "application/octet-stream"},
    )
    assert properties(made)["a_content_type"] == "msw8"
    object_id = site.create("named by a property", a_content_type="crtext")
    read = site.http.get(f"{site.repository}/objects/{object_id}", headers=site.bearer())
    assert read.json()["properties"]["a_content_type"] == "crtext"


def folder(site: Site, parent: str, person: Person | None = None) -> str:
    """Make a folder; give its id."""
    made = site.http.post(
        f"{site.repository}/folders/{parent}/folders",
        json={"properties": {"object_name": site.world.word()}},
        headers=site.bearer(person),
    )
    return str(properties(made)["r_object_id"])


def test_ours_2_a_reference_copies_an_object_with_its_content(site: Site) -> None:
    cabinet = site.cabinet(site.world.word())
    source = site.create("original", b"words to copy", title="t", keywords=["one", "two"])
    address = f"{site.base}{site.repository}/objects/{source}"
    made = site.http.post(
        f"{site.repository}/folders/{cabinet}/documents", json={"href": address}, headers=site.bearer()
    )
    copied = properties(made)
    assert made.status_code == 201
    assert copied["r_object_id"] != source
    assert copied["i_folder_id"] == [cabinet]
    assert [copied[name] for name in ("object_name", "title", "keywords")] == ["original", "t", ["one", "two"]]
    media = f"{site.repository}/objects/{copied['r_object_id']}/content-media"
    site.http.delete(f"{site.repository}/objects/{source}", headers=site.bearer())
    assert site.http.get(media, headers=site.bearer()).content == b"words to copy"


def test_ours_2_a_reference_in_xml_copies_as_well(site: Site) -> None:
    cabinet, source = site.cabinet(site.world.word()), site.create("original")
    body = f"<object xmlns='{{vocab}}' href='{site.base}{site.repository}/documents/{source}'/>"
    copied = properties(post(site, f"/folders/{cabinet}/objects", body))
    assert (copied["object_name"], copied["i_folder_id"]) == ("original", [cabinet])


def test_ours_2_a_reference_is_refused_where_it_means_nothing(site: Site) -> None:
    cabinet, source = site.cabinet(site.world.word()), site.create("original")
    here = f"{site.base}{site.repository}"

    def refusal(path: str, href: str, **more: object) -> tuple[int, str]:
        answer = site.http.post(f"{here}{path}", json={"href": href, **more}, headers=site.bearer())
        return answer.status_code, answer.json()["code"]

    documents = f"/folders/{cabinet}/documents"
    assert refusal(documents, f"{here}/objects/09ffffffffffffff") == (404, "E_UNKNOWN_OBJECT")
    assert refusal(documents, f"{here}other/objects/{source}") == (400, "E_MALFORMED_REQUEST")
    assert refusal(documents, "https://elsewhere.test/") == (400, "E_MALFORMED_REQUEST")
    more = {"properties": {"nothing": "x"}}
    assert refusal(documents, f"{here}/objects/{source}", **more) == (400, "E_INVALID_ATTR_NAME")
    assert refusal(documents, f"{here}/objects/{cabinet}") == (400, "E_INVALID_ATTR_VALUE")
    assert refusal(f"/objects/{source}", f"{here}/objects/{source}") == (400, "E_MALFORMED_REQUEST")
    assert refusal(f"/folders/{cabinet}/folders", f"{here}/objects/{source}") == (400, "E_INVALID_ATTR_VALUE")


def test_ours_2_nobody_copies_what_they_may_not_read(site: Site) -> None:
    cabinet, source = site.cabinet(site.world.word()), site.create("private", b"secret", person=site.world.reader)
    address = f"{site.base}{site.repository}/objects/{source}"
    documents = f"{site.repository}/folders/{cabinet}/documents"
    refused = site.http.post(documents, json={"href": address}, headers=site.bearer())
    assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_OBJECT")
    acl = site.world.word()
    entry = {"accessor": site.world.writer.id, "basic-permission": "Browse"}
    made = site.http.post(
        f"{site.repository}/acls", json={"name": acl, "permitted": [entry]}, headers=site.bearer(site.world.reader)
    )
    assert made.status_code == 201, made.text
    site.share(source, acl, person=site.world.reader)
    refused = site.http.post(documents, json={"href": address}, headers=site.bearer())
    assert (refused.status_code, refused.json()["code"]) == (403, "E_NOT_PERMITTED")


def test_ours_2_a_folder_is_deleted_with_everything_in_it(site: Site) -> None:
    cabinet = site.cabinet(site.world.word())
    inner = folder(site, folder(site, cabinet))
    made = site.http.post(
        f"{site.repository}/folders/{inner}/documents",
        json={"properties": {"object_name": "leaf"}},
        headers=site.bearer(),
    )
    leaf = properties(made)["r_object_id"]
    address = f"{site.repository}/folders/{cabinet}"
    refused = site.http.delete(address, headers=site.bearer())
    assert (refused.status_code, refused.json()["message"]) == (409, "The folder is not empty.")
    deleted = site.http.delete(address, params={"del-non-empty": "true"}, headers=site.bearer())
    assert deleted.status_code == 204, deleted.text
    for object_id in (cabinet, inner, leaf):
        assert site.http.get(f"{site.repository}/objects/{object_id}", headers=site.bearer()).status_code == 404


def test_ours_2_what_is_hidden_in_a_folder_keeps_it_and_does_not_show(site: Site) -> None:
    owner, other = site.world.person(), site.world.person()
    acl = site.world.word()
    entry = {"accessor": other.id, "basic-permission": "Write"}
    body = {
        "name": acl,
        "permitted": [entry, {"accessor": site.names.type_prefix + "owner", "basic-permission": "Delete"}],
    }
    assert site.http.post(f"{site.repository}/acls", json=body, headers=site.bearer(owner)).status_code == 201
    made = site.http.post(
        f"{site.repository}/cabinets", json={"properties": {"object_name": acl}}, headers=site.bearer(owner)
    )
    cabinet = str(properties(made)["r_object_id"])
    site.share(cabinet, acl, person=owner)
    documents = f"{site.repository}/folders/{cabinet}/documents"
    made = site.http.post(documents, json={"properties": {"object_name": "hidden"}}, headers=site.bearer(other))
    hidden = str(properties(made)["r_object_id"])
    site.share(hidden, "private", person=other)
    visible = site.http.post(documents, json={"properties": {"object_name": "own"}}, headers=site.bearer(owner))
    address = f"{site.repository}/folders/{cabinet}"
    params = {"del-non-empty": "true"}
    refused = site.http.delete(address, params=params, headers=site.bearer(owner))
    assert refused.status_code == 409
    assert refused.json()["message"].startswith("The folder is not empty.")
    assert "hidden" not in refused.text
    still = site.http.get(visible.headers["Location"], headers=site.bearer(owner))
    assert still.status_code == 200, "nothing goes unless everything may go"
    site.http.delete(f"{site.repository}/objects/{hidden}", headers=site.bearer(other))
    assert site.http.delete(address, params=params, headers=site.bearer(owner)).status_code == 204
