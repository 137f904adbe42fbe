"""Mixtral (Jiang et al. 2024, arXiv:2401.04088): Mistral with eight feed-forward networks, of which a token takes two.

What its relatives share is here: a Llama whose layers have experts.
"""

from typing import Any

from gnomon.blocks import Experts
from gnomon.checkpoints.hf.families.llama import INV_FREQ, TABLE, TWINS, read, width, write
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.checkpoints.hf.table import line
from gnomon.errors import BadValue
from gnomon.models import ModelConfig

COUNT = ("num_local_experts", "num_experts")  # that library has taken either name for the other
FFN = "stack.blocks.*.ffn"


def read_config(keys: Keys) -> ModelConfig:
    """router_jitter_noise acts in training only."""
    experts = Experts(keys.size(*COUNT, default=8), keys.size("num_experts_per_tok", default=2))
    window = keys.size("sliding_window", default=None)
    return read(keys, ROTARY["mixtral"], width(keys), window=window, experts=experts)


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As Mixtral."""
    experts = experts_of(c)
    check_experts(c, normalised=True)
    return write(
        c,
        "mixtral",
        "MixtralForCausalLM",
        ROTARY["mixtral"],
        sliding_window=c.windows(1)[0],
        num_local_experts=experts.n_experts,
        num_experts_per_tok=experts.top_k,
        intermediate_size=experts.d_ff,
    )


def experts_of(c: ModelConfig) -> Experts:
    """The experts of a config; BadValue where it has none."""
    if c.mixture is None:
        raise BadValue("experts = None: the family has several feed-forward networks in a layer")
    return c.mixture


def check_experts(c: ModelConfig, **settings: Any) -> None:
    """BadValue for experts with other settings than a family's words for them and these."""
    experts = experts_of(c)
    for name, value in {"router_bias": False, "shared": 0, "dense_layers": (), **settings}.items():
        if getattr(experts, name) != value:
            raise BadValue(f"experts.{name} = {getattr(experts, name)}: in the family it is {value}")


def experts_family(name: str, read: Any, write: Any, router: str, expert: tuple[str, str, str]) -> Family:
    """A Llama with experts: the names of the router, and of an expert's gate, its way up and its way down."""
    shared, block = "shared_expert", router.rpartition(".")[0]
    table = lines(
        *TABLE,
        line(f"model.layers.*.{router}.weight", f"{FFN}.router.weight"),
        *(
            line(f"model.layers.*.{block}.experts.*.{theirs}.weight", f"{FFN}.experts.*.{ours}.weight")
            for theirs, ours in zip(expert, ("gate", "up", "down"), strict=True)
        ),
        *(
            line(f"model.layers.*.{block}.{shared}.{ours}_proj.weight", f"{FFN}.shared.{ours}.weight")
            for ours in ("gate", "up", "down")
        ),
        line(f"model.layers.*.{block}.{shared}_gate.weight", f"{FFN}.shared_gate.weight"),
    )
    return Family(name, read, write, table, prefix="model.", twins=TWINS, harmless=(INV_FREQ,))


FAMILY = experts_family("mixtral", read_config, write_config, "block_sparse_moe.gate", ("w1", "w3", "w2"))

__all__ = ["FAMILY"]
