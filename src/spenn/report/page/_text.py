"""Numbers and names as text that is safe in HTML."""

import re
from html import escape
from math import isfinite

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MISSING = "–"


def number(value: float | None, digits: int = 2) -> str:
    """A few significant digits, with a power of ten where plain ones would be long.

    `assets/numbers.js` writes numbers the same way.
    """
    if value is None or value != value:
        return MISSING
    if not isfinite(value):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, int) and abs(value) < 100_000:
        return _minus(str(value))
    if value == 0:
        return "0"
    mantissa, power = f"{abs(value):.{digits - 1}e}".split("e")
    sign = "−" if value < 0 else ""
    if -3 <= int(power) < max(4, digits):
        return sign + f"{abs(value):.{max(digits - 1 - int(power), 0)}f}"
    return f"{sign}{mantissa}·10{str(int(power)).translate(SUPERSCRIPTS)}"


def percent(share: float | None) -> str:
    """A share of one as a percentage with three significant digits at most."""
    return MISSING if share is None else f"{_minus(f'{100 * share:.3g}')}\u00a0%"


def relative(error: float | None) -> str:
    """A relative error as a percentage with two significant digits."""
    return MISSING if error is None else f"{number(100 * error)}\u00a0%"


def bare(label: str) -> str:
    """A label without its unit: 'displacement u (m)' in a sentence is 'displacement u'."""
    return re.sub(r"\s*\([^()]*\)$", "", label) or label


def span(texts: list[str]) -> str:
    """'88 % to 93 %', or one of them where both ends read the same."""
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def listed(items: list[str]) -> str:
    """'q', 'q and p', 'q, p and eps'."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else items[0]


def shown(text: str, value: float | None) -> str:
    """Text that carries the exact number behind it, for scripts and tests to read."""
    if value is None or not isfinite(value):
        return f'<span class="number" data-value="">{escape(text)}</span>'
    exact = value if isinstance(value, int) else float(value)  # NumPy writes its own with a name
    return f'<span class="number" data-value="{exact!r}">{escape(text)}</span>'


def _minus(text: str) -> str:
    return text.replace("-", "−")
