"""The rate of an import by tenths begins when the first files are there, and shows where it slows down."""

import pytest

from bench.size_rows import by_parts


def test_the_rate_of_each_tenth_is_told_apart() -> None:
    # A second in which nothing happens, 100 a second up to half, then 25 a second.
    moments = [(0.0, 0), (1.0, 0)]
    moments += [(1 + second / 100, second) for second in range(1, 501)]
    moments += [(6 + second / 25, 500 + second) for second in range(1, 501)]
    assert by_parts(moments, 1000) == pytest.approx([100] * 5 + [25] * 5)
