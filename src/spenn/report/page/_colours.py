"""Colours that can be told from the page behind them."""

# WCAG asks for 3 between a line and its background; thin lines glow less on dark than they should.
ON_LIGHT, ON_DARK = 3.2, 5.5


def readable(colour: str, page: str) -> str:
    """The colour, moved away from that of the page until it stands out from it."""
    towards, contrast = (0.0, ON_LIGHT) if _luminance(_parts(page)) > 0.5 else (1.0, ON_DARK)
    parts = _parts(colour)
    for step in range(101):
        mixed = tuple(p + (towards - p) * step / 100 for p in parts)
        if _contrast(mixed, _parts(page)) >= contrast:
            return _hex(mixed)
    raise ValueError(f"No shade of {colour} stands out from {page}.")


def _parts(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


def _hex(parts: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(255 * p):02x}" for p in parts)


def _contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(parts: tuple[float, ...]) -> float:
    linear = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
