"""Ways to let a RoPE model read further than it was trained to, measured beside each other, and advice from that."""
