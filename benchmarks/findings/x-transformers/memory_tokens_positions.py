"""num_memory_tokens with RoPE: `pos` is taken and raises, and so does `mask` with memory tokens between."""

import torch
from x_transformers import Decoder, TransformerWrapper

ids, places, mask = torch.randint(64, (1, 12)), torch.arange(12)[None], torch.ones(1, 12, dtype=torch.bool)
for options, said in (({}, {"pos": places}), ({"memory_tokens_interspersed_every": 4}, {"mask": mask})):
    layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
    model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers, num_memory_tokens=2, **options).eval()
    model(ids)
    try:
        model(ids, **said)
    except RuntimeError as raised:
        print(f"{', '.join(said)}: raised: {raised}")
    else:
        raise AssertionError("it answered")
