"""Trace: what a forward writes down when somebody wants to look inside it. Costs nothing when nobody asks."""

from dataclasses import dataclass, field

from gnomon.shapes import Float


@dataclass
class Trace:
    """Filled by one `model(ids, trace=trace)`; everything detached.

    tokens     (B, T, D)  token vectors, scaled, before position
    position   (B, T, D) or None: what an encoding that acts at the input added
    hidden     the residual stream after the input layer and after each block, (B, T, D) each
    attention  the weights of each layer, (B, H, T, S) each
    cross      those of cross-attention
    scores     what the softmax of each layer read, (B, H, T, S) each, -inf where a query does not look; cross_scores:
               those of cross-attention. Filled only where lists are given: Trace(scores=[], cross_scores=[])
    """

    tokens: Float | None = None
    position: Float | None = None
    hidden: list[Float] = field(default_factory=list)
    attention: list[Float] = field(default_factory=list)
    cross: list[Float] = field(default_factory=list)
    scores: list[Float] | None = None
    cross_scores: list[Float] | None = None

    def add_hidden(self, x: Float) -> None:
        """Write down the residual stream."""
        self.hidden.append(x.detach())

    def add_attention(self, p: Float) -> None:
        """Write down one layer's weights."""
        self.attention.append(p.detach())

    def add_cross(self, p: Float) -> None:
        """Write down one layer's cross-attention weights."""
        self.cross.append(p.detach())

    def add_scores(self, s: Float) -> None:
        """Write down what one layer's softmax read."""
        if self.scores is not None:
            self.scores.append(s.detach())

    def add_cross_scores(self, s: Float) -> None:
        """Write down what one layer's cross-attention softmax read."""
        if self.cross_scores is not None:
            self.cross_scores.append(s.detach())


__all__ = ["Trace"]
