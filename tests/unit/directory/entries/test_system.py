"""System attributes: those that a release reads take their values only; any other name has to be confirmed."""

import pytest

from muniment.database.connections import Database
from muniment.directory.entries import system
from muniment.directory.refusals import BadAttribute, UnknownAttribute
from muniment.ground.clock import Instant


def test_a_known_attribute_takes_its_values_only_and_keeps_its_spelling(directory_db: Database, now: Instant) -> None:
    with directory_db.begin() as cx:
        system.put(cx, " DIRECTORY.auth.enforcessl ", " FALSE ", now)
        assert [(one.name, one.value) for one in system.all_system_attributes(cx)] == [(system.ENFORCE_SSL, "false")]
        assert not system.enforce_ssl(cx)
        for value in ("no", "0", ""):
            with pytest.raises(BadAttribute, match="true or false"):
                system.put(cx, system.ENFORCE_SSL, value, now, free=True)
        with pytest.raises(BadAttribute, match="set already"):
            system.add(cx, system.ENFORCE_SSL, "true", now)
        assert not system.enforce_ssl(cx)
        assert system.remove(cx, f" {system.ENFORCE_SSL.upper()}")
        assert not system.remove(cx, system.ENFORCE_SSL)
        assert system.enforce_ssl(cx)


def test_a_free_attribute_is_confirmed(directory_db: Database, now: Instant) -> None:
    with directory_db.begin() as cx:
        for write in (system.put, system.add):
            with pytest.raises(UnknownAttribute, match=r"directory\.auth\.EnforceSSL"):
                write(cx, "directory.auth.EnforceTLS", "false", now)
        assert system.all_system_attributes(cx) == []
        system.add(cx, "ours", "1", now, free=True)
        system.put(cx, "ours", "2", now, free=True)
        assert system.get(cx, "OURS") == "2"


def test_whoever_switches_tls_off_is_warned() -> None:
    assert "unencrypted" in system.warning("directory.auth.enforcessl", " False ")
    assert not system.warning(system.ENFORCE_SSL, "true")
    assert not system.warning("ours", "false")
