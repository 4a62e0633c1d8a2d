"""The bench prints the cap of every memory: one that the code has and the list lacks fails here."""

from pathlib import Path

from bench import memories, ours


def test_every_module_with_a_memory_of_its_own_is_on_the_list() -> None:
    found = {
        path.relative_to(memories.SOURCES).as_posix()
        for path in memories.SOURCES.rglob("*.py")
        if any(sign in path.read_text() for sign in memories.REMEMBERING)
    }
    assert found == set(memories.MODULES), "list the memory's cap in bench/memories.py"


def test_caps_are_those_of_the_settings_and_the_code(tmp_path: Path) -> None:
    data = ours.prepare(tmp_path / "data", "repository.basic_pairs=77")
    listed = dict(memories.caps(data))
    assert listed["names and passwords of HTTP Basic"] == "77"
    assert listed["pages of SQLite"] == "8 MB a connection"
    assert len([name for name in listed if "." in name]) >= len(memories.cached_modules())
