"""Models on disk: saved into run folders and loaded from them."""

from gnomon.checkpoints.native import load, save_model

__all__ = ["load", "save_model"]
