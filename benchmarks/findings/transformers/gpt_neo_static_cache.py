"""GPT-Neo with a static cache: its windows are counted from the end of the cache, not of the text."""

import torch
from transformers import GPTNeoConfig, GPTNeoForCausalLM, StaticCache

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "intermediate_size": 64}
kinds = [[["global", "local"], 1]]
config = GPTNeoConfig(**sizes, max_position_embeddings=64, window_size=4, attention_types=kinds, initializer_range=0.3)
model = GPTNeoForCausalLM(config).eval()
ids = torch.randint(64, (1, 9))
cache = StaticCache(config=config, max_cache_len=32)
error = (model(ids, cache=cache, use_cache=True).logits - model(ids).logits).abs().max().item()
print(f"logits differ by {error:.3f} from those without a cache, demanded 0")
say = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
texts = [model.generate(ids, **say, **more)[0].tolist() for more in ({}, {"cache_implementation": "static"})]
print("greedy texts with a dynamic and a static cache are equal:", texts[0] == texts[1])
assert error > 1e-2
