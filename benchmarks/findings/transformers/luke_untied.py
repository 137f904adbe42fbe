"""LUKE: tie_word_embeddings is true, and the head has a matrix of its own."""

from transformers import LukeConfig, LukeForMaskedLM

sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
model = LukeForMaskedLM(LukeConfig(**sizes, entity_vocab_size=8, entity_emb_size=8))
model.tie_weights()
same = model.get_output_embeddings().weight is model.get_input_embeddings().weight
print(f"config.tie_word_embeddings: {model.config.tie_word_embeddings}; one tensor at both ends: {same}")
assert model.config.tie_word_embeddings
assert not same
