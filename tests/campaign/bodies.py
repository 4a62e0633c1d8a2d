"""Bodies that no JSON schema describes: XML documents of each kind, and metadata with content in parts."""

import json

import schemathesis
from hypothesis import strategies as st

from muniment.repository.options import RepositoryNames
from tests.campaign.stage import Prop

_NAMESPACE = RepositoryNames().vocab_namespace
_WORDS = st.sampled_from(
    ["pump", "Ärger", "水", "a b", "2024-02-29", "1e9", "", "&lt;x&gt;", "\u202e", "9" * 30, "NOT (", "*"]
)
_NAMES = st.sampled_from(["object_name", "owner_name", "r_full_content_size", "r_creation_date", "title", "no_such"])
_OPERATORS = st.sampled_from(["BEGINS_WITH", "IN", "BETWEEN", "EQUAL", "AND", ""])
_TYPES = st.sampled_from(["document", "folder", "sysobject", "spaceship", ""])


def register() -> None:
    """Tell schemathesis what bodies of these media types are made of."""
    schemathesis.openapi.media_type("application/xml", xml())
    schemathesis.openapi.media_type("multipart/form-data", multipart())


def xml() -> st.SearchStrategy[bytes]:
    """What any address reads as XML; now and then with a piece missing or twice."""
    others = st.one_of(things(), references(), types(), assistance(), batches())
    whole = st.one_of(searches(), objects(), acls(), others).map(str.encode)
    return st.one_of(whole, whole, st.builds(_damaged, whole, st.integers(0, 4000), st.binary(max_size=6)))


