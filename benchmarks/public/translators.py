"""Encoder-decoders, as their users would hand them over: most of them make their masks from the padding id."""

import json
from collections.abc import Callable
from typing import Any

import torch
from cases import HEADS, LAYERS, PAD, SPECIAL, VOCAB, D, byte_masks, case, home_of
from torch import nn

from gnomon.audit import Torch


@case("jadore801120/attention-is-all-you-need-pytorch", "Transformer")
def jadore() -> Any:
    from transformer.Models import Transformer

    return Transformer(VOCAB, VOCAB, PAD, PAD, D, D, 64, LAYERS, HEADS, 8, 8, n_position=64)


@case("hyunwoongko/transformer", "Transformer")
def hyunwoongko() -> Any:
    from models.model.transformer import Transformer

    return Transformer(1, 1, 2, VOCAB, VOCAB, D, HEADS, 64, 64, LAYERS, 0.1, "cpu")


@case("hyunwoongko/transformer", "Transformer, told of its padding")
def hyunwoongko_padded() -> Any:
    return Torch(hyunwoongko(), masked=lambda m, source, ids, mask: m(source, ids.masked_fill(~mask, 1)))


@case("bentrevett/pytorch-seq2seq", "Attention is All You Need")
def bentrevett() -> Any:
    home = home_of("bentrevett/pytorch-seq2seq")
    cells = json.loads((home / "legacy" / "6 - Attention is All You Need.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "notebook", "nn": nn, "torch": torch}
    for cell in code:
        if cell.startswith("class "):
            exec(cell, names)
    encoder = names["Encoder"](VOCAB, D, LAYERS, HEADS, 64, 0.1, "cpu")
    decoder = names["Decoder"](VOCAB, D, LAYERS, HEADS, 64, 0.1, "cpu")
    return names["Seq2Seq"](encoder, decoder, PAD, PAD, "cpu")


@case("dreamgonfly/transformer-pytorch", "Transformer")
def dreamgonfly() -> Any:
    byte_masks()
    from models import build_model

    config = {
        "positional_encoding": True,
        "d_model": D,
        "layers_count": LAYERS,
        "heads_count": HEADS,
        "d_ff": 64,
        "dropout_prob": 0.1,
    }
    return build_model(config, VOCAB, VOCAB)


@case("tunz/transformer-pytorch", "Transformer")
def tunz() -> Any:
    byte_masks()
    from model.transformer import Transformer

    return Transformer(VOCAB, VOCAB, LAYERS, D, 64, 0.1, True, True, PAD, PAD)


@case("brandokoch/attention-is-all-you-need-paper", "TransformerEncoderDecoder", below=("src",))
def brandokoch() -> Any:
    from architectures.machine_translation_transformer import MachineTranslationTransformer

    made = MachineTranslationTransformer(D, LAYERS, VOCAB, VOCAB, HEADS, 64, 0.1)

    def read(model: Any, source: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        ahead = model._get_pad_mask(ids) & model._get_lookahead_mask(ids)
        return model.transformer_encoder_decoder(source, ids, model._get_pad_mask(source), ahead)

    return padded_by_id(made, read)


@case("SamLynnEvans/Transformer", "Transformer")
def samlynnevans() -> Any:
    from Models import Transformer

    return padded_by_id(Transformer(VOCAB, VOCAB, D, LAYERS, HEADS, 0.1), with_masks(3))


@case("gordicaleksa/pytorch-original-transformer", "Transformer", stubs=("git", "torchtext"))
def gordicaleksa() -> Any:
    from models.definitions.transformer_model import Transformer

    made = Transformer(D, VOCAB, VOCAB, HEADS, LAYERS, 0.1)
    read = with_masks(4)
    return padded_by_id(made, lambda m, source, ids: read(m, source, ids).view(*ids.shape, -1))


ANNOTATED = (
    "pandas",
    "altair",
    "torchtext",
    "torchtext.data",
    "torchtext.data.functional",
    "torchtext.vocab",
    "torchtext.datasets",
    "spacy",
    "GPUtil",
)


@case("harvardnlp/annotated-transformer", "EncoderDecoder", stubs=ANNOTATED)
def annotated() -> Any:
    from the_annotated_transformer import make_model

    read = with_masks(3)
    return padded_by_id(
        make_model(VOCAB, VOCAB, LAYERS, D, 64, HEADS), lambda m, source, ids: m.generator(read(m, source, ids))
    )


@case("hkproj/pytorch-transformer", "Transformer")
def hkproj() -> Any:
    from model import build_transformer

    def read(model: Any, source: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        real, ahead = masks(source, ids, 4)
        return model.project(model.decode(model.encode(source, real), real, ids, ahead))

    return padded_by_id(build_transformer(VOCAB, VOCAB, 64, 64, D, LAYERS, HEADS, 0.1, 64), read)


def masks(source: torch.Tensor, ids: torch.Tensor, axes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Masks of what may be seen, of the source and of the target, with 3 axes or 4, as training scripts make them."""
    triangle = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).tril()
    real, ahead = (source != PAD)[:, None], (ids != PAD)[:, None] & triangle
    return (real, ahead) if axes == 3 else (real[:, None], ahead[:, None])


def with_masks(axes: int) -> Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]:
    """A model that is handed its masks after source and target."""
    return lambda model, source, ids: model(source, ids, *masks(source, ids, axes))


def padded_by_id(model: Any, read: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]) -> Torch:
    """A model whose masks are made from the padding id."""
    return Torch(
        model,
        special=SPECIAL,
        source=read,
        source_masked=lambda m, source, mask, ids: read(m, source.masked_fill(~mask, PAD), ids),
        masked=lambda m, source, ids, mask: read(m, source, ids.masked_fill(~mask, PAD)),
    )
