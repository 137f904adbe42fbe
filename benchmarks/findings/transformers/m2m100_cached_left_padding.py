"""M2M100, NLLB-MoE: decoding from a cache counts padding on the left as positions, reading at once does not."""

import torch
import transformers as hf
from torch.nn.functional import pad

sizes = {"vocab_size": 64, "d_model": 32, "init_std": 0.3}
sizes |= {
    f"{end}coder_{what}": n
    for end in ("en", "de")
    for what, n in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 64))
}
for name, kind, config in (
    ("M2M100", hf.M2M100ForConditionalGeneration, hf.M2M100Config(**sizes)),
    ("NLLB-MoE", hf.NllbMoeForConditionalGeneration, hf.NllbMoeConfig(**sizes, num_experts=2)),
):
    torch.manual_seed(0)
    model, source, ids = kind(config).eval(), torch.randint(4, 64, (1, 7)), torch.randint(4, 64, (1, 6))
    alone = model(source, decoder_input_ids=ids).logits
    padded, mask = pad(ids, (4, 0), value=1), pad(torch.ones_like(ids), (4, 0))
    once = model(source, decoder_input_ids=padded, decoder_attention_mask=mask).logits[:, 4:]
    read = model(source, decoder_input_ids=padded[:, :9], decoder_attention_mask=mask[:, :9], use_cache=True)
    step = model(source, decoder_input_ids=padded[:, 9:], decoder_attention_mask=mask, cache=read.cache).logits
    errors = (once - alone).abs().max().item(), (step[:, -1] - alone[:, -1]).abs().max().item()
    print(f"{name}: read at once {errors[0]:.1e}, from a cache {errors[1]:.3f}, demanded 0")
    assert errors[0] < 1e-4
    assert errors[1] > 1e-2
