"""Encoder-decoders that count padding on the left of the source as positions, undocumented."""

import torch
import transformers as hf

sizes = {"vocab_size": 64, "d_model": 32, "init_std": 0.3, "pad_token_id": 0, "decoder_start_token_id": 2}
sizes |= {
    f"{end}coder_{what}": n
    for end in ("en", "de")
    for what, n in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 64))
}
models = {
    "mbart": (hf.MBartForConditionalGeneration, hf.MBartConfig),
    "pegasus": (hf.PegasusForConditionalGeneration, hf.PegasusConfig),
    "marian": (hf.MarianMTModel, hf.MarianConfig),
}
for name, (kind, config) in models.items():
    torch.manual_seed(0)
    model, source, text = kind(config(**sizes)).eval(), torch.randint(3, 64, (1, 8)), torch.randint(3, 64, (1, 6))
    padded, mask = (torch.nn.functional.pad(x, (4, 0)) for x in (source, torch.ones_like(source)))
    got = model(padded, attention_mask=mask, decoder_input_ids=text).logits
    error = (got - model(source, decoder_input_ids=text).logits).abs().max().item()
    print(f"{name}: logits differ by {error:.3f} as the source is padded by 4 on the left, demanded 0")
    assert error > 1e-2
