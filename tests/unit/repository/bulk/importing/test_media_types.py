"""The media types of files: the same on every machine, and such as people know."""

import mimetypes

import pytest

from muniment.repository.bulk.importing.media_types import media_type_of

TEXT = b"We sell valves.\n"


@pytest.mark.parametrize(
    ("path", "head", "media_type"),
    [
        ("deep/water.mol.txt", b"", "text/plain"),
        *(
            (name, TEXT, "text/plain")
            for name in ("README", "READ.ME", "README.1st", "Makefile", "LICENSE", "water.mol")
        ),
        *((name, TEXT, "text/plain") for name in ("main.rs", "app.ts", "notes.org", ".gitignore", "x.b", "a.ent")),
        ("ΚΕΙΜΕΝΟ", "κείμενο".encode(), "text/plain"),
        ("page", b"<!doctype html><p>words", "text/html"),
        ("1699.M1P2", b"From: a@example.com\r\nSubject: valves\r\n\r\nwords", "message/rfc822"),
        ("scan", b"%PDF-1.7\n", "application/pdf"),
        ("Report.DOCX", b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("mail.msg", b"\xd0\xcf\x11\xe0", "application/vnd.ms-outlook"),
        ("all.tar.gz", b"\x1f\x8b", "application/gzip"),
        *((name, head, "application/octet-stream") for name, head in [("core", b"\x7fELF"), ("x", b"\0\1\2\3" * 9)]),
        *((name, b"", "application/octet-stream") for name in ("README", "x.unheard")),
        ("archive", b"PK\x03\x04broken", "application/octet-stream"),
    ],
)
def test_a_name_or_else_the_first_bytes_tell_the_format(path: str, head: bytes, media_type: str) -> None:
    assert media_type_of(path, head) == media_type


def test_the_tables_of_the_machine_count_for_nothing() -> None:
    assert mimetypes.guess_type("x.html")[0] == "text/html", "they are loaded"
    assert {media_type_of(f"x{suffix}") for suffix in (".b", ".mol", ".pdb")} == {"application/octet-stream"}
