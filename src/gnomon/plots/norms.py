"""What the norm does, measured: where it stands decides the path of the gradient, and layer norm, unlike batch
norm, makes a token's output its own business."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from gnomon.blocks.residual import Placement
from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import words
from gnomon.models import DecoderOnly
from gnomon.plots.picture import Picture, check_drawable
from gnomon.plots.style import BLUE, GREEN, ORANGE, gnomon_style, name_lines, panels
from gnomon.shapes import Float

B, T, V = 4, 32, 256  # rows, tokens and vocabulary of what is read
COLOURS = {"pre": BLUE, "post": ORANGE, "sandwich": GREEN}


@torch.enable_grad()
@check_arguments
def gradient_norms(
    placement: Placement, layers: int = 12, d_model: int = 64, seed: int = 0, draws: int = 3
) -> list[float]:
    """The norm of the loss's gradient with respect to the parameters of each block, the first one first, at
    initialisation: root mean square over `draws` models, each reading random tokens.

    Weights are drawn as in Xiong et al. 2020, arXiv:2002.04745, section 3.1 (Xavier, nothing scaled by depth); other
    initialisations give other numbers, and scaling by depth, as in GPT-2, takes most of the difference away.
    """
    if layers < 1 or draws < 1:
        raise BadValue(f"there is at least one layer and one draw, got layers={layers}, draws={draws}")
    squares = np.zeros(layers)
    for draw in range(draws):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + draw)
            model = DecoderOnly(
                vocab_size=V,
                d_model=d_model,
                n_layers=layers,
                n_heads=4,
                position="sinusoidal",
                tied=False,
                placement=placement,
                embed_scale="sqrt",
                init_std=d_model**-0.5,
            )
            for part in model.stack.blocks.modules():
                if isinstance(part, nn.Linear):
                    nn.init.xavier_normal_(part.weight)
            ids = torch.randint(V, (B, T + 1))
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        parameters = [p for block in model.stack.blocks for p in block.parameters()]
        found = iter(torch.autograd.grad(loss, parameters))
        squares += [sum(float(next(found).square().sum()) for _ in b.parameters()) for b in model.stack.blocks]
    return [float(x) for x in np.sqrt(squares / draws)]


@check_arguments
def gradient(layers: int = 24, d_model: int = 64, seed: int = 0, lang: str = "en") -> Picture:
    """Gradient norm by layer at initialisation, with the norm before, after, and on both sides of a sublayer.

    facts: "norms", by placement, the first layer first; "first_over_last", their ratio
    """
    w = words("norms", lang)
    if layers < 2:
        raise BadValue(f"a line from layer to layer needs at least two, got {layers}")
    check_drawable(layers * 12 * d_model**2, f"the gradients of {layers} layers of width {d_model}")
    norms = {name: gradient_norms(name, layers, d_model, seed) for name in ("pre", "post", "sandwich")}
    title, note = w("gradient_title"), w("gradient_note", layers=layers, width=d_model)
    with gnomon_style():
        figure, [[axes]] = panels(title, note, (8.2, 4.6))
        places = range(1, layers + 1)
        for name, values in norms.items():
            axes.plot(places, values, color=COLOURS[name], marker="o", markersize=3.5)
        axes.set(xlabel=w("layer"), ylabel=w("gradient_norm"), xlim=(0.5, layers + 0.5))
        axes.set_ylim(0, max(map(max, norms.values())) * 1.06)
        axes.grid(axis="y")
        name_lines(axes, layers, [v[-1] for v in norms.values()], [w(name) for name in norms], list(COLOURS.values()))
    facts = {
        "layers": layers,
        "d_model": d_model,
        "seed": seed,
        "norms": norms,
        "first_over_last": {name: values[0] / values[-1] for name, values in norms.items()},
    }
    return Picture(figure, f"{title}. {note}", facts, lang)


@dataclass(frozen=True)
class Mates:
    """One token's output (batches, D) among other batch mates each time, under a layer norm and under a batch norm."""

    layer: Float
    batch: Float

    @property
    def change(self) -> dict[str, float]:
        """The largest difference between two outputs of the same token."""
        return {
            name: float((x.amax(0) - x.amin(0)).max()) for name, x in (("layer", self.layer), ("batch", self.batch))
        }


@torch.no_grad()
@check_arguments
def batch_mates(d_model: int = 24, batches: int = 8, mates: int = 7, seed: int = 0) -> Mates:
    """The same token among `mates` others, drawn anew for each of `batches`, normalised as in training."""
    if d_model < 2 or batches < 2 or mates < 1:
        raise BadValue(f"take d_model >= 2, batches >= 2, mates >= 1; got {d_model}, {batches}, {mates}")
    rng = torch.Generator().manual_seed(seed)
    token = torch.randn(1, d_model, generator=rng)
    by_layer, by_batch = nn.LayerNorm(d_model), nn.BatchNorm1d(d_model, track_running_stats=False)
    found = [torch.cat([token, torch.randn(mates, d_model, generator=rng)]) for _ in range(batches)]
    return Mates(torch.stack([by_layer(x)[0] for x in found]), torch.stack([by_batch(x)[0] for x in found]))


@check_arguments
def batch(d_model: int = 24, seed: int = 0, lang: str = "en") -> Picture:
    """One token's output among different batch mates: one line under layer norm, many under batch norm.

    facts: "change", the largest difference between two outputs of the token, by norm
    """
    w = words("norms", lang)
    check_drawable(64 * d_model, f"batches of width {d_model}")
    seen = batch_mates(d_model, seed=seed)
    title, note = w("batch_title"), w("batch_note", batches=len(seen.layer), mates=7)
    with gnomon_style():
        figure, [row] = panels(title, note, (9.6, 4.2), columns=2)
        for axes, name, values, colour in zip(
            row, ("layer", "batch"), (seen.layer, seen.batch), (BLUE, ORANGE), strict=True
        ):
            for line in values.numpy():
                axes.plot(
                    range(1, d_model + 1), line, color=colour, linewidth=1.1, alpha=0.75, marker="o", markersize=2.5
                )
            axes.set_title(f"{w(f'{name}_norm')}\n{w('largest_change', value=seen.change[name])}")
            axes.set(xlabel=w("dimension"), ylim=(-3.4, 3.4))
            axes.grid(axis="y")
        row[0].set_ylabel(w("output"))
    return Picture(figure, f"{title}. {note}", {"d_model": d_model, "seed": seed, "change": seen.change}, lang)


__all__ = ["Mates", "batch", "batch_mates", "gradient", "gradient_norms"]
