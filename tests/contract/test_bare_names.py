"""A name without its partition means one user, or none; nobody learns whether it is unknown or ambiguous."""

import pytest

from muniment.directory.entries import credentials, editing, entries
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import SignInRefused, UnknownEntry, UnknownGroup
from muniment.directory.sign_in import attempts
from muniment.directory.sign_in.attempts import SignInAttempt
from muniment.directory.sign_in.pauses import Origin
from muniment.ground.clock import Instant
from tests.office import HASH, HOME, Office, counted

PLAIN, WITH_DEFAULT = DirectoryOptions(), DirectoryOptions(default_partition="PEOPLE")


class Towns:
    """Two partitions more: the one has a user of the name of another's, and one of a mail address."""

    def __init__(self, office: Office, now: Instant) -> None:
        self.office = office
        with office.db.begin() as cx:
            partitions = {name: editing.add_partition(cx, office.names, name, now) for name in ("East", "West")}
            partitions |= {"People": office.partition, "admin": entries.administration(cx)}
            for bearer in ("jo@East", "jo@West", "kim@East", "kim@admin", "lu@People", "lu@West", "a@b.org@East"):
                name, _, partition = bearer.rpartition("@")
                editing.add_user(cx, partitions[partition], name, now, password_hash=HASH)
            editing.add_group(cx, partitions["East"], "alone", now)

    def meant(self, options: DirectoryOptions, text: str) -> str | None:
        with self.office.db.read() as cx:
            found = credentials.find(cx, options, text, bare=True)
            try:
                entry: Entry | None = entries.find_meant(cx, options, text, "user")
            except UnknownEntry:
                entry = None
            assert (found.user if found else None) == entry
            return None if entry is None else entries.shown_id(self.office.names, entry)


@pytest.fixture
def towns(office: Office, now: Instant) -> Towns:
    return Towns(office, now)


@pytest.mark.parametrize(
    ("text", "plain", "with_default"),
    [
        ("bob", "bob@People", "bob@People"),
        ("BOB", "bob@People", "bob@People"),
        ("jo", None, None),
        ("jo@west", "jo@West", "jo@West"),
        ("kim", "kim@directory.admin", "kim@directory.admin"),
        ("lu", None, "lu@People"),
        ("a@b.org", "a@b.org@East", "a@b.org@East"),
        ("a@b.org@East", "a@b.org@East", "a@b.org@East"),
        ("a@b.org@West", None, None),
        ("app", "app@OAuthClients", "app@OAuthClients"),
        ("nobody", None, None),
        ("@", None, None),
        ("", None, None),
        ("\x00", None, None),
    ],
)
def test_a_bare_name_means_the_administrations_user_then_the_defaults_then_the_only_one(
    towns: Towns, text: str, plain: str | None, with_default: str | None
) -> None:
    assert towns.meant(PLAIN, text) == plain
    assert towns.meant(WITH_DEFAULT, text) == with_default


def test_a_group_may_be_named_so_too(towns: Towns) -> None:
    with towns.office.db.read() as cx:
        assert entries.find_meant(cx, PLAIN, "alone", "group").name == "alone"
        with pytest.raises(UnknownGroup):
            entries.find_meant(cx, PLAIN, "bob", "group")


def test_an_ambiguous_name_is_as_an_unknown_one_to_who_signs_in(towns: Towns, now: Instant) -> None:
    office, sentences, counts = towns.office, set(), set()
    begin(office, "nobody", now)  # which reads keys once
    for username in ("jo", "nobody", "jo@Nowhere", "lu"):
        with counted(office.db) as sent:
            attempt = begin(office, username, now)
            with office.db.begin() as cx, pytest.raises(SignInRefused) as refused:
                attempts.finish(cx, PLAIN, attempt, False, now)
        sentences.add(refused.value.sentence)
        counts.add(len(sent))
    assert len(sentences) == len(counts) == 1
    with office.db.begin() as cx:
        assert attempts.finish(cx, PLAIN, begin(office, "alice", now), True, now).name == "alice"


def begin(office: Office, username: str, now: Instant) -> SignInAttempt:
    with office.db.read() as cx:
        return attempts.begin(cx, PLAIN, office.resource, username, Origin(HOME, "1"), now, bare=True)
