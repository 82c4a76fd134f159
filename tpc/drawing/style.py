"""How pictures look: colours that the colour-blind can tell apart (after Okabe and Ito), beside shapes that differ as well."""

from __future__ import annotations

from typing import NamedTuple

FONT = "Helvetica"
"""A font whose metrics every Graphviz knows; viewers of SVG take Arial or the like where it is missing."""
INK = "#1b2733"
FAINT = "#51606f"
LINE = "#6b7885"
GAP = "#d5dbe1"


class Look(NamedTuple):
    """Attributes of a kind of box."""

    fill: str
    border: str
    style: str = "filled"
    shape: str = "box"
    width: float = 1.1


BOXES = {
    "function": Look("#d6e8f5", "#0072b2", "rounded,filled"),
    "backward": Look("#fbe0d0", "#d55e00", "filled"),
    "again": Look("#d6e8f5", "#0072b2", "rounded,filled,dashed"),
    "op": Look("#ffffff", LINE, "rounded,filled", width=0.8),
    "input": Look("#e9ecef", "#3c4854", "filled", "box"),
    "output": Look("#ffffff", "#3c4854", "filled", "box", 2.0),
    "kept": Look("#ffe9a8", "#9a6b00", "filled", "cylinder"),
    "output value": Look("#fff8e1", "#9a6b00", "filled", "cylinder"),
    "recomputed": Look("#ffffff", "#9a6b00", "filled,dashed", "cylinder"),
}
SAVED_EDGE = "#b07d00"
FUSED = Look("#e2f3ec", "#00805c", "rounded,filled,dashed")
COLUMN_FILL = "#f7f9fb"

LEGEND = (
    ("function", "Function application"),
    ("backward", "backward node"),
    ("again", "computed again"),
    ("op", "op of no Function"),
    ("input", "input"),
    ("output", "output"),
    ("kept", "kept for backward"),
    ("recomputed", "not kept: computed again"),
    ("output value", "not kept: an output"),
    ("fused", "fused group"),
)
"""Key of the look, or ``fused``, and what it stands for, in the order of the legend."""
