"""Random programs: from hypothesis (`programs`), or from a seed (`program_of`)."""

from __future__ import annotations

import warnings

from hypothesis import strategies as st

import tpc
from tests.fuzz import gradients
from tests.fuzz.functions import FUNCTIONS, SMOOTH_FUNCTIONS
from tests.fuzz.growth import Choices, Growth, is_inexact, seeded
from tests.fuzz.memory import MEMORY, MORE_MEMORY
from tests.fuzz.program import Leaf, Program
from tests.fuzz.values import MORE_VALUES, VALUES

SHAPES = ((2, 3), (2, 3), (3,), (), (1, 3), (3, 1), (2, 1, 3), (4, 2), (3, 3), (0, 3), (1,))
DTYPES = ("float32",) * 6 + ("float64",) * 3 + ("int64", "bool", "int32", "complex64", "float16", "uint8")


def grown(choices: Choices, smooth: bool = False, random: bool = True) -> Program:
    """One program. A `smooth` one is differentiable in f64; without `random` its values are what any library computes."""
    leaves = _leaves(choices, smooth)
    made: dict[str, object] = {}
    env: dict[str, object] = {"ns": tpc}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for leaf in leaves:
            made[leaf.name] = env[leaf.name] = leaf.make(tpc, leaf.array(), made)
        g = Growth(choices, env, smooth=smooth)
        g.random = random
        families = (
            (VALUES, MEMORY, SMOOTH_FUNCTIONS, gradients.SMOOTH_INSIDE)
            if smooth
            else (MORE_VALUES, MORE_MEMORY, FUNCTIONS, gradients.INSIDE)
        )
        _grow(g, [*([families[0]] * 4), *([families[1]] * 3), *([families[2]] * 2), families[3]], choices.number(2, 9))
        body, failed = tuple(g.steps), g.failed
        results = () if failed else _results(g)
        g.steps = []
        if not failed and not smooth:
            for name in g.tensors():
                if name not in results and name not in made:
                    del g.env[name]
            g.not_inputs = {*results, *g.tensors(lambda t: not t.is_leaf)}
            if choices.chance(75):
                _grow(g, [gradients.OUTSIDE] * 3 + [MORE_MEMORY], choices.number(1, 3))
    observed = tuple(n for s in g.steps if not g.failed for n in s.binds if n in g.env)
    budget, again = choices.choose([1.0, 0.5, 0.0]), choices.chance(30)
    nested = min(choices.choose([0, 0, 1, 2]), len(results))
    return Program(leaves, tuple(g.classes), body, results, tuple(g.steps), observed, budget, nested, again)


def _leaves(choices: Choices, smooth: bool) -> tuple[Leaf, ...]:
    leaves: list[Leaf] = []
    names = [f"x{i}" for i in range(choices.number(1, 3))] + [f"w{i}" for i in range(choices.number(0, 2))]
    for name in names:
        seed, shape = choices.number(0, 999), choices.choose(SHAPES)
        if smooth:
            leaves.append(Leaf(name, "float64", shape, True, "leaf", seed, True))
            continue
        dtype = choices.choose(DTYPES)
        tracked = dtype[0] in "fc" and choices.number(0, 2) > 0
        form = "leaf"
        if choices.chance(15):
            alias = [leaf.name for leaf in leaves if leaf.form == "leaf" and name[0] == leaf.name[0]]
            form = choices.choose(["transposed", "sliced", "computed", *alias])
            if form in ("transposed", "sliced") and not shape:
                form = "leaf"
        if form.startswith(("x", "w")):
            first = next(leaf for leaf in leaves if leaf.name == form)
            shape, dtype, tracked, seed = first.shape, first.dtype, first.tracked, first.seed
        leaves.append(Leaf(name, dtype, shape, tracked, form, seed))
    return tuple(leaves)


def _grow(g: Growth, families: list, count: int) -> None:
    while count and not g.failed:
        g.choose(g.choose(families))(g)
        count -= 1


def _results(g: Growth) -> tuple[str, ...]:
    """Late values mostly, sometimes an argument or the same tensor twice."""
    made = g.tensors(lambda t: is_inexact(t) or not g.smooth)
    made = [n for n in made if n[0] == "v"] or made
    chosen = made[-g.choices.number(1, 3) :]
    if g.chance(30):
        chosen.append(g.choose(made))
    if g.chance(10):
        chosen.append(g.choose(g.tensors()))
    return tuple(dict.fromkeys(chosen))


def program_of(seed: int, smooth: bool = False, random: bool = True) -> Program:
    """The program of a seed."""
    return grown(seeded(seed), smooth, random)


@st.composite
def programs(draw, smooth: bool = False) -> Program:
    """Random programs; they shrink to fewer and simpler steps."""
    return grown(Choices(lambda low, high: draw(st.integers(low, high))), smooth)
