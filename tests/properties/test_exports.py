"""Exports against the tables: whatever a repository holds, its import holds the same, and exports it in the same lines.

Source: docs/export.md. What a repository holds is read by ``oracle``, which knows no code of exports.
"""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.database.connections import Database
from muniment.ground.refusals import Refusal
from muniment.repository.bulk.exports import lines
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.contents.further_contents import ContentPlace, rendition
from muniment.repository.store.objects.decisions import assigned_acls, checkins, checkouts, contents, moving
from muniment.repository.store.objects.decisions.checkins import CheckIn
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.type_forms import PropertyForm, TypeForm
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.relations import comments, relations
from muniment.repository.store.relations.relations import RelationDraft
from tests.properties.lengths import examples
from tests.servers import Postgres, Sqlite
from tests.shelf import ADMIN, MARTA, Shelf
from tests.unit.repository.bulk.exports.oracle import everything
from tests.unit.repository.bulk.exports.places import Place, export, files

EDITH = Principals("Édith@demo")
CALLERS = (MARTA, ADMIN, EDITH)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)
NUMBERS = st.integers(0, 5)

STEPS = st.one_of(
    st.tuples(st.just("cabinet"), NUMBERS, TEXTS),
    st.tuples(st.just("folder"), NUMBERS, TEXTS),
    st.tuples(st.just("document"), NUMBERS, TEXTS, st.none() | st.binary(max_size=40)),
    st.tuples(
        st.just("letter"), NUMBERS, st.lists(TEXTS, max_size=3), st.floats(allow_nan=False, allow_infinity=False)
    ),
    st.tuples(st.just("link"), NUMBERS, NUMBERS),
    st.tuples(st.just("move"), NUMBERS, NUMBERS, NUMBERS),
    st.tuples(st.just("permit"), NUMBERS, st.sampled_from(list(Permission))),
    st.tuples(st.just("acl"), TEXTS, NUMBERS, st.sampled_from(list(Permission))),
    st.tuples(st.just("default"), NUMBERS, st.sampled_from(list(Permission))),
    st.tuples(st.just("further"), NUMBERS, st.booleans(), st.integers(1, 2), st.binary(max_size=9)),
    st.tuples(st.just("check out"), NUMBERS, NUMBERS),
    st.tuples(st.just("check in"), NUMBERS, st.sampled_from(["next-minor", "next-major", "branch-version"]), TEXTS),
    st.tuples(st.just("relate"), NUMBERS, NUMBERS),
    st.tuples(st.just("comment"), NUMBERS, TEXTS),
    st.tuples(st.just("delete"), NUMBERS, st.booleans()),
)


