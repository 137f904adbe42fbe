"""The families of llama.cpp: one file each, with its `FAMILY`. A file put here is known, listed nowhere."""
