"""Each write, sync, rename and commit on the way fails once: nothing answered is lost, nothing is kept by half.

Uploads, replacements and deletions over HTTP; a folder's import; packs; their compaction; the index's commit. The
answer says that it failed, and what comes later works.
"""

import hashlib
import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from muniment.database.connections import Busy
from muniment.ground.refusals import Refusal
from muniment.installation import backends
from muniment.repository.bulk.importing.mirror import Import
from muniment.repository.bulk.importing.report import ImportReport
from muniment.repository.search.agent import agent, checking
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.content import packs
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.content.files import FileStore, Packing
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.contents import compaction
from muniment.repository.store.objects.decisions import contents as object_contents
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from tests.clock import Clock
from tests.conftest import Fresh
from tests.contents import contents
from tests.faults import fail_each_step
from tests.scenes import Loop, Site, World

pytestmark = pytest.mark.campaign_on("postgresql")

ADMINISTRATOR = Principals("root@staff", administrator=True)
SMALL, LARGE = b"small words %d", b"large words %d " + b"x" * 100_000
PACKED = {"create", "fsync", "pwrite", "fdatasync"}
IN_FILES = {"create", "write", "fsync", "rename", "mkdir"}
ROW = {"sqlite": {"begin immediate", "commit", "commit, then gone"}, "postgresql": {"commit", "commit, then gone"}}


class House:
    """A world of its own, and what its callers were answered."""

    def __init__(self, world: World, site: Site) -> None:
        self.world, self.site = world, site
        self.answered: dict[str, bytes] = {}
        self.gone = set[str]()
        self.numbers = itertools.count()
        with world.repository_db.read() as cx:
            self.repository: Repository = repositories.find(cx, World.repository)

    @property
    def row_steps(self) -> set[str]:
        """The steps of a transaction."""
        return ROW[self.world.repository_db.dialect]

    @property
    def content_folder(self) -> Path:
        """Where content lies."""
        return self.world.installation.content

    def create(self, content: bytes) -> httpx.Response:
        """Make a document with content in one request."""
        return self.site.http.post(
            f"{self.site.repository}/objects",
            params={"object-name": "paper.txt"},
            content=content,
            headers=self.site.bearer() | {"Content-Type": "text/plain"},
        )

    def replace(self, object_id: str, content: bytes) -> httpx.Response:
        """Replace a document's content."""
        return self.site.http.post(
            f"{self.site.repository}/objects/{object_id}/contents",
            content=content,
            headers=self.site.bearer() | {"Content-Type": "text/plain"},
        )

    def delete(self, object_id: str) -> httpx.Response:
        """Delete a document."""
        return self.site.http.delete(f"{self.site.repository}/objects/{object_id}", headers=self.site.bearer())

    def text(self, object_id: str) -> bytes:
        """Download a document."""
        answer = self.site.http.get(
            f"{self.site.repository}/objects/{object_id}/content-media", headers=self.site.bearer()
        )
        assert answer.status_code == 200, answer.text
        return answer.content

    def rows(self) -> dict[str, StoredObject]:
        """Every object that has content."""
        with self.world.repository_db.read() as cx:
            return {each.id: each for each in inventory.next_objects(cx, self.repository.id, 0, 10_000) if each.content}

    def check(self, possible: set[bytes]) -> None:
        """What was answered is there, and no row names a content that is damaged, missing or that nobody has sent."""
        store, rows = FileStore(self.content_folder), self.rows()
        for stored in rows.values():
            assert stored.content is not None
            assert b"".join(store.read(stored.content)) in possible, "a row names what nobody has sent"
        for object_id, content in self.answered.items():
            kept = rows[object_id].content
            assert kept is not None
            assert kept.sha256 == hashlib.sha256(content).digest()
        for object_id in list(self.answered)[-3:]:
            assert self.text(object_id) == self.answered[object_id]
        assert not self.gone & rows.keys()


@pytest.fixture
def house(fresh: Fresh, tmp_path: Path, loop: Loop) -> Iterator[House]:
    (tmp_path / "data").mkdir(mode=0o700)
    world = World(tmp_path / "data", fresh("directory"), fresh("repository"))
    site = Site(world, "neutral", loop)
    site.bearer()
    made = House(world, site)
    with world.repository_db.begin() as cx:
        acls.initialise(cx, made.repository.id, world.clock())
    yield made
    site.close()
    world.close()


def says_so(answer: httpx.Response, step: str, success: int) -> bool:
    """The answer is a success, or a refusal that a client can understand; without a failed step it is a success."""
    if answer.status_code == success:
        return True
    assert step, answer.text
    assert answer.status_code in {503, 507}, answer.text
    return False


