"""What a client writes of a user, and what it reads."""

import tomllib
from pathlib import Path

import msgspec
import pytest
from sqlalchemy.engine import Connection

from muniment.directory.entries import attributes, editing, entries
from muniment.directory.entries.attributes import CustomAttribute
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute
from muniment.ground.clock import Instant, timestamp
from tests.office import Office

EXAMPLE = Path(__file__).parents[4] / "examples" / "names-of-the-field.toml"
FIELD = msgspec.convert(tomllib.loads(EXAMPLE.read_text("utf-8"))["directory"]["names"], DirectoryNames)

FLAGS = "accountDisabled accountLockedOut pwdReset PasswordNeverExpires UserCannotChangePassword"
TIMES = "createTimestamp modifyTimestamp passwordChangedTime oTLastLoginTimestamp"
TEXTS = "cn sn givenName displayName mail description UserMustChangePasswordAtNextSignIn"
IDS = "oTExternalID1 oTExternalID2 oTExternalID3 oTExternalID4 entryDN entryUUID oTObjectGUID schemaType oTMemberOf"
OF_THE_FIELD = " ".join((FLAGS, TIMES, TEXTS, IDS))


def shown(cx: Connection, names: DirectoryNames, entry: Entry) -> dict[str, list[str | int]]:
    stored = attributes.stored_values_of(cx, [entry.id]).get(entry.id, {})
    location, partition = entries.location(names, entry), entries.shown_partition(names, entry)
    return {one.name: one.values for one in attributes.of_entry(names, entry, stored, partition, location, {})}


def test_all_attributes_of_the_field_are_shown_under_its_names(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        editing.set_description(cx, office.alice, "Sells.", now)
    office.sign_in(now)
    with office.db.read() as cx:
        found = shown(cx, FIELD, entries.find_user(cx, FIELD, "alice@People"))
    assert set(OF_THE_FIELD.split()) <= found.keys()
    assert found["pwdReset"] == ["false"]
    assert found["passwordChangedTime"] == found["oTLastLoginTimestamp"] == [timestamp(now)]
    assert found["schemaType"] == ["3"]
    assert found["description"] == ["Sells."]
    assert len(str(found["oTObjectGUID"][0])) == 24


def test_what_a_client_has_read_it_can_send_back(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        attributes.put(cx, FIELD, office.alice, {"mail": ["a@x"], "oTMobile": ["1"], "number": [7]}, now)
        stored = attributes.stored_values(cx, office.alice.id)
        assert stored == {"mail": ["a@x"], "mobile": ["1"], "number": [7]}
        read = shown(cx, FIELD, entries.find_user(cx, FIELD, "alice@People"))
        written = attributes.read_written(FIELD, read.items())
        assert not any(written.flags.values())
        attributes.put(cx, FIELD, office.alice, written.stored, now)
        defaults = {"sn": ["alice"], "displayName": ["alice"]}
        assert attributes.stored_values(cx, office.alice.id) == stored | defaults


def test_flags_a_description_and_a_password_are_sorted_from_what_is_stored() -> None:
    written = attributes.read_written(
        FIELD,
        [
            ("accountdisabled", ["True"]),
            ("PasswordNeverExpires", ["FALSE"]),
            ("UserMustChangePasswordAtNextSignIn", []),
            ("userPassword", ["secret"]),
            ("description", ["x"]),
            ("oTExternalID3", ["mine"]),
            ("OTDEPARTMENT", ["Sales"]),
            ("Mail", ["a@x"]),
            ("oTType", ["ServiceUser"]),
            ("oTExtraAttr9", ["z"]),
            ("shoeSize", [42]),
        ],
    )
    assert written.flags == {"disabled": True, "password_never_expires": False, "must_change_password": False}
    assert (written.description, written.password) == ("x", "secret")
    assert written.stored == {
        "department": ["Sales"],
        "mail": ["a@x"],
        "accountType": ["ServiceUser"],
        "extraAttribute9": ["z"],
        "shoeSize": [42],
    }
    assert attributes.read_written(FIELD, [("ds-pwp-account-disabled", ["true"])]).flags == {"disabled": True}
    with pytest.raises(BadAttribute):
        attributes.read_written(FIELD, [("accountLockedOut", ["perhaps"])])


def test_custom_attributes_are_replaced_together(office: Office, now: Instant) -> None:
    first = [CustomAttribute("text", "colour", "red"), CustomAttribute("", "colour", "blue")]
    with office.db.begin() as cx:
        attributes.put_custom(cx, office.bob, first, now)
        assert attributes.custom_of(cx, [office.bob.id, office.alice.id]) == {office.bob.id: first}
        attributes.put_custom(cx, office.bob, first[1:], now)
        assert attributes.custom_of(cx, [office.bob.id]) == {office.bob.id: first[1:]}
        for wrong in (
            CustomAttribute("t", "", "v"),
            CustomAttribute("t" * 65, "n", "v"),
            CustomAttribute("t", "n", "\x00"),
            CustomAttribute("t", "n", "v" * 4001),
        ):
            with pytest.raises(BadAttribute):
                attributes.put_custom(cx, office.bob, [wrong], now)
        with pytest.raises(BadAttribute):
            attributes.put_custom(cx, office.bob, first * 51, now)


def test_a_group_has_attributes_of_its_own(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        attributes.put(cx, FIELD, office.group, {"displayName": ["All of us"]}, now)
        found = shown(cx, FIELD, office.group)
    assert found["displayName"] == ["All of us"]
    assert found["oTExternalID2"] == ["staff@People"]
    assert not {"accountDisabled", "pwdReset", "sn", "oTExternalID3"} & found.keys()
