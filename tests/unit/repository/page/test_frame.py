"""What every page of the search page needs."""

import pytest

from muniment.repository.page import frame


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (9_940, "9.9 kB"),
        (9_960, "10 kB"),
        (999_499, "999 kB"),
        (999_950, "1.0 MB"),
        (999_500_000, "1.0 GB"),
        (10**12 - 1, "1.0 TB"),
        (1234 * 10**12, "1234 TB"),
    ],
)
def test_an_amount_has_the_unit_of_its_rounded_number(size: int, text: str) -> None:
    assert frame.amount(size) == text
