"""Models on disk: our run folders, Hugging Face folders and GGUF files, loaded by one function."""

from gnomon.checkpoints.hf import save_hf
from gnomon.checkpoints.load import load
from gnomon.checkpoints.native import save_model

__all__ = ["load", "save_hf", "save_model"]
