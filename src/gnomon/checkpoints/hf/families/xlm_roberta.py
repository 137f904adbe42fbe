"""XLM-RoBERTa (Conneau et al. 2020, arXiv:1911.02116): RoBERTa over a hundred languages."""

from gnomon.checkpoints.hf.families.roberta import roberta

FAMILY = roberta("xlm-roberta", "XLMRoberta")

__all__ = ["FAMILY"]
