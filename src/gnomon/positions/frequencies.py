"""Waves: what the encodings that are made of sines and cosines share."""

import math

import torch

from gnomon.errors import BadValue
from gnomon.glossary import message
from gnomon.shapes import Float, Int


def turns(trained_with: list[float], now: list[float], trained: int | None) -> list[str]:
    """Sentences about pairs of channels that turn with position, by their frequencies in training and now."""
    waves = [2 * math.pi / theta for theta in trained_with]
    lines: list[str] = [message("encodings", "pairs", count=len(waves), first=waves[0], last=waves[-1])]
    if trained is None:
        return lines
    never = [i for i, wave in enumerate(waves) if wave > trained]
    if never:
        slow = {"turning": len(waves) - len(never), "trained": trained, "first": never[0]}
        one = len(never) == 1
        lines.append(
            message("encodings", "pairs_one_slow", **slow)
            if one
            else message("encodings", "pairs_slow", **slow, last=never[-1])
        )
    else:
        lines.append(message("encodings", "pairs_all", trained=trained))
    unseen = [i for i in never if 2 * now[i] > trained_with[i] * (1 + 1e-9)]
    twice = message("encodings", "new_angles", count=len(unseen)) if unseen else message("encodings", "no_new_angle")
    return [*lines, twice]


def check_base(base: float) -> None:
    """Raise BadValue unless a base of wavelengths is a number above 0."""
    if not isinstance(base, int | float) or not 0 < base < float("inf"):
        raise BadValue(f"base is the number whose powers are the wavelengths, so it must be above 0; got {base!r}")


def angles(pos: Int, frequencies: list[float] | Float) -> Float:
    """pos (...,) times frequencies (P,) or (..., P) -> (..., P) in float64, on the CPU where the device has no float64.

    An elementwise product, so neither autocast nor reduced-precision matrix units can round the positions.
    """
    return pair_angles(pos.unsqueeze(-1), frequencies)


def pair_angles(places: Int, frequencies: list[float] | Float) -> Float:
    """The same where each pair reads a place of its own: places (..., P) times frequencies (P,) or (..., P)."""
    home = "cpu" if places.device.type == "mps" else places.device
    f = torch.as_tensor(frequencies, dtype=torch.float64, device=home)
    return places.to(home, torch.float64) * f


def split_evenly(width: int, parts: int, unit: int = 1) -> list[int]:
    """A width in so many parts that differ by one unit at most, the larger first."""
    whole, over = divmod(width // unit, parts)
    return [unit * (whole + (n < over)) for n in range(parts)]


__all__ = ["angles", "check_base", "pair_angles", "split_evenly", "turns"]
