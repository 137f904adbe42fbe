"""GGUF, the format of llama.cpp: models with their tokenizer in one file, quantised or not."""

from gnomon.checkpoints.gguf.read import load
from gnomon.checkpoints.gguf.write import save

__all__ = ["load", "save"]
