"""XML from strangers: what is read, and what is refused where."""

import pytest

from muniment.ground import xml
from muniment.ground.refusals import Malformed


def test_elements_come_with_namespace_attributes_text_and_place() -> None:
    head = b'<?xml version="1.0" encoding="UTF-8"?>\n'
    body = head + b'<a xmlns="urn:x" xmlns:p="urn:p" n="1" p:m="2">t&amp;<!-- c --><p:b/>\n u</a>'
    root = xml.parse(body)
    assert (root.namespace, root.name, root.text) == ("urn:x", "a", "t&\n u")
    assert root.attributes == {"n": "1", "{urn:p}m": "2"}
    assert (root.line, root.column) == (2, 1)
    child = root.children[0]
    assert (child.namespace, child.name, child.children, child.text) == ("urn:p", "b", [], "")
    assert child.place == "line 2, column 64"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_the_declared_encoding_is_read(encoding: str) -> None:
    body = f'<?xml version="1.0" encoding="{encoding}"?><a>é</a>'.encode(encoding)
    assert xml.parse(body).text == "é"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "The body is empty: it must hold an XML document."),
        (b" \n", "The body is empty: it must hold an XML document."),
        (b"<!-- a -->", "no element"),
        (b"<a>", "line 1, column 4"),
        (b"<a>\n<b></a>", "line 2, column"),
        (b"<a>\xff</a>", "line 1"),
        (b"<a>&eacute;</a>", "line 1"),
        (b"<a/><b/>", "line 1, column 5"),
        (b'<a x="1" x="2"/>', "duplicate"),
        (b"<p:a/>", "unbound prefix"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', "encoding"),
        (b"<!DOCTYPE a><a/>", "document type declaration (line 1, column"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type declaration"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "document type declaration"),
        (b"<?xml-stylesheet href='x'?><a/>", "processing instructions"),
        (b"<a\x00/>", "line 1"),
    ],
)
def test_what_is_not_well_formed_is_refused_with_its_place(body: bytes, said: str) -> None:
    """failures A28, B8: no DTD, so nothing outside is ever fetched."""
    with pytest.raises(Malformed) as refused:
        xml.parse(body)
    assert said in refused.value.sentence


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<a>" * 33 + b"</a>" * 33, "nested deeper than 32"),
        (b"<a>" * 200_000, "nested deeper than 32"),
        (b"<a>" + b"<b/>" * 10_000 + b"</a>", "more than 10000 elements"),
        (b"<a " + b" ".join(b'b%d=""' % at for at in range(33)) + b"/>", "more than 32 attributes"),
    ],
)
def test_what_is_too_much_is_refused(body: bytes, said: str) -> None:
    with pytest.raises(Malformed, match=said):
        xml.parse(body)