def searches() -> st.SearchStrategy[str]:
    """A search document (given 2.8)."""
    leaf = st.one_of(
        st.builds("<fulltext>{}</fulltext>".format, _WORDS),
        st.builds('<property name="{}" operator="{}">{}</property>'.format, _NAMES, _OPERATORS, _WORDS),
        st.builds(
            '<property-list name="{}" operator="IN"><values>{}</values></property-list>'.format,
            _NAMES,
            st.lists(_WORDS.map("<value>{}</value>".format), max_size=4).map("".join),
        ),
        st.builds(
            '<property-range name="{}" operator="BETWEEN"><from>{}</from><to>{}</to></property-range>'.format,
            _NAMES,
            _WORDS,
            _WORDS,
        ),
    )

    def several(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.builds(
            '<expression-set operator="{}"><expressions>{}</expressions></expression-set>'.format,
            st.sampled_from(["AND", "OR", "and", "XOR"]),
            st.lists(inner, max_size=4).map("".join),
        )

    types = st.lists(_TYPES.map("<type>{}</type>".format), max_size=2).map(lambda t: f"<types>{''.join(t)}</types>")
    return st.builds(
        f'<search xmlns="{_NAMESPACE}">{{}}{{}}</search>'.format,
        types,
        several(st.recursive(leaf, several, max_leaves=8)),
    )


def objects() -> st.SearchStrategy[str]:
    """An object's properties as XML."""
    properties = st.lists(
        st.builds("<{0}>{1}</{0}>".format, st.sampled_from(["object_name", "title", "keywords", "subject"]), _WORDS),
        max_size=4,
    )
    return properties.map(
        lambda given: f'<document xmlns="{_NAMESPACE}"><properties>{"".join(given)}</properties></document>'
    )


def acls() -> st.SearchStrategy[str]:
    """An ACL, or the name of one, as XML."""
    entry = st.builds(
        "<permission><accessor>{}</accessor><basic-permission>{}</basic-permission></permission>".format,
        st.sampled_from([Prop.USER, "everyone@demo", "world", ""]),
        st.sampled_from(["Read", "Write", "Delete", "Rule"]),
    )
    whole = st.builds(
        "<name>{}</name><permitted>{}</permitted>".format, _WORDS, st.lists(entry, max_size=3).map("".join)
    )
    return st.one_of(whole, st.just("<acl-name>public</acl-name>")).map(
        lambda inner: f'<acl xmlns="{_NAMESPACE}">{inner}</acl>'
    )


def things() -> st.SearchStrategy[str]:
    """A relation, a type of relations, a comment, a user or a group as XML."""
    kinds = (
        ("relation", {"relation_name": "peer", "parent_id": Prop.DOCUMENT, "child_id": Prop.FOLDER}),
        ("relation-type", {"relation_name": "campaign_xml", "description": "Of the campaign."}),
        ("comment", {"content": "Who has the keys?"}),
        ("user", {"user_name": "campaign.xml@demo", "user_password": "a long sentence", "user_state": "1"}),
        ("group", {"group_name": "campaign.xml@demo", "description": "Of the campaign."}),
    )
    return st.builds(_thing, st.sampled_from(kinds), st.booleans(), _WORDS)


def _thing(kind: tuple[str, dict[str, str]], right: bool, word: str) -> str:
    name, properties = kind
    values = properties if right else dict.fromkeys(properties, word)
    inner = "".join(f"<{one}>{value}</{one}>" for one, value in values.items())
    return f'<{name} xmlns="{_NAMESPACE}"><properties>{inner}</properties></{name}>'


def references() -> st.SearchStrategy[str]:
    """The address of a folder, an object, a user or a group as XML, or several addresses."""
    below = f"https://127.0.0.1/rest/repositories/{Prop.REPOSITORY}"
    ends = (f"folders/{Prop.FOLDER}", f"objects/{Prop.DOCUMENT}", f"users/{Prop.NEWCOMER}", f"groups/{Prop.GROUP}", "")
    address = st.sampled_from([f"{below}/{end}" for end in ends])
    several = st.lists(address.map("<href>{}</href>".format), max_size=4).map("".join)
    return st.one_of(
        st.builds(f'<{{}} xmlns="{_NAMESPACE}" href="{{}}"/>'.format, st.sampled_from(["folder", "user"]), address),
        several.map(lambda inner: f'<archive xmlns="{_NAMESPACE}">{inner}</archive>'),
        several.map(lambda inner: f'<archive xmlns="{_NAMESPACE}"><hrefs>{inner}</hrefs></archive>'),
    )


def types() -> st.SearchStrategy[str]:
    """A type with properties as XML."""
    property_ = st.builds(
        (
            "<property><name>{}</name><type>{}</type><length>{}</length><searchable>{}</searchable>"
            "<values><item>{}</item></values></property>"
        ).format,
        st.sampled_from(["sheet", "colour", "title", ""]),
        st.sampled_from(["string", "integer", "date", "text"]),
        st.sampled_from(["1", "20", "4000", "-1", "x"]),
        st.sampled_from(["true", "false", "perhaps"]),
        _WORDS,
    )
    return st.builds(
        f'<type xmlns="{_NAMESPACE}" name="{{}}" parent="{{}}"><properties>{{}}</properties></type>'.format,
        st.sampled_from(["campaign_xml", "document", ""]),
        _TYPES,
        st.lists(property_, max_size=3).map("".join),
    )


def assistance() -> st.SearchStrategy[str]:
    """For which properties a form wants values, as XML."""
    return st.builds(
        (
            f'<assist-values xmlns="{_NAMESPACE}"><included-properties><item>{{}}</item></included-properties>'
            "<dependencies><title>{}</title></dependencies></assist-values>"
        ).format,
        st.one_of(_NAMES, st.just("sheet")),
        _WORDS,
    )


def batches() -> st.SearchStrategy[str]:
    """A batch as XML."""
    here = f"/repositories/{Prop.REPOSITORY}"
    ends = (f"objects/{Prop.DOCUMENT}", f"objects/{Prop.DOCUMENT}/lock", "cabinets", "search", "users")
    operation = st.builds(
        (
            '<operation id="{}"><request method="{}" uri="{}"><headers>'
            '<header name="Content-Type" value="application/json"/></headers><entity>{}</entity></request></operation>'
        ).format,
        st.sampled_from(["1", "2", "3"]),
        st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH"]),
        st.sampled_from([f"{here}/{end}" for end in ends]),
        st.sampled_from(['{"properties": {"object_name": "batch"}}', "{", ""]),
    )
    return st.builds(
        f'<batch xmlns="{_NAMESPACE}" transactional="{{}}"><operations>{{}}</operations></batch>'.format,
        st.sampled_from(["true", "false", "perhaps"]),
        st.lists(operation, max_size=3).map("".join),
    )


def multipart() -> st.SearchStrategy[bytes]:
    """Metadata and content in parts, or nearly."""
    name = st.text(max_size=20).map(lambda text: json.dumps({"properties": {"object_name": text or "x"}}).encode())
    return st.builds(
        _parts,
        st.one_of(name, st.binary(max_size=40)),
        st.sampled_from(["application/json", "application/xml", "text/plain", ""]),
        st.binary(max_size=200),
        st.sampled_from([b"--campaign--\r\n", b"--campaign--\r\n", b"--campaign\r\n", b""]),
    )


def _parts(metadata: bytes, kind: str, content: bytes, end: bytes) -> bytes:
    stated = f"Content-Type: {kind}\r\n".encode() if kind else b""
    return (
        b'--campaign\r\nContent-Disposition: form-data; name="metadata"\r\n' + stated + b"\r\n" + metadata
        + b'\r\n--campaign\r\nContent-Disposition: form-data; name="binary"; filename="x.txt"\r\n\r\n' + content
        + b"\r\n" + end
    )  # fmt: skip


def _damaged(whole: bytes, at: int, other: bytes) -> bytes:
    at %= len(whole)
    return whole[:at] + other + whole[at + len(other) // 2 :]
