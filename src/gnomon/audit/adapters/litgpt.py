"""Models of Lightning's LitGPT. They take no mask and no packed documents; a cache lives inside the model and is told
where tokens stand by `input_pos`. A state here is that cache, taken out of the model between two steps.
"""

from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters.angles import angles_of
from gnomon.audit.target import NotApplicable, Target
from gnomon.positions.scaling import Linear, Llama3, Scaling, YaRN, plain_frequencies
from gnomon.shapes import Bool, Float, Int


@dataclass
class Filled:
    """The caches of all blocks, the model's mask for them, and how many tokens they hold."""

    caches: list[nn.Module]
    mask: Any
    tokens: int


class LitGPT(Target):
    """A litgpt.GPT.

    trimmed  whether a step names the end of what is filled (`input_pos_maxp1`), as `litgpt.generate` does for one
             prompt; without it the whole buffer is read, as its batched generation does
    """

    def __init__(self, model: Any, *, trimmed: bool = True, seed: int = 0) -> None:
        config, weight = model.config, next(model.parameters())
        slides = config.sliding_window_size is not None and all(config.sliding_window_indices)
        super().__init__(
            config.name or type(model).__name__,
            config.padded_vocab_size,
            "decoder-only",
            layers=config.n_layer,
            dtype=weight.dtype,
            device=weight.device,
            window=config.sliding_window_size if slides else None,
            limit=model.max_seq_length,
            table_ends=True,
            shift="kept",
            can=frozenset({"cache", "reorder", "module", "save", "angles"}),
            seed=seed,
        )
        self.model, self.trimmed = model.eval(), trimmed

    def logits(
        self, ids: Int, mask: Bool | None = None, positions: Int | None = None, docs: Int | None = None
    ) -> Float:
        """See Target."""
        if mask is not None or positions is not None or docs is not None:
            raise NotApplicable(self.lacks("mask" if mask is not None else "positions" if docs is None else "packed"))
        logits: Float = self.model(ids)
        return logits

    def step(
        self, state: Any, ids: Int, mask: Bool | None = None, positions: Int | None = None
    ) -> tuple[Float, Filled]:
        """See Target."""
        if mask is not None or positions is not None:
            raise NotApplicable(self.lacks("cached mask" if mask is not None else "cached positions"))
        if state is None:
            self.model.set_kv_cache(len(ids), device=self.device, dtype=self.dtype)
            state = Filled([block.attn.kv_cache for block in self.model.transformer.h], self.model.mask_cache, 0)
        out = []
        try:
            self._put(state)
            for chunk in torch.split(ids, self._most(ids.shape[1]), 1):
                end = state.tokens + chunk.shape[1]
                places = torch.arange(state.tokens, end, device=self.device)
                out.append(self.model(chunk, places, input_pos_maxp1=end if self.trimmed else None))
                state.tokens = end
        finally:
            self.model.clear_kv_cache()
        return torch.cat(out, 1), state

    def _most(self, tokens: int) -> int:
        """How many of these tokens are read at once: at most a window, as the library's own error advises."""
        width = self.model.config.sliding_window_size
        return tokens if width is None else min(tokens, width)

    def reorder(self, state: Filled, index: Int) -> Filled:
        """See Target."""
        for cache in state.caches:
            for name, rows in list(cache.named_buffers()):
                setattr(cache, name, rows[index])
        return state

    def _put(self, state: Filled) -> None:
        self.model.mask_cache = state.mask
        for block, cache in zip(self.model.transformer.h, state.caches, strict=True):
            block.attn.kv_cache = cache

    # ------------------------------------------------------------------ what it consists of

    @property
    def module(self) -> nn.Module:
        """See Target."""
        module: nn.Module = self.model
        return module

    def with_module(self, module: nn.Module) -> "LitGPT":
        """See Target."""
        other = copy(self)
        other.model = module.eval()
        return other

    def embedding(self) -> nn.Module:
        """See Target."""
        found: nn.Module = self.model.transformer.wte
        return found

    def blocks(self) -> nn.ModuleList:
        """See Target."""
        found: nn.ModuleList = self.model.transformer.h
        return found

    def embedding_and_head(self) -> tuple[nn.Parameter, nn.Parameter]:
        """See Target."""
        return self.model.transformer.wte.weight, self.model.lm_head.weight

    def save_and_load(self, folder: Path) -> "LitGPT":
        """See Target. Its weights, read into another model of its config."""
        torch.save(self.model.state_dict(), folder / "lit_model.pth")
        other = type(self.model)(self.model.config).to(self.device, self.dtype)
        other.load_state_dict(torch.load(folder / "lit_model.pth", map_location=self.device, weights_only=True))
        return self.with_module(other)

    def angles(self, length: int) -> tuple[Float, Float]:
        """See Target. Of the global base, where there is a local one too."""
        config, width = self.model.config, self.model.config.rope_n_elem
        cos, sin = self.model.cos[:length], self.model.sin[:length]
        if config.rope_local_base_freq is not None:
            cos, sin = cos[..., 0], sin[..., 0]
        scaling = expected_scaling(config.rope_adjustments)
        base = float(config.rope_base)
        thetas = plain_frequencies(base, width) if scaling is None else scaling.frequencies(base, width)
        thetas = [theta / config.rope_condense_ratio for theta in thetas]
        factor = 1.0 if scaling is None else scaling.magnitude
        return angles_of(cos[:, : width // 2], sin[:, : width // 2], thetas, factor)


def expected_scaling(adjustments: dict[str, Any] | None) -> Scaling | None:
    """The published scaling that `rope_adjustments` names; None for none."""
    if not adjustments or "factor" not in adjustments:
        return None
    said: dict[str, Any] = adjustments
    factor, length = float(said["factor"]), int(said.get("original_max_seq_len", 0))
    if "beta_fast" in said:
        scales = {name: said[name] for name in ("mscale", "mscale_all_dim") if name in said}
        return YaRN(factor, length, said["beta_fast"], said["beta_slow"], **scales)
    if "low_freq_factor" in said:
        return Llama3(factor, length, said["low_freq_factor"], said["high_freq_factor"])
    return Linear(factor)


__all__ = ["Filled", "LitGPT", "expected_scaling"]
