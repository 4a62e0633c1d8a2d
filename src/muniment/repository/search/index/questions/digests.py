"""By which digest are a document and what an index holds of it compared?"""

import hashlib
import struct

from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.index.contract import DocumentDigest
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.questions import layout

_NUMBERS = struct.Struct(">Qq")


def digest(document: Document, analyser: Analyser) -> DocumentDigest:
    source = layout.source(document, analyser.language_of(document.values, document.text))
    return DocumentDigest(document.seq, document.key, of_stored(source, document.text, document.seq, document.modified))


def of_stored(source: bytes, text: str, number: int, modified: int) -> bytes:
    parts = (_NUMBERS.pack(number, modified), _NUMBERS.pack(len(source), 0), source, text.encode())
    return hashlib.blake2b(b"".join(parts), digest_size=16).digest()
