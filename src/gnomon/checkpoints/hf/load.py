"""Loading a Hugging Face folder: config.json and one safetensors file or several, nothing left over on either side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gnomon.checkpoints.hf import sentence
from gnomon.checkpoints.hf.family import Family
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.mxfp4 import unpack
from gnomon.checkpoints.hf.registry import family_of
from gnomon.checkpoints.hf.table import Line
from gnomon.checkpoints.native import check_vocabulary, read_json
from gnomon.checkpoints.weights import Weights, assign_weights, check_layer_count, mismatch_error, open_weights
from gnomon.data import Tokenizer
from gnomon.data.published import TOKENIZER_FILES
from gnomon.errors import BadInput, GnomonError
from gnomon.models import Model, Writer
from gnomon.models.meta import build_on_meta
from gnomon.models.weight_names import plain_name

CONFIG = "config.json"
GENERATION, ADAPTER = "generation_config.json", "adapter_config.json"


def load(folder: Path, device: torch.device, dtype: torch.dtype | None = None) -> Model:
    """The model of a folder, in eval mode, with its tokenizer if the folder has one.

    dtype   None keeps that of the token table. Weights in another dtype are converted one by one, those in this one
            are mapped from the file.

    Raises BadInput for an unknown family or setting, and for weights that are missing, unused or of another shape.
    """
    if (folder / ADAPTER).is_file():
        raise BadInput(
            f"{folder} holds an adapter ({ADAPTER}), which changes what its model computes and which Gnomon does not "
            "apply: merge it into the weights first (merge_and_unload of peft)"
        )
    weights = unpack(open_weights(folder))
    keys = Keys(read_json(folder / CONFIG), folder / CONFIG)
    family = family_of(keys)
    names = _Names(family, weights, folder)
    made = sentence.read(folder)
    keys.names, keys.pooling = names.known.keys(), None if made is None else made.pooling
    try:
        config = family.config(keys) if made is None else made.settings(family.config(keys))
        check_layer_count(config, len(weights.found), folder)
        model = build_on_meta(config)
    except GnomonError as error:
        raise error if isinstance(error, BadInput) else BadInput(f"{keys.file}: {error}") from error
    tensors = dict(names.tensors(model, dtype, {} if made is None or made.dense is None else sentence.OURS))
    if made is not None:
        model.prompts = dict(made.prompts)
        tensors |= made.weights(tensors["input.tokens.weight"].dtype)
    assign_weights(model, tensors, device)
    if any(all((folder / name).is_file() for name in files) for files in TOKENIZER_FILES):
        model.tokenizer = check_vocabulary(Tokenizer.load(folder), config.vocab_size, folder)
    if isinstance(model, Writer):
        model.ends, model.start, model.first = _marks(keys, folder, config.vocab_size)
    if config.n_classes is not None:
        model.labels = _labels(keys, config.n_classes)
    return model


def _marks(keys: Keys, folder: Path, vocab_size: int) -> tuple[tuple[int, ...], int | None, int | None]:
    """The ids that end a text, the one that a decoder starts from and the one that it writes first;
    generation_config.json knows them better."""
    file = folder / GENERATION
    config = {**keys.data, **(read_json(file) if file.is_file() else {})}
    ends = config.get("eos_token_id")
    ends = ends if isinstance(ends, list) else [ends]
    start, first = config.get("decoder_start_token_id"), config.get("forced_bos_token_id")
    if first is None and config.get("force_bos_token_to_be_generated"):  # the name of BART's first files
        first = config.get("bos_token_id")

    def known(i: object) -> bool:
        return type(i) is int and 0 <= i < vocab_size

    return tuple(filter(known, ends)), start if known(start) else None, first if known(first) else None


def _labels(keys: Keys, n: int) -> tuple[str, ...]:
    """The names of the classes."""
    named = keys.get("id2label", dict, {})
    return tuple(str(named.get(str(i), f"LABEL_{i}")) for i in range(n))


@dataclass
class _Names:
    """The names in a folder's files, under those of its family's table."""

    family: Family
    weights: Weights
    folder: Path

    def __post_init__(self) -> None:
        bare = not any(plain_name(name).startswith(self.family.prefix) for name in self.weights.found)
        self.known = {self.family.plain(plain_name(name), bare): name for name in self.weights.found}
        if len(self.known) < len(self.weights.found):
            raise BadInput(f"{self.folder} holds a weight twice, under two spellings of its name")

    def tensors(
        self, model: Model, dtype: torch.dtype | None, beside: Mapping[str, str]
    ) -> Iterator[tuple[str, Tensor]]:
        """Our names and the tensors from the files. BadInput, before any is read, unless both sides are complete.
        beside: names of ours that other files hold, as values."""
        weights = {name: weight for name, weight in model.state_dict().items() if name not in beside.values()}
        own = {name: tuple(weight.shape) for name, weight in weights.items()}
        table = self.family.lines(model.config, own)
        self._check(table, own)
        dtype = dtype or self.weights.dtype(self._stored(table, "input.tokens.weight"))
        for entry in table:
            theirs = self.weights.tensor(self._file_name(entry.theirs), dtype)
            shapes = [own[name] for name in entry.ours]
            for name, part in zip(entry.ours, entry.transform.split(theirs, shapes, model.config), strict=True):
                yield name, part.contiguous()

    def _file_name(self, name: str) -> str:
        """Where a tensor is in the files: under its own name, or that of a twin."""
        twins = [twin for twin, original in self.family.twins.items() if original == name]
        return next(self.known[spelling] for spelling in (name, *twins) if spelling in self.known)

    def _stored(self, table: list[Line], ours: str) -> str:
        return self._file_name(next(entry.theirs for entry in table if ours in entry.ours))

    def _check(self, table: list[Line], own: dict[str, tuple[int, ...]]) -> None:
        """BadInput for what is missing, unused, of another shape, or two tensors where the config says one."""
        wanted = {entry.theirs: entry.transform.shape([own[name] for name in entry.ours]) for entry in table}
        twins = {twin: own for twin, own in self.family.twins.items() if twin not in wanted}
        here = {twins.get(name, name) for name in self.known}
        missing = [name for name in wanted if name not in here]
        unused = [
            name
            for name in self.known
            if name not in wanted and twins.get(name) not in wanted and not self.family.is_harmless(name)
        ]
        different = [
            f"{name} is {self.weights.shape(self.known[name])}, expected {shape}"
            for name, shape in [(twin, wanted[name]) for twin, name in twins.items() if name in wanted]
            + [*wanted.items()]
            if name in self.known and self.weights.shape(self.known[name]) != shape
        ]
        if missing or unused or different:
            raise mismatch_error(
                self.folder,
                f"the {self.family.name} of its {CONFIG}",
                missing=missing,
                unused=unused,
                different=different,
            )
        for twin, name in twins.items():
            if twin in self.known and name in self.known:
                self._must_be_equal(twin, name)

    def _must_be_equal(self, twin: str, name: str) -> None:
        one, other = (self.weights.tensor(self.known[key]) for key in (twin, name))
        if not torch.equal(one, other):
            raise BadInput(
                f"{self.folder}: {name} and {twin} hold different numbers, but {CONFIG} says they are one tensor: "
                'set "tie_word_embeddings": false there if they are not'
            )


__all__ = ["load"]
