"""CamemBERT (Martin et al. 2020, arXiv:1911.03894): RoBERTa in French."""

from gnomon.checkpoints.hf.families.roberta import roberta

FAMILY = roberta("camembert", "Camembert")

__all__ = ["FAMILY"]