class Maker:
    """Does one step after the other; what is refused is left out."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.folders: list[str] = []
        self.documents: list[str] = []
        self.moment = shelf.now
        with shelf.database.begin() as cx:
            form = TypeForm(
                "letter", properties=[PropertyForm("tags", "string", True), PropertyForm("weight", "double")]
            )
            type_editing.define_type(cx, shelf.repository.id, form, shelf.now)

    def step(self, step: tuple[Any, ...]) -> None:
        """Do a step."""
        self.moment += 1
        with suppress(Refusal, LookupError):
            self._do(*step)

    def _do(self, kind: str, *what: Any) -> None:  # noqa: C901 - a case for each kind of step
        shelf, cx_of, now = self.shelf, self.shelf.database.begin, self.moment
        view, repository = shelf.view(ADMIN), shelf.repository
        match kind:
            case "cabinet":
                self.folders.append(shelf.create({"object_name": what[1]}, self._caller(what[0]), "cabinet").id)
            case "folder":
                folder_id = self.folders[what[0]]
                self.folders.append(shelf.create({"object_name": what[1]}, ADMIN, "folder", folder_id).id)
            case "document":
                content = None if what[2] is None else shelf.store.put([what[2]])
                given = {"object_name": what[1], "title": what[1]}
                self.documents.append(shelf.create(given, self._caller(what[0]), content=content).id)
            case "letter":
                values = {"object_name": "letter", "tags": what[1], "weight": what[2]}
                folder_id = self.folders[what[0]]
                self.documents.append(shelf.create(values, ADMIN, "letter", folder_id).id)
            case "link":
                with cx_of() as cx:
                    moving.link(cx, view, (self.documents + self.folders)[what[0]], self.folders[what[1]], now)
            case "move":
                with cx_of() as cx:
                    every = self.folders + self.documents
                    moving.move(cx, view, every[what[0]], self.folders[what[1]], self.folders[what[2]], now)
            case "permit":
                with cx_of() as cx:
                    entries = {"owner": Permission.DELETE, "edith@demo": what[1]}
                    assigned_acls.permit(cx, repository, ADMIN, (self.documents + self.folders)[what[0]], entries, now)
            case "acl":
                with cx_of() as cx:
                    acls.add(cx, repository.id, what[0], self._caller(what[1]), {"world": what[2]}, now)
            case "default":
                with cx_of() as cx:
                    assigned_acls.set_default_acl(cx, repository, ADMIN, self.folders[what[0]], {"world": what[1]}, now)
            case "further":
                place = ContentPlace(True, what[2]) if what[1] else rendition("image/png", what[2], "m")
                content = shelf.store.put([what[3]])
                with cx_of() as cx:
                    contents.put(cx, repository, ADMIN, self.documents[what[0]], place, content, "image/png", now)
            case "check out":
                with cx_of() as cx:
                    checkouts.check_out(cx, repository, ADMIN, self.documents[what[0]], now)
            case "check in":
                is_current = what[1] != "branch-version"
                check_in = CheckIn(what[1], {"title": what[2]}, labels=("draft",), make_current=is_current)
                with cx_of() as cx:
                    made = checkins.check_in(cx, view, self.documents[what[0]], check_in, now)
                self.documents.append(made.id)
            case "relate":
                every = self.documents + self.folders
                with cx_of() as cx:
                    draft = RelationDraft("peer", every[what[0]], every[what[1]])
                    relations.add(cx, repository, draft, ADMIN, now, 100)
            case "comment":
                with cx_of() as cx:
                    comments.add(cx, repository, self.documents[what[0]], what[1], ADMIN, now, 100)
            case "delete":
                keep_days = 7 if what[1] else 0
                with cx_of() as cx:
                    objects.delete(cx, repository, ADMIN, self.documents[what[0]], now, keep_days=keep_days)

    def _caller(self, number: int) -> Principals:
        return CALLERS[number % len(CALLERS)]


def test_an_import_holds_what_was_exported(
    engine: Sqlite | Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "PORTION", 3)
    url = engine.fresh("repository")
    database = Database(url)
    numbers = iter(range(10**9))

    @settings(max_examples=examples(8, 500), deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
    @given(st.lists(STEPS, min_size=5, max_size=30))
    def law(steps: list[tuple[Any, ...]]) -> None:
        elsewhere = engine.fresh("repository")
        with TemporaryDirectory() as folder:
            # Equal bytes are kept once for all repositories of a database, so these share a store.
            shelf = Shelf(database, tmp_path, 1_000_000, f"r{next(numbers)}")
            _compare(shelf, elsewhere, Path(folder), steps)
        engine.drop(elsewhere)

    law()
    database.close()
    engine.drop(url)


def _compare(shelf: Shelf, elsewhere: str, folder: Path, steps: list[tuple[Any, ...]]) -> None:
    maker = Maker(shelf)
    for step in (("cabinet", 0, "c"), ("document", 0, "d", b"x"), ("check out", 0, 0), *steps):
        maker.step(step)
    export(shelf, folder / "first")
    place = Place(elsewhere, folder / "place", shelf.repository.name)
    try:
        place.bring_in(folder / "first")
        export(place, folder / "second")
        assert files(folder / "second") == files(folder / "first")
        assert everything(place.database, place.repository.id) == everything(shelf.database, shelf.repository.id)
    finally:
        place.database.close()
