"""rotary-embedding-torch's options; as bare rotations. Laws about lengths read it with its cache on and off."""

from collections.abc import Mapping
from typing import Any

from rotary_embedding_torch import RotaryEmbedding

from cases.drawn import Case
from gnomon.audit.adapters.rotary_embedding_torch import RotaryEmbeddingTorch
from gnomon.positions.scaling import plain_frequencies

WIDTH = 32
LANG = plain_frequencies(10000.0, WIDTH)


def _case(promised: list[float] | None, **options: Any) -> Case:
    return lambda: RotaryEmbeddingTorch(RotaryEmbedding(WIDTH, **options).eval(), promised=promised)


CASES: Mapping[str, Case] = {
    "language": _case(LANG),
    "language, no cache": _case(LANG, cache_if_possible=False),
    "language, short cache": _case(LANG, cache_max_seq_len=8),
    "interpolated": _case([theta / 4 for theta in LANG], interpolate_factor=4.0),
    "base rescaled": _case(plain_frequencies(10000.0 * 4.0 ** (WIDTH / (WIDTH - 2)), WIDTH), theta_rescale_factor=4.0),
    "pixels": _case(None, freqs_for="pixel"),
    "constant": _case(None, freqs_for="constant"),
    "learned": _case(LANG, learned_freq=True),
    "xpos": _case(None, use_xpos=True),
    "xpos, no cache": _case(None, use_xpos=True, cache_if_possible=False),
}
