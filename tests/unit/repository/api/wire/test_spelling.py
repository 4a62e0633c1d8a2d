"""Names, media types and errors as the wire spells them."""

import json
from contextlib import nullcontext, suppress

import lxml.etree
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from muniment.ground.refusals import NotAcceptable, UnsupportedMediaType
from muniment.repository.api.wire import spelling
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownType
from muniment.repository.store.objects.types.object_types import BUILT_IN, BUILT_IN_NAMES
from muniment.web.answers.responses import ErrorCode

NEUTRAL = RepositoryNames()
FIELD = RepositoryNames(type_prefix="dm_", media_type="application/vnd.field", vocab_namespace="urn:field")
OTHER = RepositoryNames(system_property_prefix="sys_")
BOTH = spelling.both(NEUTRAL)


def request(accept: str | None = None, **more: str) -> Request:
    headers = [(b"accept", accept.encode("latin-1"))] if accept is not None else []
    return Request({"type": "http", "method": "GET", "path": "/rest", "headers": headers, "query_string": b"", **more})


@pytest.mark.parametrize("names", [NEUTRAL, FIELD, OTHER])
def test_names_go_round(names: RepositoryNames) -> None:
    for name in [*BUILT_IN_NAMES, "invoice"]:
        assert spelling.read_type(spelling.write_type(name, names), names) == name
    for definition in BUILT_IN[0].properties:
        assert spelling.read_property(spelling.write_property(definition.name, names), names) == definition.name
    for accessor in ("owner", "world", "marta@demo", "owner@demo"):
        assert spelling.read_accessor(spelling.write_accessor(accessor, names), names) == accessor


def test_built_in_names_bear_the_prefix_and_others_do_not() -> None:
    assert spelling.write_type("document", FIELD) == "dm_document"
    assert spelling.write_type("invoice", FIELD) == "invoice"
    assert spelling.write_accessor("world", FIELD) == "dm_world"
    assert spelling.write_property("r_object_id", OTHER) == "sys_object_id"
    assert spelling.write_property("object_name", OTHER) == "object_name"
    with pytest.raises(UnknownType):
        spelling.read_type("document", FIELD)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, BOTH[0]),
        ("", BOTH[0]),
        ("*/*", BOTH[0]),
        ("application/*", BOTH[0]),
        ("application/json", "application/json"),
        ("application/xml", "application/xml"),
        ("application/*+xml", BOTH[1]),
        ("text/html, application/xml;q=0.9, */*;q=0.1", "application/xml"),
        ("application/json;q=0.2, application/xml;q=0.3", "application/xml"),
        ("APPLICATION/XML ; Q=1.0", "application/xml"),
        ("*/*, application/vnd.muniment+json;q=0", BOTH[1]),
        ("application/*+json, application/vnd.muniment+json;q=0.1", spelling.HAL),
        ("application/*+json", BOTH[0]),
        ("application/*+json;q=0.1, application/json;q=0.2", "application/json"),
        ("application/json;charset=UTF-8;q=0.5, application/xml;charset=utf-8", "application/xml"),
    ],
)
def test_the_best_liked_media_type_is_chosen(accept: str | None, chosen: str) -> None:
    assert spelling.negotiate(request(accept), BOTH) == chosen


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/json;q=0",
        "image/*",
        "application/xml;q=high",
        "application/xml;q=\x1f0.5",
        ";",
        "a/b/c",
    ],
)
def test_what_cannot_be_met_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        spelling.negotiate(request(accept), BOTH)


def test_a_suffix_chooses_whatever_the_header_says() -> None:
    suffixed = {"muniment.suffix": "xml"}
    assert spelling.negotiate(request("application/json", **suffixed), BOTH) == BOTH[1]
    assert spelling.negotiate(request("image/png", **suffixed), spelling.feed_types(NEUTRAL)) == spelling.ATOM
    assert spelling.negotiate(request("application/xml", **{"muniment.suffix": "json"}), BOTH) == BOTH[0]
    assert spelling.negotiate(request("image/png", **suffixed), ("image/png",)) == "image/png"


def test_a_vendor_type_with_capitals_is_met() -> None:
    offered = spelling.both(RepositoryNames(media_type="application/vnd.Other"))
    assert spelling.negotiate(request("application/vnd.other+xml"), offered) == "application/vnd.Other+xml"


@pytest.mark.parametrize(
    ("media_type", "is_read"),
    [
        ("application/json", True),
        ("Application/JSON; charset=UTF-8", True),
        ("text/xml", True),
        ("application/vnd.muniment+xml", True),
        (spelling.HAL, True),
        ("application/problem+json", False),
        ("image/svg+xml", False),
        ("text/plain", False),
        ("", False),
    ],
)
def test_a_body_of_another_media_type_is_refused(media_type: str, *, is_read: bool) -> None:
    sent = request()
    sent.scope["headers"].append((b"content-type", media_type.encode()))
    with nullcontext() if is_read else pytest.raises(UnsupportedMediaType, match=r"This address reads application/"):
        spelling.check_body(sent, BOTH)
    spelling.check_body(sent, ())
    spelling.check_body(sent, ("*/*",))


