"""Line charts as SVG, in colours that can be read on GitHub's white and on its near-black."""

from collections.abc import Callable, Sequence
from html import escape
from math import log10
from typing import NamedTuple

INK = "#768390"
COLOURS = ("#2f81f7", "#e5534b", "#2da44e", "#b0740b", "#a371f7", "#0f8a96", "#d1569b")
WIDTH, HEIGHT = 860, 400
LEFT, RIGHT, TOP, BOTTOM = 76, 250, 40, 52


class Line(NamedTuple):
    """One line of a chart, and what the legend calls it."""

    name: str
    points: Sequence[tuple[float, float]]


class Axis(NamedTuple):
    """An axis from the first to the last of its ticks."""

    name: str
    ticks: Sequence[float]
    logarithmic: bool = False

    def scale(self, start: float, end: float) -> Callable[[float], float]:
        """Return what places a value between two coordinates."""
        warp: Callable[[float], float] = log10 if self.logarithmic else float
        a, b = warp(self.ticks[0]), warp(self.ticks[-1])
        return lambda value: start + (end - start) * (warp(value) - a) / (b - a)


def chart(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    """Draw lines; the legend stands at the right, in their order."""
    right, low = WIDTH - RIGHT, HEIGHT - BOTTOM
    across, up = x.scale(LEFT, right), y.scale(low, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img" font-family="sans-serif" font-size="13" fill="{INK}">',
        f"<title>{escape(title)}</title>",
        f'<clipPath id="inside"><rect x="{LEFT}" y="{TOP - 1}" width="{right - LEFT}"'
        f' height="{low - TOP + 2}"/></clipPath>',
        f'<text x="{LEFT}" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
        f'<text x="{(LEFT + right) / 2:g}" y="{HEIGHT - 10}" text-anchor="middle">{x.name}</text>',
        f'<text transform="translate(16 {(TOP + low) / 2:g}) rotate(-90)"'
        f' text-anchor="middle">{y.name}</text>',
    ]
    grid = f'stroke="{INK}" stroke-opacity="0.25"'
    for tick in x.ticks:
        place = f"{across(tick):.1f}"
        parts.append(f'<line x1="{place}" x2="{place}" y1="{TOP}" y2="{low}" {grid}/>')
        parts.append(f'<text x="{place}" y="{low + 18}" text-anchor="middle">{tick:,g}</text>')
    for tick in y.ticks:
        place = f"{up(tick):.1f}"
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{place}" y2="{place}" {grid}/>')
        parts.append(f'<text x="{LEFT - 8}" y="{place}" dy="4" text-anchor="end">{tick:,g}</text>')
    for n, line in enumerate(lines):
        colour, at = COLOURS[n % len(COLOURS)], TOP + 14 + 22 * n
        points = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in line.points)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"'
            ' clip-path="url(#inside)"/>'
        )
        parts.append(f'<rect x="{right + 16}" y="{at - 5}" width="16" height="3" fill="{colour}"/>')
        parts.append(f'<text x="{right + 40}" y="{at}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
