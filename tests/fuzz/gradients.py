"""Steps of autograd and of Python: backward and grad inside, updates of outside tensors, hooks, branches on values."""

from __future__ import annotations

from tests.fuzz.growth import Growth, is_floating, is_inexact, is_numeric, is_tracked


def _scalar(g: Growth) -> str | None:
    """An expression for a scalar that requires grad."""
    x = g.value(lambda t: is_tracked(t) and is_inexact(t))
    if x is None:
        return None
    t = g.env[x]
    real = f"{x}.abs()" if t.dtype.is_complex else x
    if not t.dim() and not t.dtype.is_complex and g.chance(50):
        return x
    return f"({real} * {real}).sum()" if g.chance(30) else f"{real}.sum()"


def _inputs(g: Growth) -> list[str]:
    return [n for n in g.tensors(lambda t: is_tracked(t) and is_inexact(t)) if n not in g.not_inputs]


def backward(g: Growth) -> None:
    loss = _scalar(g)
    if loss:
        g.do(f"{loss}.backward({g.choose(['', '', 'retain_graph=True'])})")


def backward_seeded(g: Growth) -> None:
    x = g.value(lambda t: is_tracked(t) and is_floating(t))
    if x is None:
        return
    others = g.tensors(lambda t: t.shape == g.env[x].shape and is_floating(t))
    g.do(f"{x}.backward({g.choose(others)}.detach(){g.choose(['', ', retain_graph=True'])})")


def grad(g: Growth) -> None:
    """`autograd.grad`, now and then to be differentiated again."""
    loss, inputs = _scalar(g), _inputs(g)
    if not loss or not inputs:
        return
    chosen = [g.choose(inputs) for _ in range(g.number(1, 2))]
    if g.smooth or g.chance(60):
        options = ", create_graph=True"
    else:
        options = g.choose(["", ", retain_graph=True"])
    one = len(chosen) == 1
    names = [g.fresh() for _ in chosen]
    g.do(f"{', '.join(names)}{',' if one else ''} = ns.autograd.grad({loss}, [{', '.join(chosen)}]{options}, allow_unused=True)", names)
    # A gradient of something unused is None; later steps take tensors only.


def penalty(g: Growth) -> None:
    """A gradient that goes into a loss again."""
    loss, leaves = _scalar(g), _inputs(g)
    if loss and leaves:
        name = g.fresh()
        g.do(f"{name} = ns.autograd.grad({loss}, {g.choose(leaves)}, create_graph=True, allow_unused=True)[0]", [name])
        if name in g.env and g.env[name] is not None and g.env[name].requires_grad:
            g.do(f"({name} ** 2).sum().backward()")


def read_grad(g: Growth) -> None:
    x = g.value(lambda t: t.is_leaf and t.grad is not None)
    if x:
        g.let(g.choose([f"{x}.grad", f"{x}.grad * 2", f"{x}.grad.clone()"]))


def change_grad(g: Growth) -> None:
    x = g.value(lambda t: t.is_leaf and t.requires_grad)
    if x is None:
        return
    if g.env[x].grad is None:
        g.do(f"{x}.grad = ns.ones_like({x})")
    else:
        g.do(g.choose([f"{x}.grad = None", f"{x}.grad.zero_()", f"{x}.grad = {x}.grad * 0.5", f"{x}.grad.mul_(2)"]))


def update(g: Growth) -> None:
    """What an optimiser does."""
    x = g.value(lambda t: t.is_leaf and t.requires_grad and t.grad is not None)
    if x is None:
        return
    change = g.choose(
        [f"{x}.sub_(0.1 * {x}.grad)", f"{x} -= 0.5 * {x}.grad", f"{x}.copy_({x} - {x}.grad)", f"{x}.add_({x}.grad, alpha=-0.1)"]
    )
    g.do(f"with ns.no_grad():\n    {change}")


def running(g: Growth) -> None:
    """Statistics kept in an untracked tensor from outside."""
    x = g.value(lambda t: t.is_leaf and not t.requires_grad and is_floating(t))
    if x:
        y = g.like(x)
        g.do(
            g.choose(
                [
                    f"{x}.mul_(0.9).add_({y}.detach().mean(), alpha=0.1)",
                    f"with ns.no_grad():\n    {x}.copy_({y})",
                    f"{x}.fill_({g.constant(x)})",
                ]
            )
        )


def flags(g: Growth) -> None:
    x = g.value(is_inexact)
    if x is None:
        return
    if not g.env[x].requires_grad:
        g.do(f"{x}.requires_grad_()")
    else:
        g.let(f"{x}.detach()")
        if g.chance(30):
            g.do(f"{x}.register_hook(lambda g: g * 2)")


def unrecorded(g: Growth) -> None:
    x = g.value(is_floating)
    if x:
        name = g.fresh()
        g.do(f"with ns.no_grad():\n    {name} = {g.choose([f'{x} * 2', f'{x}.sum()', f'{x}.clone()', f'{x}[None]'])}", [name])


def branch(g: Growth) -> None:
    """Python that looks at a value."""
    x = g.value(is_numeric)
    if x is None or g.env[x].dtype.is_complex:
        return
    name, y = g.fresh(), g.value(is_floating) or x
    limit = g.choose(["0", "1", "2.5"])
    kind = g.choose(["if", "item", "bool"])
    if kind == "if":
        g.do(f"if {x}.sum() > {limit}:\n    {name} = {y} * 2\nelse:\n    {name} = {y} + 1", [name])
    elif kind == "item":
        g.do(f"{name} = {y} * {x}.float().sum().sign().nan_to_num().item()", [name])
    else:
        g.do(f"{name} = {y}.neg() if bool(({x} > {limit}).any()) else {y}", [name])


INSIDE = (
    backward,
    backward,
    backward_seeded,
    grad,
    grad,
    penalty,
    read_grad,
    read_grad,
    change_grad,
    update,
    update,
    running,
    flags,
    unrecorded,
    branch,
)

SMOOTH_INSIDE = (grad,)

OUTSIDE = (backward, backward, backward_seeded, grad, grad, penalty, read_grad, update)
