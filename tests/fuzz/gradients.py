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


def backward_to(g: Growth) -> None:
    """Into some inputs alone, or from several roots."""
    loss, inputs = _scalar(g), [n for n in _inputs(g) if g.env[n].is_leaf]
    other = _scalar(g)
    if loss and inputs:
        some = ", ".join(g.some(inputs, 1))
        g.do(g.choose([f"ns.autograd.backward([{loss}, {other}], inputs=[{some}])", f"{loss}.backward(inputs=[{some}])"]))


def train(g: Growth) -> None:
    """An optimiser made outside, and a step of it."""
    parameters = [n for n in g.tensors(lambda t: t.is_leaf and is_tracked(t) and is_floating(t)) if n[0] == "w"]
    loss = _scalar(g)
    if not parameters or not loss:
        return
    if "opt" not in g.env:
        options = ["SGD({}, lr=0.1)", "SGD({}, lr=0.1, momentum=0.9, nesterov=True)", "SGD({}, lr=0.01, weight_decay=0.1, momentum=0.5)"]
        options += ["Adam({}, lr=0.01)", "AdamW({}, lr=0.01, weight_decay=0.1)"]
        g.define(f"opt = ns.optim.{g.choose(options).format('[' + ', '.join(parameters) + ']')}", "opt")
    g.do(g.choose([f"opt.zero_grad()\n{loss}.backward()\nopt.step()", f"{loss}.backward()\nopt.step()\nopt.zero_grad()"]))


def retain(g: Growth) -> None:
    x = g.value(lambda t: is_tracked(t) and is_floating(t) and not t.is_leaf)
    if x and x not in g.not_inputs:
        g.do(f"{x}.retain_grad()\n({x} * {g.constant(x)}).sum().backward(retain_graph=True)")
        g.let(f"{x}.grad")


def loop(g: Growth) -> None:
    x = g.value(is_floating)
    if x is None:
        return
    y, name = g.like(x), g.fresh()
    body = g.choose([f"{name} = {name} * {y} + 0.5", f"{name} = ns.tanh({name}) - {y}", f"{name} = {name} + {y}.sin()"])
    g.do(f"{name} = {x}\nfor _ in range({g.number(1, 3)}):\n    {body}", [name])


def hooked(g: Growth) -> None:
    """A hook for the time of one backward."""
    x, loss = g.value(lambda t: is_tracked(t) and is_floating(t)), _scalar(g)
    if x and loss and x not in g.not_inputs:
        hook = g.choose(["lambda d: d * 2", "lambda d: None", "lambda d: d.clamp(-1, 1)"])
        g.do(f"handle = {x}.register_hook({hook})\n({loss} + {x}.sum()).backward()\nhandle.remove()")


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
    backward_to,
    train,
    train,
    retain,
    loop,
    hooked,
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

SMOOTH_INSIDE = (grad, loop)

OUTSIDE = (backward, backward, backward_seeded, grad, grad, penalty, read_grad, update, backward_to, train, hooked)
