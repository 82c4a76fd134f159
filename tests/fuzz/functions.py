"""Steps that define a custom Function and apply it."""

from __future__ import annotations

from tests.fuzz.growth import Growth, is_floating, is_inexact, is_real
from tests.fuzz.memory import view, write
from tests.fuzz.values import along, binary, reduce, unary, where

FORMULAS = {
    "sin": ("ns.sin({x})", "ns.cos({x})"),
    "tanh": ("ns.tanh({x})", "(1 - {y} * {y})"),
    "sigmoid": ("ns.sigmoid({x})", "{y} * (1 - {y})"),
    "square": ("{x} * {x}", "2 * {x}"),
    "exp": ("ns.exp({x})", "{y}"),
    "cube": ("{x} ** 3", "3 * {x} * {x}"),
}
"""A function and its derivative, by its argument or its value."""


def define(g: Growth, kind: str, lines: list[str]) -> str:
    name = f"F{len(g.classes)}"
    g.define("\n".join([f"class {name}(ns.autograd.Function):  # {kind}", *["    " + line for line in lines]]), name)
    return name


def _styled(split: bool, signature: str, compute: list[str], context: list[str], output: str) -> list[str]:
    """forward in one of the two styles; `context` reads the arguments and the outputs by their names."""
    if not split:
        return ["@staticmethod", f"def forward(ctx, {signature}):", *_in([*compute, *context, f"return {output}"])]
    unpack = [f"{signature}, = inputs", f"{output} = output"]
    return [
        "@staticmethod", f"def forward({signature}):", *_in([*compute, f"return {output}"]),
        "@staticmethod", "def setup_context(ctx, inputs, output):", *_in([*unpack, *context]),
    ]  # fmt: skip


def _backward(signature: str, lines: list[str]) -> list[str]:
    return ["@staticmethod", f"def backward(ctx, {signature}):", *_in(lines)]