def test_hal_has_links_by_relation_and_entries_in_embedded() -> None:
    document: dict[str, spelling.Written] = {
        "id": "a list",
        "properties": {"links": ["none of these"]},
        "links": [
            {"rel": "self", "href": "https://x/"},
            {"rel": "parent", "href": "https://x/1", "title": "one"},
            {"rel": "parent", "href": "https://x/2"},
            {"rel": "find", "hreftemplate": "https://x/{?q}"},
        ],
        "entries": [{"id": "1", "links": [{"rel": "edit", "href": "https://x/1"}], "content": {"links": []}}],
    }
    assert json.loads(spelling.document_answer(spelling.HAL, "list", document, NEUTRAL)) == {
        "id": "a list",
        "properties": {"links": ["none of these"]},
        "_links": {
            "self": {"href": "https://x/"},
            "parent": [{"href": "https://x/1", "title": "one"}, {"href": "https://x/2"}],
            "find": {"href": "https://x/{?q}", "templated": True},
        },
        "_embedded": {"entries": [{"id": "1", "_links": {"edit": {"href": "https://x/1"}}, "content": {"_links": {}}}]},
    }


def test_servers_have_no_element_of_their_own_in_xml_and_a_property_of_that_name_has() -> None:
    servers = [{"name": "a"}, {"name": "b"}]
    document: dict[str, spelling.Written] = {"servers": servers, "properties": {"servers": ["c", "d"]}}
    root = lxml.etree.fromstring(spelling.xml("repository", document, "urn:v", {}))
    space = "{urn:v}"
    assert [child.tag for child in root] == [f"{space}server", f"{space}server", f"{space}properties"]
    assert [item.text for item in root.findall(f"{space}properties/{space}servers/{space}item")] == ["c", "d"]


@pytest.mark.slow
@given(st.text(max_size=80))
def test_any_accept_header_is_answered_or_refused(accept: str) -> None:
    header = accept.encode("utf-8", "replace").decode("latin-1")
    with suppress(NotAcceptable):
        assert spelling.negotiate(request(header), BOTH) in BOTH


def test_an_error_says_the_same_in_json_and_xml() -> None:
    shape = spelling.error_shape(FIELD)
    said = ErrorCode(404, "unknown_address")
    in_json = shape(request("application/json"), said, "No <such> & thing.")
    in_xml = shape(request("application/atom+xml"), said, "No <such> & thing.")
    assert in_json.status_code == in_xml.status_code == 404
    document = json.loads(bytes(in_json.body))
    assert (document["status"], document["code"], document["message"]) == (
        404,
        "E_UNKNOWN_ADDRESS",
        "No <such> & thing.",
    )
    root = lxml.etree.fromstring(bytes(in_xml.body))
    assert root.tag == "{urn:field}error"
    assert root.findtext("{urn:field}message") == "No <such> & thing."
    assert in_xml.headers["content-type"] == "application/xml"


def test_an_error_never_fails_for_its_own_media_type() -> None:
    response = spelling.error_shape(NEUTRAL)(request("image/png"), ErrorCode(406, "E_X"), "no")
    assert response.headers["content-type"] == "application/vnd.muniment+json"


def test_a_401_names_the_scheme() -> None:
    response = spelling.error_shape(NEUTRAL)(request(), ErrorCode(401, "E_X"), "no")
    assert response.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.slow
@given(st.text(), st.lists(st.text(), min_size=1))
def test_xml_is_well_formed_whatever_a_property_holds(title: str, keywords: list[str]) -> None:
    document: dict[str, spelling.Written] = {
        "properties": {"title": title, "links": [*keywords], "document": None, "gone": []},
        "links": [{"rel": "self", "href": f"https://x/?{title}"}],
    }
    attributes = {"": {"xsi:type": "document"}, "properties": {"xsi:type": "document-properties"}}
    root = lxml.etree.fromstring(spelling.xml("document", document, "urn:v", attributes))
    allowed = "".join(
        c for c in title if c in "\t\n\r" or " " <= c < "\ud800" or "\ue000" <= c < "\ufffe" or c > "\uffff"
    )
    space = "{urn:v}"
    assert (root.findtext(f"{space}properties/{space}title") or "") == allowed
    assert len(root.findall(f"{space}properties/{space}links/{space}item")) == len(keywords)
    assert root.get(f"{{{spelling.XSI}}}type") == "document"
    inner = root.find(f"{space}properties/{space}document")
    assert inner is not None
    assert inner.keys() == [f"{{{spelling.XSI}}}nil"]
    link = root.find(f"{space}links/{space}link")
    assert link is not None
    assert link.get("href") == f"https://x/?{allowed}"
