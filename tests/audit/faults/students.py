"""Faults that people make when they write a Transformer after a tutorial, each a line or two of `student.py`.

    python -m faults.students      (in tests/audit)

writes the broken twins of examples/audit/student.py beside it, so that `diff` shows the error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.fault import Fault
from gnomon.audit import Law, Target
from gnomon.audit.laws import caches, embedding, heads, history, loss, order, parts, positions, weights

EXAMPLES = Path(__file__).parents[3] / "examples" / "audit"
HEALTHY = (EXAMPLES / "student.py").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Twin:
    """The student's model with one error.

    edits   what stands in the healthy file -> what stands in its place
    law     the law that must fail
    says    what the finding must say
    """

    name: str
    kind: str
    story: str
    law: Law
    says: str
    edits: dict[str, str]

    def source(self) -> str:
        """Its file."""
        written = HEALTHY
        for right, wrong in self.edits.items():
            if written.count(right) != 1:
                raise ValueError(f"{right!r} stands {written.count(right)} times in student.py, not once")
            written = written.replace(right, wrong)
        return written

    def fault(self) -> Fault:
        """For the table of laws and mutants."""
        return Fault(
            self.name, self.kind, self.story, (self.law,),
            lambda broken: made(self.source() if broken else HEALTHY), says=self.says,
        )  # fmt: skip


def made(source: str) -> Target:
    """The target that a student's file describes."""
    names: dict[str, Any] = {"__name__": "student"}
    exec(compile(source, "student.py", "exec"), names)
    audited: Callable[[], Target] = names["audited"]
    return audited()


TWINS = (
    Twin(
        "the mask is the wrong way round", "mask", "A token sees those after it instead of those before it.",
        order.causality, "wrong way round",
        {".tril(start)": ".triu(start)"},
    ),
    Twin(
        "labels are shifted twice", "loss", "The labels are shifted already, and the loss shifts them again.",
        loss.labels_are_shifted_once, "shifted twice",
        {"cross_entropy(logits.flatten(0, 1), labels.flatten())":
            "cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())"},
    ),
    Twin(
        "token vectors are scaled twice", "scale", "The embedding multiplies by sqrt(d_model), and the model again.",
        embedding.scale_counts_once, "scaled twice",
        {"self.drop(self.embedding(ids))": "self.drop(self.embedding(ids) * self.embedding.scale)"},
    ),
    Twin(
        "dropout acts twice", "dropout", "The feed-forward part ends with dropout, and the block drops out again.",
        embedding.dropout_acts_once, "dropout twice",
        {"x + self.ffn(self.norm2(x))": "x + self.drop(self.ffn(self.norm2(x)))"},
    ),
    Twin(
        "rotation before heads are split", "rotation", "Queries and keys are rotated over d_model, then split.",
        heads.heads_are_interchangeable, "before they are split into heads",
        {
            "q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))":
                "q, k, v = rotated(self.q(x), positions), rotated(self.k(x), positions), self.v(x)",
            "q, k = rotated(q, positions), rotated(k, positions)":
                "q, k, v = self.heads(q), self.heads(k), self.heads(v)",
        },
    ),
    Twin(
        "positions from a length", "cache", "Positions are counted in the tokens that came, not in those before.",
        caches.cached_is_full, "stand at the position after all tokens",
        {"positions = torch.arange(start, start + T, device=x.device)": "positions = torch.arange(T, device=x.device)"},
    ),
    Twin(
        "heads without projections", "projection", "Heads are slices of the vectors, without W_q, W_k and W_v.",
        heads.heads_have_projections, "no matrix stands before attention",
        {
            "        self.q, self.k, self.v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))\n": "",
            "q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))":
                "q = k = v = self.heads(x)",
        },
    ),
    Twin(
        "a tied copy", "tie", "The head is given the numbers of the table, in a tensor of its own.",
        weights.ties_are_one, "a tied copy instead of a tied weight",
        {"self.embedding.table.weight = self.head.weight":
            "self.embedding.table.weight.data.copy_(self.head.weight)"},
    ),
    Twin(
        "positions are never added", "places", "A table of positions is made in place of the rotation, and not called.",
        positions.a_position_reaches_attention, "positions.weight is there, but the order of tokens reaches no block",
        {
            "        positions = torch.arange(start, start + T, device=x.device)\n": "",
            "        q, k = rotated(q, positions), rotated(k, positions)\n": "",
            "        self.drop = nn.Dropout(dropout)\n        self.blocks":
                "        self.positions = nn.Embedding(256, d_model)\n"
                "        self.drop = nn.Dropout(dropout)\n        self.blocks",
        },
    ),
    Twin(
        "heads are not turned back", "heads", "Heads are put together by a view, without transposing them back first.",
        order.causality, "put together as if they were tokens",
        {"y.transpose(1, 2).flatten(2)": "y.reshape(x.shape)"},
    ),
    Twin(
        "a layer is made in forward", "chance", "The last matrix of attention is made anew in each call.",
        history.evaluation_is_deterministic, "forward makes new layers",
        {"return self.o(": "return nn.Linear(x.shape[-1], x.shape[-1], bias=False)("},
    ),
    Twin(
        "a plain read takes the cache", "cache", "The model keeps what it read inside, and any call replaces it.",
        caches.a_plain_read_leaves_the_cache_alone, "must neither write into it nor move its position",
        {
            "None if pasts is None else pasts[i]": "None if pasts is None else self.read[i]",
            "        return self.head(self.norm(x)), read":
                "        self.read = read\n        return self.head(self.norm(x)), read",
        },
    ),
    Twin(
        "the last norm is forgotten", "part", "The model makes a norm for after its blocks, and does not call it.",
        parts.every_part_is_used, "no logit depends on norm.weight, norm.bias",
        {"self.head(self.norm(x))": "self.head(x)"},
    ),
)  # fmt: skip
FAULTS = tuple(twin.fault() for twin in TWINS)


def write(folder: Path = EXAMPLES) -> None:
    """A file for each twin."""
    for twin in TWINS:
        (folder / f"{twin.name.replace(' ', '_')}.py").write_text(twin.source(), encoding="utf-8")


if __name__ == "__main__":
    write()
