"""Hugging Face folders: config.json and safetensors, read into our models and written from them.

A family is one file: how it reads its config, how it writes it, and one table of names used in both directions.
"""

from gnomon.checkpoints.hf.load import load
from gnomon.checkpoints.hf.registry import FAMILIES, family_for
from gnomon.checkpoints.hf.save import save_hf

__all__ = ["FAMILIES", "family_for", "load", "save_hf"]
