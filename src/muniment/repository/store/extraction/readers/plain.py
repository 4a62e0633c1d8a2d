"""What is the text of a small plain text file? It needs no sandbox: bytes become characters, and nothing is parsed."""

from muniment.repository.store.extraction import formats
from muniment.repository.store.extraction.findings import Extracted
from muniment.repository.store.extraction.readers.characters import decode_if_certain, tidy

LARGEST = 1 << 20
"""A larger file, in bytes, is read in the sandbox."""


def read(content: bytes, name: str, media_type: str, characters: int) -> Extracted | None:
    """Return the text of a file that is declared as plain text (``formats.is_plain``), cut to ``characters``.

    Returns None if the sandbox must read the file: another kind, empty, of more than ``LARGEST`` bytes, or bytes that
    contradict the declaration or do not tell their charset.
    """
    if not content or len(content) > LARGEST or not formats.is_plain(content[: formats.HEAD], name, media_type):
        return None
    text = decode_if_certain(content)
    return cut(text, "", characters) if text else None


def cut(text: str, note: str, characters: int) -> Extracted:
    """Count a result of exactly ``characters`` as cut; its note says only that."""
    text = tidy(text, characters)
    if len(text) == characters:
        return Extracted(text, f"Only the first {characters} characters were kept.")
    return Extracted(text, note)
