"""Real texts of one to three kilobytes: passages of the pages in Debian's documentation packages, in several languages.

Needs Debian's ``apt-get`` and ``dpkg-deb`` (no root). Read from the cache after the first time.
"""

import hashlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import lxml.etree
import lxml.html
import msgspec

from bench import documents
from bench.peers import Missing, cache

PACKAGES = (
    "postgresql-doc-15",
    "python-django-doc",
    "sqlite3-doc",
    "libboost1.81-doc",
    "python3.11-doc",
    "libreoffice-help-en-us",
    "libreoffice-help-de",
    "libreoffice-help-fr",
    "libreoffice-help-es",
    "libreoffice-help-it",
    "libreoffice-help-pt-br",
    "libreoffice-help-pl",
    "libreoffice-help-nl",
    "libreoffice-help-ru",
)
_LEAST, _MOST = 1000, 3000
_SKIPPED = ("script", "style", "nav", "header", "footer")
_WORD = re.compile(r"\b[a-z]{4,14}\b")


def passages(count: int) -> list[str]:
    """Give so many passages, or fewer if the packages hold fewer. Raises Missing when none can be had."""
    kept = cache() / "passages.json"
    if not kept.exists():
        made = _make()
        if not made:
            raise Missing("no documentation package could be downloaded with apt-get")
        kept.write_bytes(msgspec.json.encode(made))
    every = msgspec.json.decode(kept.read_bytes(), type=list[str])
    # From all packages alike, whatever the number.
    step = max(1, len(every) // count)
    return every[::step][:count]


def queries(texts: Sequence[str]) -> list[list[str]]:
    """Choose sixteen single words and sixteen pairs, from rare to common, that real passages hold together.

    The same texts give the same words.
    """
    frequencies: Counter[str] = Counter()
    for text in texts:
        frequencies.update(set(_WORD.findall(text.lower())))
    wanted = [len(texts) * share for share in (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12)]
    ranked = sorted(frequencies.items(), key=lambda one: (one[1], one[0]))
    chosen: list[list[str]] = []
    for target in wanted:
        close = sorted(ranked, key=lambda one: abs(one[1] - target))[:2]
        chosen += [[word] for word, _ in close]
    singles = [words[0] for words in chosen]
    for number, word in enumerate(singles):
        with_it = (text for text in texts if f" {word} " in text)
        holding = [sorted(set(_WORD.findall(text.lower()))) for text in islice(with_it, 20 + number)]
        beside = Counter(other for words in holding for other in words if other != word and frequencies[other] > 20)
        if beside:
            chosen.append([word, beside.most_common(8)[-1][0]])
    return chosen


def _make() -> list[str]:
    seen: set[bytes] = set()
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as scratch:
        for package in PACKAGES:
            try:
                tree = documents.unpack(Path(scratch), [package])[package]
            except (OSError, documents.FAILED) as error:
                print(f"    {package} left out: {error}", flush=True)
                continue
            for page in sorted(tree.rglob("*.html")):
                for passage in _passages_of(page):
                    digest = hashlib.sha256(passage.encode()).digest()
                    if digest not in seen:
                        seen.add(digest)
                        found.append(passage)
    return found


def _passages_of(page: Path) -> Iterator[str]:
    try:
        root = lxml.html.fromstring(page.read_bytes())
    except (lxml.etree.LxmlError, ValueError):
        return
    for element in root.iter(*_SKIPPED):
        element.text = None
        del element[:]
    kept, size = [], 0
    for part in root.itertext():
        words = " ".join(str(part).split())
        if not words:
            continue
        kept.append(words)
        size += len(words) + 1
        if size >= _LEAST * 1.5:
            yield " ".join(kept)[:_MOST]
            kept, size = [], 0
    if size >= _LEAST:
        yield " ".join(kept)[:_MOST]
