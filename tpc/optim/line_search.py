"""Steps along a direction that meet the strong Wolfe conditions (Nocedal & Wright, Numerical Optimization, algorithms 3.5 and 3.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

ENOUGH_FALL, ENOUGH_FLATTENING = 1e-4, 0.9
MOST_TRIALS, NARROWEST = 25, 1e-9


class Point(NamedTuple):
    """A place on the line: how far along, the loss, its gradient, its slope along the line."""

    at: float
    loss: float
    gradient: Any
    slope: float


def lowest_of_cubic(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic with the losses and slopes of two points is lowest, within bounds; their middle where it has no minimum (3.59)."""
    low, high = bounds or (min(a.at, b.at), max(a.at, b.at))
    if a.at > b.at:
        a, b = b, a
    # Two points in the same place: no cubic, and no division by their distance.
    secant = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at) if a.at != b.at else math.nan
    square = secant * secant - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    width = b.slope - a.slope + 2 * root
    at = b.at - (b.at - a.at) * ((b.slope + root - secant) / width) if width else math.nan
    return min(max(at, low), high) if at == at else (low + high) / 2


def strong_wolfe(evaluate: Callable[[float], Point], start: Point, first: float, longest: float) -> tuple[Point, int]:
    """A point with a loss low enough and a slope flat enough, and how many were tried; the lowest bracketing one if none was found.

    `longest` is the largest element of the direction: an interval that is shorter in every element than `NARROWEST` is not halved on.
    """
    trials, before, now = 1, start, evaluate(first)
    bracket: list[Point] = []
    done = False
    for number in range(MOST_TRIALS):
        if _too_high(now, start) or (number > 1 and now.loss >= before.loss):
            bracket = [before, now]
        elif abs(now.slope) <= -ENOUGH_FLATTENING * start.slope:
            bracket, done = [now, now], True
        elif now.slope >= 0:
            bracket = [before, now]
        if bracket:
            break
        further = lowest_of_cubic(before, now, (now.at + 0.01 * (now.at - before.at), now.at * 10))
        before, now, trials = now, evaluate(further), trials + 1
    else:
        return min(start, now, key=lambda p: p.loss), trials
    return (now, trials) if done else _narrowed(evaluate, start, bracket, longest, trials)


def _too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + ENOUGH_FALL * point.at * start.slope


def _narrowed(evaluate: Callable[[float], Point], start: Point, bracket: list[Point], longest: float, trials: int) -> tuple[Point, int]:
    """Zooms into an interval that holds a good point; `low` is its end with the lower loss."""
    low, high = sorted(bracket, key=lambda p: p.loss)
    left, stuck = MOST_TRIALS + 1 - trials, False
    for _ in range(left):
        if abs(high.at - low.at) * longest < NARROWEST:
            break
        ends = sorted((low.at, high.at))
        at, margin = lowest_of_cubic(low, high), 0.1 * (ends[1] - ends[0])
        if min(ends[1] - at, at - ends[0]) >= margin:
            stuck = False
        elif stuck or not ends[0] < at < ends[1]:
            # Twice too near an end: a step inside, lest the interval shrink from one side only.
            at = ends[1] - margin if abs(at - ends[1]) < abs(at - ends[0]) else ends[0] + margin
            stuck = False
        else:
            stuck = True
        now, trials = evaluate(at), trials + 1
        if _too_high(now, start) or now.loss >= low.loss:
            low, high = sorted((low, now), key=lambda p: p.loss)
            continue
        if abs(now.slope) <= -ENOUGH_FLATTENING * start.slope:
            return now, trials
        low, high = now, low if now.slope * (high.at - low.at) >= 0 else high
    return low, trials
