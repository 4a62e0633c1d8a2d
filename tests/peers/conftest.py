"""A site on a real socket for other people's software."""

from collections.abc import Iterator

import pytest

from tests.scenes import Served, Site


@pytest.fixture(scope="module")
def served(site: Site) -> Iterator[Served]:
    """The site, over TLS on a free port."""
    running = Served(site)
    yield running
    running.close()
