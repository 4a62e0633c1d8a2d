"""The real model: its weights are the known ones, its process is confined, and texts of one meaning are near."""

import os
import signal
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from muniment.repository.search.meaning import model
from muniment.repository.search.meaning.nearness import FLOOR
from muniment.repository.search.meaning.process import EmbeddingProcess, NotEmbedded

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        model.check()
    except model.ModelMissing as error:
        pytest.skip(str(error))
    return model.ready(tmp_path_factory.mktemp("models"))


def test_texts_of_one_meaning_are_nearer_than_others(folder: Path) -> None:
    texts = ["A man is eating food.", "Someone has a meal.", "The wing of an aircraft.", ""]
    with closing(EmbeddingProcess(folder)) as process:
        vectors = np.array([np.frombuffer(each, np.int8) for each in process.vectors(texts)], float)
        assert process.vectors([]) == []
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.6
    assert max(cosines[0, 2], cosines[1, 2]) < 0.3


def test_a_text_has_its_vector_beside_any_other_text(folder: Path) -> None:
    from muniment.repository.search.meaning.encoder import Encoder, as_bytes

    encoder, words = Encoder(folder), (Path(__file__).parents[2] / "LICENSE").read_text("utf-8").split()
    texts = [" ".join(words[at : at + 7 + 3 * at]) for at in range(0, 48, 2)]
    alone = [as_bytes(encoder.vectors([text])) for text in texts]
    assert as_bytes(encoder.vectors(texts)) == b"".join(alone)


def test_foreign_words_are_near_nothing_and_letters_are_no_words(folder: Path) -> None:
    from muniment.repository.search.meaning.encoder import Encoder

    encoder = Encoder(folder)
    texts = ["An automobile with a strong engine drove down the road.", "Pumps and valves are checked before winter."]
    near = encoder.vectors(texts) @ encoder.vectors(["car", "mouse", "chocolate", "football world cup winners"]).T
    assert near[0, 0] >= FLOOR
    assert near[:, 1:].max() < FLOOR
    assert all(map(encoder.knows, ("car", "gasket", "otorhinolaryngology", "Which pumps leak?", "")))
    assert not any(map(encoder.knows, ("xkcdq", "qwxzv", "zzyzx", "lkjsdf hjklm")))


def test_a_process_that_is_killed_is_replaced(folder: Path) -> None:
    with closing(EmbeddingProcess(folder)) as process:
        before = process.vectors(["pump"])
        assert process._process is not None
        os.kill(process._process.pid, signal.SIGKILL)
        with pytest.raises(NotEmbedded):
            process.vectors(["pump"])
        assert process.vectors(["pump"]) == before


def test_the_process_cannot_open_a_file_or_a_socket(folder: Path) -> None:
    with closing(EmbeddingProcess(folder)) as process:
        process.vectors(["pump"])
        assert process._process is not None
        status = Path(f"/proc/{process._process.pid}/status").read_text()
    assert "Seccomp:\t2" in status
    assert "NoNewPrivs:\t1" in status


@pytest.mark.parametrize("text", ["\0", "\ud800", "a" * 100_000, "語" * 10_000, "🙈" * 1000, "<script>" * 500])
def test_any_text_has_a_vector(folder: Path, text: str) -> None:
    with closing(EmbeddingProcess(folder)) as process:
        (vector,) = process.vectors([text])
    assert any(vector)


def test_weights_that_are_not_the_known_ones_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").touch()
    with zipfile.ZipFile(package / "model.zip", "w") as archive:
        archive.writestr("model.safetensors", b"other weights")
        archive.writestr("tokenizer.json", b"{}")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(model.ModelMissing, match="does not have the expected digest"):
        model.ready(tmp_path / "models")
    assert not list((tmp_path / "models").iterdir()), "nothing half made stays"


def test_a_server_without_the_model_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "_PACKAGE", "no_such_package")
    with pytest.raises(model.ModelMissing, match="make meaning"):
        model.ready(tmp_path / "models")