def _in(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


# --- right derivatives --------------------------------------------------------------------------


def composed(g: Growth) -> None:
    """k * h(f(x)): saves the input, the output or what is between, keeps k on ctx."""
    x = g.value(is_floating)
    if x is None:
        return
    (f, df), (h, dh) = FORMULAS[g.choose(FORMULAS)], FORMULAS[g.choose(FORMULAS)]
    split = g.chance(40)
    # What is between is a constant to the second derivative, as in PyTorch.
    inner = g.chance(60) and not split and not g.smooth
    compute = [f"u = {f.format(x='x')}", f"v = {h.format(x='u')} * k"]
    context = [f"ctx.save_for_backward({'x, u, v' if inner else 'x, v'})", "ctx.k = k"]
    back = ["x, u, v = ctx.saved_tensors"] if inner else ["x, v = ctx.saved_tensors", f"u = {f.format(x='x')}"]
    back += [f"return g * ctx.k * {dh.format(x='u', y='(v / ctx.k)')} * {df.format(x='x', y='u')}, None"]
    if g.chance(30):
        back = ["if not ctx.needs_input_grad[0]:", "    return None, None", *back]
    name = define(g, "composed", [*_styled(split, "x, k", compute, context, "v"), *_backward("g", back)])
    g.let(f"{name}.apply({x}, {g.choose(['2.0', '0.5', '-1.5'])})")


def product(g: Growth) -> None:
    """a * b and a + b, broadcast: two inputs, several outputs, gradients that may be None or unneeded."""
    a = g.value(is_floating)
    if a is None:
        return
    b = g.like(a, same_dtype=True)
    two, split, materialize = g.chance(60), g.chance(40), g.chance(50)
    extra = two and not g.smooth and g.chance(50)
    compute = ["p = a * b"] + (["q = a + b"] if two else []) + (["m = p > 0"] if extra else [])
    context = ["ctx.save_for_backward(a, b)"]
    if extra:
        context.append("ctx.mark_non_differentiable(m)")
    if not materialize:
        context.append("ctx.set_materialize_grads(False)")
    back = ["a, b = ctx.saved_tensors", "ga = gb = None"]
    if two and not materialize:
        back += ["dq = gq if gq is not None else 0", "gp = gp if gp is not None else ns.zeros_like(a * b)"]
    add = (" + dq" if not materialize else " + gq") if two else ""
    back += ["if ctx.needs_input_grad[0]:", f"    ga = (gp * b{add}).sum_to_size(a.shape)"]
    back += ["if ctx.needs_input_grad[1]:", f"    gb = (gp * a{add}).sum_to_size(b.shape)", "return ga, gb"]
    if not materialize and not two:
        back = ["if gp is None:", "    return None, None", *back]
    output = "p, q, m" if extra else "p, q" if two else "p"
    signature = "gp, gq, gm" if extra else "gp, gq" if two else "gp"
    name = define(g, "product", [*_styled(split, "a, b", compute, context, output), *_backward(signature, back)])
    g.let(f"{name}.apply({a}, {b})", 3 if extra else 2 if two else 1)


def nested(g: Growth) -> None:
    """Forward applies another Function; backward computes it again under enable_grad."""
    if not g.classes:
        composed(g)
        return
    inner = [s.binds[0] for s in g.classes if "# composed" in s.code]
    x = g.value(is_floating)
    if not inner or x is None:
        return
    inside = f"{g.choose(inner)}.apply({{x}}, 0.5)"
    twice = g.smooth or g.chance(30)
    forward = [f"y = {inside.format(x='x')} * 2", "ctx.save_for_backward(x)", "return y"]
    back = ["x, = ctx.saved_tensors", "with ns.enable_grad():", "    z = x.detach().requires_grad_()"]
    if twice:
        back[2] = "    z = x if x.requires_grad else x.detach().requires_grad_()"
    back += [f"    y = {inside.format(x='z')} * 2", f"r, = ns.autograd.grad(y, z, g{', create_graph=True' if twice else ''})", "return r"]
    name = define(g, "nested", ["@staticmethod", "def forward(ctx, x):", *_in(forward), *_backward("g", back)])
    g.let(f"{name}.apply({x})")


def gathered(g: Growth) -> None:
    """A list and a keyword argument in, an outside tensor read in forward and backward, a list out."""
    x = g.value(is_floating)
    outside = [n for n in g.tensors(is_floating) if n[0] == "w"]
    if x is None:
        return
    y = g.choose(g.tensors(lambda t: t.shape == g.env[x].shape and t.dtype == g.env[x].dtype))
    w = g.choose(outside) if outside and not g.smooth and g.chance(60) else None
    factor = f"{w}.detach().sum().to(xs[0].dtype)" if w else "1.5"
    forward = ["ctx.save_for_backward(None, *xs)", "ctx.scale = scale", f"return [xs[0] * xs[1] * scale, xs[0] + {factor}]"]
    back = ["_, a, b = ctx.saved_tensors", "xs = [a]"]
    back.append(f"return [g0 * b * ctx.scale + g1, g0 * a * ctx.scale{' + 0 * ' + factor if w else ''}], None")
    name = define(g, "gathered", ["@staticmethod", "def forward(ctx, xs, scale=1.0):", *_in(forward), *_backward("g0, g1", back)])
    g.let(f"{name}.apply([{x}, {y}], {g.choose(['2.0', '0.5'])})", 2)


# --- any derivative -----------------------------------------------------------------------------


def dirty(g: Growth) -> None:
    """Writes its input, says so, returns it."""
    unsafe = g.chance(5)
    x = g.value(lambda t: is_floating(t) and (unsafe or not (t.is_leaf and t.requires_grad)))
    if x is None or x in g.protected:
        return
    split, two = g.chance(30), g.chance(25)
    how = g.choose(["x.mul_(k)", "x.mul_(k)", "x.copy_(x * k)", "x[...] = x * k"])
    compute = [how, *(["s = x.sum()"] if two else [])]
    context = ["ctx.mark_dirty(x)", "ctx.k = k"]
    if g.chance(30):
        context.append("ctx.save_for_backward(x)")
    back = [f"return g * ctx.k{' + gs' if two else ''}, None"]
    signature = "g, gs" if two else "g"
    name = define(g, "dirty", [*_styled(split, "x, k", compute, context, "x, s" if two else "x"), *_backward(signature, back)])
    if g.chance(50):
        g.do(f"{name}.apply({x}, 2.0)")
    else:
        g.let(f"{name}.apply({x}, 0.5)", 2 if two else 1)


def passing(g: Growth) -> None:
    """Returns its input, or a view of it."""
    x = g.value(is_floating)
    if x is None:
        return
    how = g.choose(["x", "x.view_as(x)", "x.reshape(-1)", "x.detach()", "x.unsqueeze(0)", "x[...]"])
    forward = ["ctx.shape = x.shape", f"return {how}"]
    name = define(
        g, "passing", ["@staticmethod", "def forward(ctx, x):", *_in(forward), *_backward("g", ["return (g * 0.5).reshape(ctx.shape)"])]
    )
    g.let(f"{name}.apply({x})")


def arbitrary(g: Growth) -> None:
    """A random forward, and a backward that is linear in what it gets and uses what was saved in some way."""
    names = [g.choose(g.tensors(is_real)) for _ in range(g.number(1, 3))] if g.tensors(is_real) else []
    if not names:
        return
    parameters = [f"x{i}" for i in range(len(names))]
    inner = Growth(g.choices, {"ns": g.env["ns"], **{p: g.env[n].detach().clone() for p, n in zip(parameters, names, strict=True)}})
    inner.classes = g.classes
    if g.chance(80):
        inner.protected = set(parameters)
    for _ in range(g.number(1, 4)):
        g.choose([unary, binary, binary, reduce, view, where, along, write])(inner)
        if inner.failed:
            return
    locals_ = [n for n in inner.tensors() if n[0] == "v"]
    floating = [n for n in locals_ if is_floating(inner.env[n])]
    if not floating:
        return
    outputs = list(dict.fromkeys([floating[-1], *[g.choose(locals_) for _ in range(g.number(0, 2))]]))
    saved = g.some(list(dict.fromkeys([*parameters, *outputs, g.choose(locals_)])), 1)
    forward = [line for step in inner.steps for line in step.lines]
    forward += [f"ctx.save_for_backward({', '.join(saved)})", f"ctx.shapes = [{', '.join(f'{p}.shape' for p in parameters)}]"]
    forward += [f"return {', '.join(outputs)}"]
    grads = [f"g{i}" for i in range(len(outputs))]
    back = [f"{', '.join(saved)}, = ctx.saved_tensors"]
    results = []
    for i, p in enumerate(parameters):
        if not is_floating(inner.env[p]) or g.chance(10):
            results.append("None")
            continue
        gradient, other = g.choose(grads), g.choose(saved)
        results.append(f"r{i}")
        back.append(f"r{i} = {_fitted(g, gradient, inner.env[outputs[grads.index(gradient)]], other, inner.env[other], inner.env[p], i)}")
    back.append(f"return {', '.join(results)}")
    name = define(
        g, "arbitrary", ["@staticmethod", f"def forward(ctx, {', '.join(parameters)}):", *_in(forward), *_backward(", ".join(grads), back)]
    )
    g.let(f"{name}.apply({', '.join(names)})", len(outputs))


def _fitted(g: Growth, gradient: str, have: object, other: str, saved: object, want: object, i: int) -> str:
    """An expression in a gradient and a saved tensor that has the shape of parameter i."""
    shape = want.shape  # type: ignore[attr-defined]
    factor = g.choose([f" * {other}", f" * {other}.sum()", "", f" * ns.cos({other})"]) if is_inexact(saved) else ""  # type: ignore[arg-type]
    if have.shape == shape and (not factor or "sum" in factor or saved.shape == shape):  # type: ignore[attr-defined]
        return f"{gradient}{factor}"
    return f"{gradient}.sum().expand(ctx.shapes[{i}]) * 0.5"


FUNCTIONS = (gathered, composed, composed, product, product, nested, dirty, dirty, passing, arbitrary, arbitrary, arbitrary)

SMOOTH_FUNCTIONS = (gathered, composed, composed, product, nested)
