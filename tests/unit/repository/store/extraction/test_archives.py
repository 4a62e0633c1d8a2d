"""Archives give the names and the words of their files, within limits that all files within one file share."""

import bz2
import io
import lzma
import tarfile
from collections.abc import Iterator
from email.message import EmailMessage

import pytest

from muniment.repository.extraction_options import ExtractionOptions
from muniment.repository.options import RepositoryOptions
from muniment.repository.store.extraction.confined.process import Reader, limits
from muniment.repository.store.extraction.findings import KeptFile, Unreadable
from tests.unit.repository import sample_files as made
from tests.unit.repository.store.extraction.test_formats import encrypted_zip, nested, odd_zip, read

OPTIONS = RepositoryOptions(
    extraction_seconds=20,
    extraction_memory_mib=256,
    extraction=ExtractionOptions(tika="http://127.0.0.1:9998"),
)
"""The settings name a Tika server, so files that are not read are kept; none is asked here."""

OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader(limits(OPTIONS)) as opened:
        yield opened


def tar(files: dict[str, bytes], format_: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format_) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return out.getvalue()


FILES = {"one.txt": "Grüße".encode(), "folder/two.docx": made.docx("zwei"), "three.pdf": made.pdf("drei")}
TEXT = "one.txt\nGrüße\nfolder/two.docx\nzwei\nthree.pdf\ndrei"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.zip", made.pack(FILES)),
        ("named-otherwise.bin", made.pack(FILES)),
        ("a.tar", tar(FILES)),
        ("a.tar.gz", made.compress(tar(FILES, tarfile.GNU_FORMAT))),
        ("a.tar.bz2", bz2.compress(tar(FILES))),
        ("a.tar.xz", lzma.compress(tar(FILES))),
        ("a.zip.gz", made.compress(made.pack(FILES))),
    ],
)
def test_an_archive_gives_the_names_and_the_words_of_its_files(reader: Reader, name: str, content: bytes) -> None:
    found = read(reader, content, name)
    assert (found.text, found.note) == (TEXT, "")


@pytest.mark.slow
def test_what_systems_put_into_archives_is_left_out(reader: Reader) -> None:
    files = {"__MACOSX/._a.txt": b"\0\5\x16\7", "f/.DS_Store": b"\0\0", "Thumbs.db": OLD, "f/": b"", "a.txt": b"words"}
    found = read(reader, made.pack(files), "a.zip")
    assert (found.text, found.note, found.kept) == ("a.txt\nwords", "", ())


@pytest.mark.slow
def test_archives_and_mails_hold_each_other(reader: Reader) -> None:
    mail = EmailMessage()
    mail.set_content("body")
    mail.add_attachment(made.pack({"in.eml": made.eml("deep")}), maintype="a", subtype="b", filename="attached.zip")
    text = read(reader, tar({"letter.eml": mail.as_bytes()}), "a.tar").text
    assert all(words in text for words in ("letter.eml", "body", "attached.zip", "in.eml", "deep"))


@pytest.mark.slow
def test_a_file_that_cannot_be_read_hides_no_other(reader: Reader) -> None:
    bad = {"a.zip": encrypted_zip(made.pack({"x.txt": b"x"})), "b.zip": odd_zip(made.pack({"x.txt": b"x"}))}
    found = read(reader, made.pack({**bad, "c.pdf": b"%PDF-1.7 damaged", "deep.zip": nested(4), "d.txt": b"words"}))
    assert found.text.endswith("d.txt\nwords")
    assert "'x.txt' was not read: It is encrypted." in found.note
    assert "'x.txt' was not read: It is damaged, or packed in a way that is not read." in found.note
    assert "'c.pdf' was not read: The file is truncated" in found.note
    assert "deeper than is read" in found.note


@pytest.mark.slow
def test_of_a_truncated_archive_the_beginning_is_read(reader: Reader) -> None:
    found = read(reader, tar({"a.txt": b"words", "b.txt": b"x" * 5000})[:3000], "a.tar")
    assert found.text.startswith("a.txt\nwords")
    assert "b.txt" in found.note or "truncated" in found.note
    with pytest.raises(Unreadable):
        read(reader, made.pack(FILES)[:200], "a.zip")
    with pytest.raises(Unreadable):
        read(reader, b"no archive " * 100, "a.tar", "application/x-tar")


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [made.pack, tar], ids=["zip", "tar"])
def test_all_files_within_a_file_share_the_bytes_that_may_be_unpacked(reader: Reader, wrap: object) -> None:
    assert callable(wrap)
    bomb = made.pack({f"{number}.bin": bytes(20 << 20) for number in range(5)})
    found = read(reader, wrap({"a.txt": b"words", "bomb.zip": bomb, "last.txt": b"last"}), "a")
    assert found.text.startswith("a.txt\nwords")
    assert "they unpack to too many bytes" in found.note


@pytest.mark.slow
def test_an_archive_of_very_many_files_is_read_in_part(reader: Reader) -> None:
    found = read(reader, made.pack({f"{number}.txt": b"x" for number in range(10_100)}), "a.zip")
    assert "0.txt\nx\n1.txt" in found.text
    assert "were not read: there are too many." in found.note


@pytest.mark.slow
def test_what_no_reader_here_reads_is_kept_for_another(reader: Reader) -> None:
    files = {"old.doc": OLD, "a.txt": b"words", "inner.zip": made.pack({"scan.pdf": made.pdf(picture=True)})}
    found = read(reader, made.pack(files), "a.zip")
    assert found.kept == (KeptFile("old.doc", OLD), KeptFile("scan.pdf", made.pdf(picture=True)))
    assert (found.note, "words" in found.text) == ("", True)
    many = read(reader, made.pack({f"{number}.doc": OLD for number in range(60)}), "a.zip")
    assert len(many.kept) == 50
    assert "So were 5 more." in many.note


@pytest.mark.slow
def test_without_a_tika_server_nothing_is_kept_and_a_note_says_so() -> None:
    with Reader(limits(RepositoryOptions())) as reader:
        found = read(reader, made.pack({"old.doc": OLD, "a.txt": b"words"}), "a.zip")
    assert found.kept == ()
    assert "'old.doc' was not read: The file is an Office file from before 2007" in found.note
