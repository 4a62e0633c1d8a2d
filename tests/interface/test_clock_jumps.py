"""The clock jumps an hour: what lives goes on living, what is dead stays dead once it is right again."""

import pytest

from tests.scenes import Site, fulltext

HOUR = 3600


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_token_outlives_a_jump_of_the_clock_by_no_more_than_the_jump(site: Site, jump: int) -> None:
    clock, person = site.world.clock, site.world.person()
    issued = site.issue(person)
    seconds = issued["expires_in"]
    with clock.shift(jump):
        alive = 200 if jump < seconds else 410
        assert site.tokeninfo(issued["access_token"]).status_code == alive
        meanwhile = site.issue(person)
        assert site.tokeninfo(meanwhile["access_token"]).status_code == 200
        assert meanwhile["expires_in"] == seconds
    assert site.tokeninfo(issued["access_token"]).status_code == 200
    with clock.shift(seconds + max(0, jump)):
        for token in (issued["access_token"], meanwhile["access_token"]):
            assert site.tokeninfo(token).status_code == 410
    ended = site.issue(person)
    with clock.shift(jump):
        assert site.revoke(ended["refresh_token"]).status_code == 204
    assert site.tokeninfo(ended["access_token"]).status_code == 410
    assert site.refresh(ended["refresh_token"]).status_code == 400


def test_a_pause_of_sign_in_ends_in_its_time_though_the_clock_goes_back(site: Site) -> None:
    """failures A5: and who is signed in already works on."""
    options = site.installation.settings.directory
    clock, person = site.world.clock, site.world.person()
    issued = site.issue(person)
    for _ in range(options.lockout_failures):
        assert site.ask_token(person, password="wrong").status_code == 400
    assert site.ask_token(person).status_code == 400
    assert site.tokeninfo(issued["access_token"]).status_code == 200
    assert site.refresh(issued["refresh_token"]).status_code == 200
    with clock.shift(-HOUR):
        assert site.ask_token(person).status_code == 200


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_positions_go_on_and_the_index_follows(site: Site, jump: int) -> None:
    word = site.world.word()
    first = site.create("before", word.encode())
    before = site.http.get(f"{site.repository}/objects/{first}", headers=site.bearer())
    assert before.status_code == 200
    person = site.world.person("writers")
    with site.world.clock.shift(jump):
        second = site.create("meanwhile", word.encode(), person=person)
        site.share(second, person=person)
        site.world.catch_up()
        assert site.search(fulltext(word), person=person).ids == [second]
    site.share(first)
    third = site.create("after", word.encode())
    site.world.catch_up()
    assert set(site.search(fulltext(word)).ids) == {first, second, third}
