"""positional-encodings: one, two and three axes, channels that do and do not divide evenly."""

from collections.abc import Callable, Mapping

from positional_encodings import torch_encodings as peer

from cases.drawn import Case


def _case(kind: Callable[[int], object], channels: int) -> Case:
    return lambda: kind(channels)


CASES: Mapping[str, Case] = {
    f"{kind.__name__}, {channels} channels": _case(kind, channels)
    for kind in (
        peer.PositionalEncoding1D,
        peer.PositionalEncoding2D,
        peer.PositionalEncoding3D,
        peer.PositionalEncodingPermute1D,
        peer.PositionalEncodingPermute2D,
        peer.PositionalEncodingPermute3D,
    )
    for channels in (24, 10)
}
