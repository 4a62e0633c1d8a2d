"""Who goes when an address has its share of a worker's connections, or when the worker is full."""

import ipaddress

import pytest

from muniment.server.guests import Guest, Guests
from muniment.web.options import WebOptions

MOST = 10
SHARE = 5


class House:
    """The guests of a worker with ten connections, and who had to leave."""

    def __init__(self, *proxies: str) -> None:
        self.guests = Guests(WebOptions(max_connections=MOST, trusted_proxies=proxies))
        self.gone: list[Guest] = []

    def enter(self, client: str) -> Guest:
        guest = self.guests.let_in(client)

        def leave() -> None:
            self.gone.append(guest)
            self.guests.left(guest)

        guest.leave = leave
        return guest


def test_an_address_with_its_share_gives_up_the_connection_it_keeps_waiting_longest() -> None:
    house = House()
    other, *own = [house.enter(client) for client in ("192.0.2.9", *["192.0.2.1"] * SHARE)]
    house.guests.begin(own[0])
    house.guests.rest(own[0])
    house.guests.begin(own[1])
    for _ in own[1:]:
        latest = house.enter("192.0.2.1")
        assert not latest.is_one_too_many
        house.guests.begin(latest)
    assert house.gone == [*own[2:], own[0]]
    assert other not in house.gone


def test_an_address_whose_connections_are_all_at_work_gets_no_further_one() -> None:
    house = House()
    for _ in range(SHARE):
        house.guests.begin(house.enter("192.0.2.1"))
    assert house.enter("192.0.2.1").is_one_too_many
    assert not house.enter("192.0.2.2").is_one_too_many
    assert not house.gone


def test_connections_that_are_refused_take_no_place_from_others() -> None:
    house = House()
    for _ in range(SHARE):
        house.guests.begin(house.enter("192.0.2.1"))
    refused = [house.enter("192.0.2.1") for _ in range(MOST)]
    assert house.gone == refused[:-1]
    house.guests.begin(refused[-1])
    for _ in range(MOST):
        guest = house.enter("192.0.2.1")
        assert guest.is_one_too_many
        house.guests.begin(guest)
    for number in range(MOST - 1 - SHARE):
        guest = house.enter(f"198.51.100.{number}")
        assert not guest.is_one_too_many
        house.guests.begin(guest)
    assert house.enter("198.51.100.9").is_one_too_many
    assert house.gone == refused[:-1]


def test_a_full_worker_gives_up_the_connection_that_keeps_it_waiting_longest_wherever_it_comes_from() -> None:
    house = House()
    guests = [house.enter(f"192.0.2.{number}") for number in range(MOST - 1)]
    for guest in guests[:3]:
        house.guests.begin(guest)
    house.guests.rest(guests[0])
    for number in range(MOST):
        house.guests.begin(house.enter(f"198.51.100.{number}"))
    assert house.gone == [*guests[3:], guests[0]]


def test_a_trusted_proxy_has_no_share() -> None:
    house = House("192.0.2.0/24")
    for _ in range(MOST - 2):
        house.guests.begin(house.enter("192.0.2.1"))
    assert not house.enter("192.0.2.1").is_one_too_many
    assert not house.gone


@pytest.mark.parametrize(
    ("first", "second"),
    [("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"), ("::ffff:192.0.2.1", "192.0.2.1"), ("::1", "::1")],
)
def test_addresses_that_one_caller_can_choose_among_share(first: str, second: str) -> None:
    house = House()
    for _ in range(SHARE):
        house.guests.begin(house.enter(first))
    assert house.enter(second).is_one_too_many
    assert not house.enter(str(ipaddress.ip_address("2001:db8:9::1"))).is_one_too_many


def test_a_connection_that_left_is_counted_no_more_and_leaves_once() -> None:
    house = House()
    guests = [house.enter("192.0.2.1") for _ in range(SHARE)]
    for _ in range(2):
        house.guests.left(guests[0])
    house.guests.wait_for(guests[0])
    house.guests.rest(guests[0])
    house.enter("192.0.2.1")
    assert not house.gone
    house.enter("192.0.2.1")
    assert house.gone == [guests[1]]
