"""The console blocks of the docs: their commands run in the order of the page, and print what the page shows.

``MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_pages.py`` writes into the pages what the commands print now.
"""

import shutil
from pathlib import Path

import pytest

from tests.e2e.pages import altered, commands, shape
from tests.house.sources import ROOT

PAGES = ("README.md", pytest.param("docs/first-day.md", marks=pytest.mark.campaign))


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    if any("curl" in command for command in commands((ROOT / name).read_text())) and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    assert not altered(name, tmp_path), "run MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_pages.py"


def test_a_shape_forgets_what_varies_and_nothing_else() -> None:
    assert (
        shape("Password:  nGgde55A_cWhtXci\n0.656  097039bc0d97381f  lease.txt\n") == "Password: ...\n... ... lease.txt"
    )
    assert shape("user  anna@staff  active") != shape("user  anna@staff  disabled")
    assert shape("2 found") != shape("0 found")
