"""YaRN stretches the fast pairs and leaves the slow ones: the ramp is the wrong way round."""

import torch
from litgpt.model import build_rope_cache

yarn = {"factor": 4.0, "beta_fast": 32, "beta_slow": 1, "original_max_seq_len": 4096}
cos, sin = build_rope_cache(seq_len=2, n_elem=64, extra_config=yarn)
got = torch.atan2(sin[1], cos[1])[:32]  # radians a token of the 32 pairs
plain = 10000.0 ** (-torch.arange(32) / 32)
print(f"fastest pair turns at {got[0] / plain[0]:.2f} of its speed, demanded 1.00 (Peng et al. 2024, equation 13)")
print(f"slowest pair turns at {got[-1] / plain[-1]:.2f} of its speed, demanded 0.25")
print(f"cosines and sines are multiplied by {torch.hypot(cos[0, 0], sin[0, 0]):.3f}, demanded 1.139 (equation 15)")
assert abs(got[0] / plain[0] - 0.25) < 1e-3
assert abs(got[-1] / plain[-1] - 1.0) < 1e-3
