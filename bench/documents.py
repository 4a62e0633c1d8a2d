"""A folder of real documents: PDF and HTML from Debian documentation packages, and office files made of them.

Needs Debian's ``apt-get`` and ``dpkg-deb`` (no root), and LibreOffice for the office files. The documents carry mixed
free licences: they are read, never kept in the project.

    python bench/documents.py FOLDER
"""

import csv
import html
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGES = ("postgresql-doc-15", "libreoffice-help-en-us", "texlive-humanities-doc")
PAGES = {"postgresql-doc-15": 1200, "libreoffice-help-en-us": 400}
FAILED = subprocess.CalledProcessError
OFFICE = {"docx": "docx:MS Word 2007 XML", "odt": "odt:writer8", "rtf": "rtf"}


def main(folder: Path) -> None:
    """Fill the folder, unless it is filled already."""
    done = folder / ".done"
    if done.exists():
        print(f"{folder} is complete: {sum(1 for _ in files(folder))} files")
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        packages = unpack(Path(scratch), PACKAGES)
        for package, tree in packages.items():
            copy(tree, folder / package, PAGES.get(package, 0))
        if shutil.which("soffice"):
            make_office_files(sorted((folder / "postgresql-doc-15").rglob("*.html")), folder / "office", Path(scratch))
        else:
            print("LibreOffice is not installed: no office files are made")
    done.touch()
    print(f"{folder}: {sum(1 for _ in files(folder))} files")


def files(folder: Path) -> Iterator[Path]:
    """List the documents."""
    return (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def unpack(scratch: Path, packages: Sequence[str]) -> dict[str, Path]:
    """Download the packages and unpack each into a folder of its own. Raises FAILED for one that is not to be had."""
    trees = {}
    for package in packages:
        place = scratch / package
        place.mkdir()
        print(f"fetching {package}", flush=True)
        # apt drops to its own user, which cannot write into a private folder: fetch where it may.
        subprocess.run(
            ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package],
            cwd=place,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (archive,) = place.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, place / "tree"], check=True)
        trees[package] = place / "tree"
    return trees


def copy(tree: Path, target: Path, pages: int) -> None:
    """Copy every PDF and the first HTML pages, keeping the folders below the documentation's root."""
    found = sorted(tree.rglob("*.pdf")) + sorted(tree.rglob("*.html"))[:pages]
    for path in found:
        place = target / path.relative_to(tree / "usr" / "share")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


def make_office_files(pages: list[Path], target: Path, scratch: Path) -> None:
    """Make word processor, spreadsheet and presentation files of the pages' text."""
    target.mkdir(exist_ok=True)
    chosen = [page for page in pages if page.stat().st_size > 8000][:120]
    for number, (suffix, filter_name) in enumerate(OFFICE.items()):
        print(f"making .{suffix} files", flush=True)
        convert(chosen[number::3], filter_name, target, scratch, "--infilter=HTML (StarWriter)")
    tables, decks = scratch / "tables", scratch / "decks"
    tables.mkdir()
    decks.mkdir()
    for page in chosen[:20]:
        lines = [line for line in text(page).splitlines() if line.strip()]
        with (tables / f"{page.stem}.csv").open("w", newline="", encoding="utf-8") as sheet:
            csv.writer(sheet).writerows(enumerate(lines, 1))
        (decks / f"{page.stem}.fodp").write_text(deck(lines), encoding="utf-8")
    print("making .xlsx and .pptx files", flush=True)
    convert(sorted(tables.glob("*.csv")), "xlsx:Calc MS Excel 2007 XML", target, scratch, "--infilter=CSV:44,34,UTF8")
    convert(sorted(decks.glob("*.fodp")), "pptx", target, scratch)


def convert(sources: list[Path], filter_name: str, target: Path, scratch: Path, *options: str) -> None:
    """Convert many files in one call: LibreOffice starts slowly."""
    subprocess.run(
        [
            "soffice",
            f"-env:UserInstallation=file://{scratch}/profile",
            "--headless",
            "--norestore",
            "--nologo",
            *options,
            "--convert-to",
            filter_name,
            "--outdir",
            target,
            *sources,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def text(page: Path) -> str:
    """The page's text, roughly: enough to fill cells and slides with real words."""
    import lxml.html

    body = lxml.html.fromstring(page.read_bytes())
    return "\n".join(" ".join(str(part).split()) for part in body.itertext() if part.strip())


def deck(lines: list[str]) -> str:
    """Write a flat OpenDocument presentation, five lines a slide."""
    slides = "".join(
        f'<draw:page draw:name="s{number}"><draw:frame svg:width="24cm" svg:height="12cm" svg:x="2cm" svg:y="2cm">'
        f"<draw:text-box><text:p>{html.escape(' '.join(lines[number : number + 5]))}</text:p></draw:text-box>"
        "</draw:frame></draw:page>"
        for number in range(0, min(len(lines), 100), 5)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><office:document '
        'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
        'xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" office:version="1.2" '
        'office:mimetype="application/vnd.oasis.opendocument.presentation">'
        f"<office:body><office:presentation>{slides}</office:presentation></office:body></office:document>"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
