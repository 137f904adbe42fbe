"""Who has won? An encoder reads noughts and crosses on boards of 5 x 5 and is asked for a line of three.

    python examples/boards.py --steps 400 --position axial-rope     (about a minute on one core; then try rope, or none)

A board is a grid of tokens, a class token before them: `Layout.grid(5, 5, before=1)` says where each of them sits. An
encoding with axes reads rows and columns; one without reads the board as a line, in reading order. Afterwards it is
asked about boards of another shape too, 4 x 6, where a row is not five tokens long.
"""

import argparse

import torch
from torch.nn.functional import cross_entropy

import gnomon as gn

LINE, TRAINED, OTHER = 3, (5, 5), (4, 6)
EMPTY, NOUGHT, CROSS, CLASS = range(4)


def boards(n: int, rng: torch.Generator, shape: tuple[int, int] = TRAINED) -> tuple[torch.Tensor, torch.Tensor]:
    """n boards (n, 1 + cells), each after a class token, and whether noughts have a line of three: half have."""
    cells = torch.randint(3, (8 * n, *shape), generator=rng)
    won = lines(cells == NOUGHT)
    half = [(won == side).nonzero()[: n // 2, 0] for side in (False, True)]
    if min(map(len, half)) < n // 2:
        return boards(n, rng, shape)
    chosen = torch.cat(half)[torch.randperm(n // 2 * 2, generator=rng)]
    ids = torch.nn.functional.pad(cells[chosen].flatten(1), (1, 0), value=CLASS)
    return ids, won[chosen].long()


def lines(mine: torch.Tensor) -> torch.Tensor:
    """(n,) whether some row, column or diagonal of boards (n, height, width) has three in line."""
    rows, squares = mine.unfold(2, LINE, 1), mine.unfold(1, LINE, 1).unfold(2, LINE, 1)
    columns = mine.unfold(1, LINE, 1)
    diagonals = [square.diagonal(dim1=-2, dim2=-1).all(-1) for square in (squares, squares.flip(-1))]
    found = [rows.all(-1), columns.all(-1), *diagonals]
    return torch.stack([part.flatten(1).any(1) for part in found]).any(0)


def train(position: str, steps: int, batch: int = 128, seed: int = 0) -> list[float]:
    """Train an encoder under this encoding; the shares of 2000 new boards of both shapes that it answers rightly."""
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    model = gn.EncoderOnly(
        4, 64, 3, 4, position=position, head="classes", n_classes=2, pooling="first", max_positions=26
    )
    at = gn.Layout.grid(*TRAINED, before=1)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for step in range(steps):
        ids, won = boards(batch, rng)
        loss = cross_entropy(model(ids, at.expand(len(ids))), won)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    return [right(model.eval(), shape, rng) for shape in (TRAINED, OTHER)]


@torch.no_grad()
def right(model: gn.EncoderOnly, shape: tuple[int, int], rng: torch.Generator) -> float:
    """The share of 2000 new boards of a shape that a model answers rightly."""
    ids, won = boards(2000, rng, shape)
    at = gn.Layout.grid(*shape, before=1, batch=len(ids))
    return float((model(ids, at).argmax(-1) == won).float().mean())


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--position", default="axial-rope")
    arguments.add_argument("--steps", type=int, default=400)
    given = arguments.parse_args()
    square, other = train(given.position, given.steps)
    print(f"{given.position}: {100 * square:.1f} % right on 5 x 5, {100 * other:.1f} % on 4 x 6")