@pytest.mark.parametrize("text", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("new_pack", [True, False], ids=["a new pack", "a pack in use"])
def test_a_document_is_made_whole_or_not_at_all(
    house: House, text: bytes, new_pack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "_LIFE", 0 if new_pack else packs._LIFE)
    sent = set[bytes]()

    def work() -> tuple[bytes, httpx.Response]:
        sent.add(content := text % next(house.numbers))
        return content, house.create(content)

    def check(done: tuple[bytes, httpx.Response], step: str) -> None:
        content, answer = done
        if says_so(answer, step, 201):
            house.answered[answer.json()["properties"]["r_object_id"]] = content
        later = house.create(SMALL % next(house.numbers))
        assert later.status_code == 201, later.text
        house.check(sent | {SMALL % number for number in range(next(house.numbers))})
        assert not list((house.content_folder / "incoming").iterdir())

    assert house.create(b"first").status_code == 201
    sent.add(b"first")
    expected = IN_FILES if text is LARGE else PACKED if new_pack else {"pwrite", "fdatasync"}
    rounds = fail_each_step(house.world.folder, work, check, expected | house.row_steps)
    rows = house.rows()
    assert len(contents(house.content_folder)) - len(rows) <= 2 * rounds, (
        "what was refused for certain is removed at once"
    )


@pytest.mark.parametrize("text", [SMALL, LARGE], ids=["small", "large"])
def test_content_is_replaced_whole_or_not_at_all(house: House, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "_LIFE", 0)
    made = house.create(b"first").json()["properties"]["r_object_id"]
    versions = {b"first"}
    house.answered[made] = b"first"

    def work() -> tuple[bytes, httpx.Response]:
        versions.add(content := text % next(house.numbers))
        return content, house.replace(made, content)

    def check(done: tuple[bytes, httpx.Response], step: str) -> None:
        content, answer = done
        before = house.answered[made]
        if says_so(answer, step, 201):
            house.answered[made] = content
        elif step == "commit, then gone":
            assert house.text(made) in (before, content)
            house.answered[made] = house.text(made)
        house.check(versions)

    expected = house.row_steps | {"fsync" if text is LARGE else "fdatasync"}
    fail_each_step(house.world.folder, work, check, expected)


FORM = {"Content-Type": "multipart/form-data; boundary=cut"}
PLAIN = {"Content-Type": "text/plain"}


def several(text: bytes, number: int, name: str = "paper.txt") -> tuple[bytes, list[bytes]]:
    """A multipart body with metadata and two contents, and these contents."""
    contents = [text % number, SMALL % number + b", as a rendition"]
    metadata = b'{"properties": {"object_name": "%s"}}' % name.encode()
    heads = [b"Content-Type: application/json", *[b"Content-Type: text/plain"] * 2]
    pieces = [b"--cut\r\n" + head + b"\r\n\r\n" + body for head, body in zip(heads, [metadata, *contents], strict=True)]
    return b"\r\n".join([*pieces, b"--cut--\r\n"]), contents


class Door:
    """A way for contents to come in, beside those of the first release. Each request makes or changes one object."""

    def __init__(self, house: House, way: str, text: bytes) -> None:
        self.house, self.way, self.text = house, way, text
        self.made = house.create(b"first").json()["properties"]["r_object_id"]

    def ready(self) -> None:
        """Check the object out, where that is needed."""
        if self.way.startswith("check-in"):
            address = f"{self.house.site.repository}/objects/{self.made}"
            headers = self.house.site.bearer()
            current = self.house.site.http.get(f"{address}/versions/current", headers=headers)
            self.made = current.json()["properties"]["r_object_id"]
            locked = self.house.site.http.put(f"{self.house.site.repository}/objects/{self.made}/lock", headers=headers)
            assert locked.status_code == 200, locked.text

    def send(self, number: int) -> tuple[list[bytes], httpx.Response]:
        """Send contents; return them and the answer."""
        own, content = f"/objects/{self.made}", self.text % number
        body, contents = several(self.text, number)
        path, headers, sent, contents = {
            "several": ("/objects?content-count=2", FORM, body, contents),
            "rendition": (f"{own}/contents?primary=false&format=pdf", PLAIN, content, [content]),
            "page": (f"{own}/contents?page=1", PLAIN, content, [content]),
            "check-in": (f"{own}/versions?version-policy=next-minor", PLAIN, content, [content]),
            "check-in of several": (f"{own}/versions?version-policy=next-major", FORM, body, contents),
        }[self.way]
        address = f"{self.house.site.repository}{path}"
        return contents, self.house.site.http.post(address, content=sent, headers=self.house.site.bearer() | headers)

    def named(self) -> list[bytes]:
        """Read every content that any object names: each is whole."""
        store = FileStore(self.house.content_folder)
        with self.house.world.repository_db.read() as cx:
            rows = inventory.next_objects(cx, self.house.repository.id, 0, 10_000)
            every = [each.content for stored in rows for each in object_contents.all_contents(cx, stored)]
        return [b"".join(store.read(content)) for content in every]


@pytest.mark.only("sqlite", "Both databases go through the first doors; what these add is the store's.")
@pytest.mark.parametrize(
    ("way", "text"),
    [("several", LARGE), ("rendition", SMALL), ("page", LARGE), ("check-in", LARGE), ("check-in of several", SMALL)],
)
def test_contents_come_in_whole_or_not_at_all_by_any_door(
    house: House, way: str, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "_LIFE", 0)
    door, sent = Door(house, way, text), {b"first"}
    door.ready()

    def unnamed() -> int:
        return len(contents(house.content_folder)) - len(set(door.named()))

    def work() -> tuple[list[bytes], int, list[bytes], httpx.Response]:
        before, unnamed_before = door.named(), unnamed()
        content, answer = door.send(next(house.numbers))
        sent.update(content)
        return before, unnamed_before, content, answer

    def check(done: tuple[list[bytes], int, list[bytes], httpx.Response], step: str) -> None:
        before, unnamed_before, content, answer = done
        named, is_in = door.named(), says_so(answer, step, 201)
        assert sent >= set(named), "an object names what nobody has sent"
        if is_in or (step == "commit, then gone" and not set(named).isdisjoint(content)):
            assert set(content) <= set(named), "a part of the contents is in"
        else:
            assert named == before
        if step in PACKED - {"pwrite"} | IN_FILES:
            assert unnamed() <= unnamed_before, "what was refused for certain is removed at once"
        assert not list((house.content_folder / "incoming").iterdir())
        door.ready()

    expected = house.row_steps | {"fsync" if text is LARGE else "fdatasync"}
    fail_each_step(house.world.folder, work, check, expected)
    end_packs(house)
    store = FileStore(house.content_folder, packing=Packing(65_536, house.world.clock))
    sum(agent._sweep(house.world.repository_db, store, 2**52))
    sum(compaction.steps(house.world.repository_db, store, 2**52))
    assert unnamed() == 0, "what nobody could be sure of goes later"


def test_a_document_is_deleted_or_stays_whole(house: House) -> None:
    made = iter([house.create(SMALL % number).json()["properties"]["r_object_id"] for number in range(30)])
    sent = {SMALL % number for number in range(30)}

    def work() -> tuple[str, httpx.Response]:
        object_id = next(made)
        return object_id, house.delete(object_id)

    def check(done: tuple[str, httpx.Response], step: str) -> None:
        object_id, answer = done
        if says_so(answer, step, 204):
            house.gone.add(object_id)
        elif step != "commit, then gone":
            assert house.text(object_id) in sent
        house.check(sent)

    fail_each_step(house.world.folder, work, check, house.row_steps | {"pwrite"})


def imported(house: House, folder: Path) -> ImportReport | Exception:
    """Import a folder, as one process does."""
    try:
        return Import(
            house.world.repository_db,
            house.repository,
            FileStore(house.content_folder, packing=Packing(65_536, house.world.clock)),
            backends.engine(house.world.installation).index(house.repository).reader(),
            house.world.installation.settings.repository,
            house.world.clock,
            house.world.folder / "imports",
            folder,
            principals=ADMINISTRATOR,
            cabinet=folder.name,
        ).run(1)
    except (Refusal, Busy, OSError) as error:
        return error


def test_an_import_says_what_it_could_not_keep_and_the_next_brings_the_rest(house: House, tmp_path: Path) -> None:
    numbers = itertools.count()
    folder = tmp_path
    sent = set[bytes]()

    def work() -> ImportReport | Exception:
        nonlocal folder
        number = next(numbers)
        folder = tmp_path / f"papers-{number}"
        (folder / "deep").mkdir(parents=True)
        for name, content in {"a.txt": b"a %d", "b.txt": b"b %d", "deep/c.bin": LARGE}.items():
            sent.add(content % number)
            (folder / name).write_bytes(content % number)
        return imported(house, folder)

    def check(report: ImportReport | Exception, step: str) -> None:
        if isinstance(report, ImportReport):
            assert report.files + len(report.failed) >= 3 or report.failed
            with house.world.repository_db.read() as cx:
                there = inventory.rows(cx, house.repository.id, report.object_ids)
            assert set(there) == set(report.object_ids), "the report names what is not there"
            assert step or not report.failed
        else:
            assert step
        house.check(sent)
        again = imported(house, folder)
        assert isinstance(again, ImportReport)
        assert (again.files, again.failed) == (3, [])
        house.check(sent)

    fail_each_step(house.world.folder, work, check, PACKED | IN_FILES | house.row_steps)
    texts = [b"".join(FileStore(house.content_folder).read(each.content)) for each in house.rows().values()]  # type: ignore[arg-type]
    assert sorted(texts) == sorted(sent), "each is there once"


def test_a_batch_is_kept_whole_or_refused(tmp_path: Path, clock: Clock) -> None:
    store = FileStore(tmp_path, packing=Packing(65_536, clock))
    numbers, kept = itertools.count(), dict[StoredContent, bytes]()

    def work() -> tuple[list[bytes], list[StoredContent] | Refusal]:
        clock.advance(2 * 86_400)
        batch = [b"one %d" % next(numbers), LARGE % next(numbers), b"", b"four %d" % next(numbers)]
        try:
            return batch, store.put_all(batch)
        except Refusal as refusal:
            return batch, refusal

    def check(done: tuple[list[bytes], list[StoredContent] | Refusal], step: str) -> None:
        batch, outcome = done
        if isinstance(outcome, Refusal):
            assert step
        else:
            kept.update(zip(outcome, batch, strict=True))
        for content, whole in kept.items():
            assert b"".join(store.read(content)) == whole
        if step != "unlink":
            assert sorted(contents(tmp_path)) == sorted(kept.values()), "nothing is kept by half"
            assert not list((tmp_path / "incoming").iterdir())

    fail_each_step(tmp_path, work, check, PACKED | IN_FILES)


@pytest.mark.campaign
def test_packs_are_compacted_or_stay(house: House) -> None:
    sent = set[bytes]()

    def work() -> Exception | None:
        store = FileStore(house.content_folder, packing=Packing(65_536, house.world.clock))
        try:
            for _ in range(2):
                sum(compaction.steps(house.world.repository_db, store, 2**52))
        except (Refusal, Busy, OSError) as error:
            return error
        return None

    def fill() -> None:
        for number in range(6):
            sent.add(content := SMALL % next(house.numbers))
            object_id = house.create(content).json()["properties"]["r_object_id"]
            if number < 2:
                house.answered[object_id] = content
            else:
                assert house.delete(object_id).status_code == 204
        end_packs(house)

    def check(error: Exception | None, step: str) -> None:
        assert step or error is None
        house.check(sent)
        assert (work(), work()) == (None, None)
        house.check(sent)
        assert len(list((house.content_folder / "packs").iterdir())) <= 2 + len(house.answered)
        fill()

    fill()
    fail_each_step(house.world.folder, work, check, {"fdatasync", "pwrite", "unlink"} | house.row_steps)


def end_packs(house: House) -> None:
    """Let the site go on in another pack, as a process does that is started again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs, "_FULL_BYTES", 0)
        object_id = house.create(b"").json()["properties"]["r_object_id"]
    assert house.delete(object_id).status_code == 204


@pytest.mark.only("sqlite", "The engine's steps are the same over either database.")
def test_the_index_comes_to_hold_what_is_kept(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "_AFTER_AN_ERROR_SECONDS", 0.0)
    house.world._writers.pop(house.repository.id).close()
    engine = backends.engine(house.world.installation)
    feeder = agent._Feeder(house.repository, engine)

    def work() -> None:
        feeder.close()
        with suppress(Busy):  # as the agent does
            feeder.advance(house.world.repository_db, house.world.clock)

    def check(_nothing: None, _step: str) -> None:
        with house.world.repository_db.read() as cx:
            latest = changes.latest(cx, house.repository.id)
        for _ in range(10):
            feeder.advance(house.world.repository_db, house.world.clock)
        index = engine.index(house.repository).reader()
        assert index.snapshot().position == latest
        assert checking.check(house.world.repository_db, house.repository, index, house.world.clock).sound
        assert house.create(SMALL % next(house.numbers)).status_code == 201

    assert house.create(b"first").status_code == 201
    engine_steps = {"engine: add_document", "engine: commit", "engine: commit, then an error"}
    fail_each_step(house.world.folder, work, check, engine_steps)
    feeder.close()
