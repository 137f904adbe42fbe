"""The families of Hugging Face checkpoints: one file each, with its `FAMILY`. A file put here is known, listed nowhere.

It reads the family's config.json, writes it, and holds one table of names used in both directions.
"""
