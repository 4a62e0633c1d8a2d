"""Pages: their sizes, and cookies that no other list gives or takes."""

import base64

import pytest

from muniment.directory.api.rest import paging
from muniment.directory.api.rest.paging import Wanted
from muniment.directory.entries.listing import ListPlace
from muniment.ground.refusals import Malformed
from tests.office import Office


def cookie(office: Office, wanted: Wanted, place: ListPlace) -> str:
    with office.db.read() as cx:
        found: str = wanted.fields(cx, 2, place)["next_page_cookie"]
    return found


@pytest.mark.parametrize("key", ["", "a", "ab", "abc", "ä€😀" * 40, '"\\ '])
def test_a_cookie_leads_to_the_place_that_it_was_made_of(office: Office, key: str) -> None:
    place = ListPlace(3, key, 12345678901)
    made = cookie(office, Wanted("users", 2, "", None), place)
    assert made.endswith("==")
    with office.db.read() as cx:
        assert Wanted("users", 2, made, None).after(cx) == place
        assert Wanted("users", 2, "", None).after(cx) is None
        assert Wanted("users", 2, made, None).fields(cx, 1, None)["next_page_cookie"] is None


def test_a_cookie_of_another_list_or_with_another_filter_or_altered_is_refused(office: Office) -> None:
    made = cookie(office, Wanted("users", 2, "", "a"), ListPlace(0, "name", 7))
    content = base64.b64decode(made)
    altered = base64.b64encode(content[:-2] + b"9" + content[-1:]).decode()
    for other in (
        Wanted("groups", 2, made, "a"),
        Wanted("users", 2, made, "b"),
        Wanted("users", 2, made, None),
        Wanted("users", 2, altered, "a"),
        Wanted("users", 2, "garbage", "a"),
        Wanted("users", 2, "AAAA", "a"),
        Wanted("users", 2, "\udc80", "a"),
    ):
        with office.db.read() as cx, pytest.raises(Malformed):
            other.after(cx)


@pytest.mark.parametrize(("text", "size"), [("", 250), (" ", 250), ("1", 1), ("1000", 1000), ("5000", 1000)])
def test_a_size_is_within_bounds(text: str, size: int) -> None:
    assert paging.read_size(text) == size


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "9" * 30])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        paging.read_size(text)


def test_names_of_ignored_parameters_fit_a_header() -> None:
    assert paging.ignored(["limit", "a\nb", "é"]) == "limit, a%0Ab, %C3%A9"
    assert len(paging.ignored(["x" * 1000] * 100)) <= 500
