"""Models that count padding on the left as positions, where nothing in their documentation says so."""

import torch
import transformers as hf

few = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, **few}
wide = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, **few}
models = {
    "gpt_bigcode": lambda: hf.GPTBigCodeForCausalLM(hf.GPTBigCodeConfig(**sizes, initializer_range=0.3)),
    "xglm": lambda: hf.XGLMForCausalLM(
        hf.XGLMConfig(d_model=32, num_layers=2, attention_heads=4, ffn_dim=64, init_std=0.3, **few)
    ),
    "electra": lambda: hf.ElectraForMaskedLM(hf.ElectraConfig(**wide, embedding_size=32, initializer_range=0.3)),
    "distilbert": lambda: hf.DistilBertForMaskedLM(
        hf.DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, initializer_range=0.3, **few)
    ),
}
for name, build in models.items():
    torch.manual_seed(0)
    model, text = build().eval(), torch.randint(3, 64, (1, 8))
    padded, mask = (torch.nn.functional.pad(x, (4, 0)) for x in (text, torch.ones_like(text)))
    error = (model(padded, attention_mask=mask).logits[:, 4:] - model(text).logits).abs().max().item()
    print(f"{name}: logits of the same text padded by 4 on the left differ by {error:.3f}, demanded 0")
    assert error > 1e-2
