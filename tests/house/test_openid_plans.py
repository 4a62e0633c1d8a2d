"""The table of docs/openid-plans.md names tests that exist, or a reason."""

import re

from tests.house.sources import ROOT

_LINE = re.compile(r"^\| `(oidcc-[a-z0-9-]+)` \|[^|]*\|(.*)\|$", re.MULTILINE)
_NAMED = re.compile(r"`([a-z_0-9/]+\.py)::(test_\w+)`")
CASES = 40
"""The basic plan's and the config plan's one."""


def test_each_case_has_a_test_that_is_there_or_a_reason() -> None:
    lines = _LINE.findall((ROOT / "docs" / "openid-plans.md").read_text("utf-8"))
    assert len(dict(lines)) == len(lines) == CASES
    for case, said in lines:
        named = _NAMED.findall(said)
        assert named or "not offered: " in said, f"{case}: neither a test nor a reason"
        for file, name in named:
            text = (ROOT / "tests" / file).read_text("utf-8")
            assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{case}: {file} has no {name}"
