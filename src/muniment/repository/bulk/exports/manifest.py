"""What does an export hold? The manifest, written last, lists it: without one, an export is not whole."""

import hashlib
from pathlib import Path

import msgspec

from muniment.ground import disk
from muniment.ground.clock import Instant
from muniment.repository.bulk.exports.lines import FileSummary, open_regular
from muniment.repository.refusals import BadExport

NAME = "manifest.json"
FORMAT = 1
_LONGEST = 1 << 20


class ExportManifest(msgspec.Struct, frozen=True):
    """A whole export.

    ``language`` is the repository's own, if any. ``files`` describes files of lines and the list of contents; equal
    contents count once.
    """

    format: int
    release: str
    repository: str
    language: str
    exported: Instant
    files: dict[str, FileSummary]
    contents: int
    content_bytes: int


class _Format(msgspec.Struct):
    format: int


def write(folder: Path, manifest: ExportManifest) -> None:
    disk.replace(folder / NAME, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")


def read(folder: Path) -> tuple[ExportManifest, str]:
    """Return the manifest, and the digest of its file, which no other export has.

    Raises BadExport.
    """
    if not (folder / NAME).exists():
        raise BadExport(f"{folder} holds no whole export: there is no {NAME} in it.")
    with open_regular(folder / NAME) as source:
        text = source.read(_LONGEST)
    try:
        number = msgspec.json.decode(text, type=_Format).format
        if number != FORMAT:
            raise BadExport(f"The export is of format {number}; this release reads format {FORMAT}.")
        manifest = msgspec.json.decode(text, type=ExportManifest)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadExport(f"{NAME} is damaged: {str(error)[:300]}.") from error
    return manifest, hashlib.sha256(text).hexdigest()
