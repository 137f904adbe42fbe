"""From "what the caller named" to a built encoding: pictures take a name, a Spec or a module of a model."""

from gnomon.errors import BadValue
from gnomon.positions import PositionEncoding, Spec, encoding, get
from gnomon.positions.base import Acts

Position = str | Spec | PositionEncoding


def build_position(position: Position, *acts: Acts, **sizes: object) -> PositionEncoding:
    """The module, built with `sizes` where only its name or Spec is given. BadValue unless it acts in one of `acts`."""
    chosen = get(position) if isinstance(position, str) else position
    if chosen.acts not in acts:
        raise BadValue(
            f"this picture shows encodings that act at {' or '.join(acts)}; {chosen.name} acts at {chosen.acts}"
        )
    return chosen.build(**sizes) if isinstance(chosen, Spec) else chosen


def build_rotation(position: Position, **sizes: object) -> PositionEncoding:
    """The same for encodings whose pairs of channels turn; BadValue for any other."""
    chosen = get(position) if isinstance(position, str) else position
    cls = type(chosen) if isinstance(chosen, PositionEncoding) else encoding(chosen.name)
    if cls.frequencies is PositionEncoding.frequencies:
        raise BadValue(f"{chosen.name} has no wavelengths, for no pair of its channels turns; rope and sinusoidal do")
    return build_position(chosen, "input", "rotation", n_heads=1, **sizes)  # heads turn alike


def is_trained(position: Position) -> bool:
    """Whether its numbers may come from training: a module does, a name or a Spec starts at random."""
    return isinstance(position, PositionEncoding)


__all__ = ["Position", "build_position", "build_rotation", "is_trained"]
