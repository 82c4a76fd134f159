"""cond, while_loop and scan: values, errors, closures, gradients, tangents and batches against the same code unrolled in Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import tpc
from tpc.ir.parser import parse_program

X = tpc.tensor([1.0, 2.0, 3.0])
C, XS, K = tpc.tensor([0.5, 1.0]), tpc.arange(6.0).reshape(3, 2), tpc.tensor([0.5, 2.0])
YES, NO = tpc.tensor(True), tpc.tensor(False)


def close(a, b):
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            close(x, y)
    else:
        tpc.testing.assert_close(a.detach(), b.detach(), rtol=1e-5, atol=1e-6)


def by_scan(c, xs, k, reverse=False):
    last, ys = tpc.scan(lambda c, x: (c * k + tpc.exp(-x), (c * x).sin()), c, xs, reverse=reverse)
    return (last**2).sum() + (ys**2).sum()


def by_hand(c, xs, k, reverse=False):
    ys = []
    for x in reversed(list(xs)) if reverse else list(xs):
        ys.append((c * x).sin())
        c = c * k + tpc.exp(-x)
    return (c**2).sum() + sum((y**2).sum() for y in ys)


def by_cond(p, x, w):
    return tpc.cond(p > 0, lambda a: (a * w).sin().sum(), lambda a: a.exp().sum(), (x,))


def by_if(p, x, w):
    return (x * w).sin().sum() if p > 0 else x.exp().sum()


def grads(function, args, **options):
    leaves = [a.detach().requires_grad_() for a in args]
    return leaves, tpc.autograd.grad(function(*leaves), leaves, allow_unused=True, **options)


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["deferred", "compiled"])
def test_values(mode):
    wrap = tpc.compile(fullgraph=True) if mode == "compiled" else lambda f: f
    choose = wrap(lambda p: tpc.cond(p, lambda d: {"a": d["x"] + 1}, lambda d: {"a": d["x"] * X}, ({"x": X},)))
    for _ in range(4):
        assert choose(YES)["a"].tolist() == [2, 3, 4]
        assert choose(NO)["a"].tolist() == [1, 4, 9]
    count = wrap(lambda n: tpc.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2), (0, X)))
    for n in (0, 1, 5, -3):
        i, x = count(tpc.tensor(n))
        assert (i.item(), x.tolist()) == (max(n, 0), [v * 2 ** max(n, 0) for v in (1, 2, 3)])
    # PyTorch's numbers.
    last, ys = wrap(lambda: tpc.scan(lambda c, x: (c + x, c * x), tpc.zeros(2), XS))()
    assert (last.tolist(), ys.tolist()) == ([6, 9], [[0, 0], [0, 3], [8, 20]])
    last, ys = wrap(lambda: tpc.scan(lambda c, x: (c + x, c * x), tpc.zeros(2), XS, reverse=True))()
    assert (last.tolist(), ys.tolist()) == ([6, 9], [[0, 8], [8, 15], [0, 0]])
    last, ys = wrap(lambda: tpc.scan(lambda c, x: (c + x, c * x), tpc.zeros(3), XS, dim=1))()
    assert (last.tolist(), ys.tolist()) == ([1, 5, 9], [[0, 0], [0, 6], [0, 20]])


def test_trees_and_degenerate_lengths():
    last, ys = tpc.scan(lambda c, x: ({"a": c["a"] + x[0]}, (x[1], {"b": c["a"]})), {"a": C}, (XS, XS * 2))
    assert last["a"].tolist() == [6.5, 10.0]
    assert ys[0].tolist() == (XS * 2).tolist()
    assert ys[1]["b"].tolist() == [[0.5, 1], [0.5, 2], [2.5, 5]]
    last, ys = tpc.scan(lambda c, x: (c + x, c * x), C, tpc.zeros(0, 2))
    assert (last.tolist(), ys.shape) == (C.tolist(), (0, 2))
    last, ys = tpc.scan(lambda c, x: (c * 2, ()), C, None, length=3)
    assert (last.tolist(), ys) == ([4, 8], ())
    assert tpc.while_loop(lambda x: x.sum() < 30, lambda x: x * 2, (X,)).tolist() == [8, 16, 24]
    assert [t.tolist() for t in tpc.while_loop(lambda i, x: i < 1, lambda i, x: [i + 1, x], [0, X])] == [1, [1, 2, 3]]


def test_python_predicates_decide_at_once():
    seen = []
    assert tpc.cond(True, lambda x: x + 1, lambda x: seen.append(1) or x, (X,)).tolist() == [2, 3, 4]
    assert tpc.cond(0, lambda x: seen.append(1) or x, lambda x: x - 1, (X,)).tolist() == [0, 1, 2]
    assert not seen


def test_bodies_may_return_inputs_and_memory_from_outside():
    assert tpc.cond(YES, lambda x: x, lambda x: x - 1, (X,)).tolist() == [1, 2, 3]
    assert tpc.cond(NO, lambda x: x, lambda x: X.detach() * 2, (X,)).tolist() == [2, 4, 6]
    got = tpc.cond(YES, lambda: X, lambda: X + 1)
    got.add_(1)
    assert X.tolist() == [1, 2, 3]


def test_nested():
    def step(c, x):
        return tpc.cond(x.sum() > 1, lambda c: tpc.while_loop(lambda v: v.sum() < 20, lambda v: v * 2 + x, (c,)), lambda c: c + 1, (c,)), c

    last, ys = tpc.scan(step, C, XS)
    c, seen = [0.5, 1.0], []
    for x in ([0, 1], [2, 3], [4, 5]):
        seen.append(c)
        if sum(x) > 1:
            while sum(c) < 20:
                c = [a * 2 + b for a, b in zip(c, x, strict=True)]
        else:
            c = [a + 1 for a in c]
    assert (last.tolist(), ys.tolist()) == (c, seen)


def test_bodies_that_only_look_alike_are_different():
    for k in (2.0, 3.0, 2.0):
        assert tpc.cond(YES, lambda x, k=k: x * k, lambda x: x, (X,)).tolist() == [k, 2 * k, 3 * k]


def test_transforms_inside_bodies():
    cube = lambda z: (z**3).sum()
    assert tpc.cond(YES, tpc.func.grad(cube), lambda x: x, (X,)).tolist() == [3, 12, 27]
    assert tpc.cond(YES, tpc.vmap(lambda z: z * z), lambda x: x, (X,)).tolist() == [1, 4, 9]
    assert tpc.cond(YES, tpc.compile(lambda z: z * 5), lambda x: x, (X,)).tolist() == [5, 10, 15]


def test_threads():
    def work(n):
        x = tpc.tensor([1.0, 2.0], requires_grad=True)
        i, y = tpc.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + 1), (0, X))
        tpc.scan(lambda c, _: (c * n, ()), x, None, length=2)[0].sum().backward()
        return i.item(), y.tolist(), x.grad.tolist()

    with ThreadPoolExecutor(4) as pool:
        for n, got in zip(range(12), pool.map(work, range(12)), strict=True):
            assert got == (n, [1 + n, 2 + n, 3 + n], [n * n] * 2)


# --- errors -------------------------------------------------------------------------------------

ERRORS = {
    "branches": (lambda: tpc.cond(YES, 3, lambda x: x, (X,)), "Expect both branches to be callable"),
    "predicate": (lambda: tpc.cond(X > 0, lambda x: x, lambda x: x, (X,)), "Expected pred to be bool or single-element tensor"),
    "operands": (lambda: tpc.cond(YES, lambda x: x, lambda x: x, X), "Expect operands to be a tuple of possibly nested"),
    "operand": (lambda: tpc.cond(YES, lambda x: x, lambda x: x, (3,)), "only consists of tensor leaves"),
    "structure": (lambda: tpc.cond(YES, lambda x: (x, x), lambda x: x, (X,)), "Unmatched output structure"),
    "dtype": (lambda: tpc.cond(YES, lambda x: x.double(), lambda x: x, (X,)), "expected same dtype but got f64 and f32"),
    "shape": (lambda: tpc.cond(YES, lambda x: x[:2], lambda x: x, (X,)), r"true_fn has shape \[2\], that of false_fn \[3\]"),
    "nothing": (lambda: tpc.cond(YES, lambda x: None, lambda x: None, (X,)), "true_fn must return tensors"),
    "input mutation": (lambda: tpc.cond(YES, lambda x: x.add_(1), lambda x: x, (X,)), "input mutation.*test_control_flow.py"),
    "outer mutation": (lambda: tpc.cond(YES, lambda x: x, lambda x: X.add_(1), (X,)), "false_fn writes"),
    "random": (lambda: tpc.cond(YES, lambda x: x + tpc.rand(3), lambda x: x, (X,)), "draw the numbers outside"),
    "branch on a value": (lambda: tpc.cond(YES, lambda x: x if x.sum() > 0 else -x, lambda x: x, (X,)), "data-dependent.*tpc.cond"),
    "loop functions": (lambda: tpc.while_loop(3, lambda x: x, (X,)), "Expect cond_fn and body_fn to be callable"),
    "loop condition": (lambda: tpc.while_loop(lambda x: x > 1, lambda x: x, (X,)), "Expected cond_fn to return a scalar tensor or a bool"),
    "tuple condition": (lambda: tpc.while_loop(lambda x: (True,), lambda x: x, (X,)), "must return a boolean scalar tensor"),
    "loop count": (lambda: tpc.while_loop(lambda x, y: x < 1, lambda x, y: (x,), (0, X)), "same number of outputs but got 1 and 2"),
    "loop dtype": (lambda: tpc.while_loop(lambda i: i < 1, lambda i: (i + 0.5,), (0,)), "differ in 'dtype: i64 vs f32'"),
    "scan function": (lambda: tpc.scan(3, C, XS), "Combine_fn must be a callable"),
    "scan reverse": (lambda: tpc.scan(lambda c, x: (c, x), C, XS, reverse=1), "Reverse must be a bool"),
    "scan init": (lambda: tpc.scan(lambda c, x: (c, x), 1, XS), "All init leaves must be a Tensor"),
    "no init": (lambda: tpc.scan(lambda c, x: (c, x), (), XS), "requires init leaves"),
    "scan result": (lambda: tpc.scan(lambda c, x: c, C, XS), r"returns \(carry, y\), not f32\[2\]"),
    "scan shape": (lambda: tpc.scan(lambda c, x: (c.sum(), x), C, XS), r"differ in 'shape: \[2\] vs \[\]'"),
    "scan lengths": (lambda: tpc.scan(lambda c, x: (c, c), C, (XS, XS[:2])), r"same number of elements.*\[2, 3\]"),
    "scan of scalars": (lambda: tpc.scan(lambda c, x: (c, c), C, tpc.tensor(1.0)), "All xs leaves must at least have"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, message = ERRORS[name]
    with pytest.raises(RuntimeError, match=message):
        call()
    assert X.tolist() == [1, 2, 3]


# --- gradients ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_scan(reverse):
    a, first = grads(lambda *t: by_scan(*t, reverse), (C, XS, K), create_graph=True)
    b, want = grads(lambda *t: by_hand(*t, reverse), (C, XS, K), create_graph=True)
    close(first, want)
    second = tpc.autograd.grad(sum((g**2).sum() for g in first), a)
    close(second, tpc.autograd.grad(sum((g**2).sum() for g in want), b))
    for _ in range(3):
        close(grads(tpc.compile(lambda *t: by_scan(*t, reverse), fullgraph=True), (C, XS, K))[1], want)


@pytest.mark.parametrize("p", [1.0, -1.0])
def test_gradients_of_cond(p):
    p = tpc.tensor(p)
    want = [g if g is not None else tpc.zeros(3) for g in grads(lambda x, w: by_if(p, x, w), (X, X + 1))[1]]
    close(grads(lambda x, w: by_cond(p, x, w), (X, X + 1))[1], want)
    compiled = tpc.compile(by_cond, fullgraph=True)
    for _ in range(3):
        close(grads(lambda x, w: compiled(p, x, w), (X, X + 1))[1], want)
    assert tpc.autograd.gradgradcheck(lambda x: by_cond(p, x, x * x), (X.double().requires_grad_(),))


def test_a_training_step_with_scan_in_one_program():
    w = tpc.tensor([0.5, 0.25], requires_grad=True)
    v = w.detach().clone().requires_grad_()
    opt, plain = tpc.optim.SGD([w], lr=0.01), tpc.optim.SGD([v], lr=0.01)

    def step(xs, parameter, optimiser, loss_of):
        loss = loss_of(C, xs, parameter)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    compiled = tpc.compile(lambda xs: step(xs, w, opt, by_scan), fullgraph=True)
    for _ in range(4):
        close(compiled(XS), step(XS, v, plain, by_hand))
    close(w, v)


class Rounded(tpc.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return tpc.round(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(True)

    @staticmethod
    def backward(ctx, g):
        return g * 7

    @staticmethod
    def jvp(ctx, t):
        return t * 7


def test_custom_functions_keep_their_backward():
    x = X.detach().requires_grad_()
    assert tpc.autograd.grad(tpc.cond(YES, lambda a: Rounded.apply(a * 3), lambda a: a, (x,)).sum(), x)[0].tolist() == [21] * 3
    assert tpc.autograd.grad(tpc.cond(YES, lambda: Rounded.apply(x), lambda: x).sum(), x)[0].tolist() == [7] * 3
    assert tpc.autograd.grad(tpc.scan(lambda c, _: (Rounded.apply(c), ()), x, None, length=2)[0].sum(), x)[0].tolist() == [49] * 3
    mapped = tpc.vmap(lambda a: tpc.cond(YES, lambda a: Rounded.apply(a), lambda a: a, (a,)))
    assert tpc.autograd.grad(mapped(x).sum(), x)[0].tolist() == [7] * 3
    assert tpc.func.jvp(lambda a: tpc.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, Rounded.apply(a)), (0, a))[1], (X,), (X,))[
        1
    ].tolist() == [49, 98, 147]


def test_backward_uses_what_was_recorded():
    x = X.detach().requires_grad_()
    results = []
    for k in (2.0, 3.0):
        results.append(tpc.cond(YES, lambda a: a * k, lambda a: a, (x,)))
    k = 100.0
    assert tpc.autograd.grad(results[0].sum(), x, retain_graph=True)[0].tolist() == [2] * 3
    with pytest.raises(RuntimeError, match="has changed since it was recorded"):
        tpc.autograd.grad(results[1], x, tpc.eye(3), is_grads_batched=True)
    k = 3.0
    assert tpc.autograd.grad(results[1], x, tpc.eye(3), is_grads_batched=True)[0].tolist() == (3 * tpc.eye(3)).tolist()


def test_a_graph_is_freed_after_backward():
    x = X.detach().requires_grad_()
    y = tpc.cond(YES, lambda a: a * a, lambda a: a, (x,)).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_an_operand_written_since_is_an_error():
    x = X.detach().requires_grad_()
    a = x * 1
    y = tpc.cond(YES, lambda a: a * a, lambda a: a, (a,)).sum()
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_while_loop_has_no_reverse_mode():
    x = X.detach().requires_grad_()
    _, y = tpc.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))
    with pytest.raises(RuntimeError, match=r"while_loop cannot be back-propagated.*test_control_flow.py.*Use tpc.scan"):
        y.sum().backward()


# --- transforms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
def test_transforms_of_scan(reverse):
    f, h = (lambda *t: by_scan(*t, reverse)), (lambda *t: by_hand(*t, reverse))
    args, along = (C, XS, K), (C + 1, XS * 0.5, K - 1)
    close(tpc.func.jvp(f, args, along), tpc.func.jvp(h, args, along))
    batch = tuple(tpc.stack([t, t * 0.5, t - 1]) for t in args)
    close(tpc.vmap(f)(*batch), tpc.vmap(h)(*batch))
    for dims in ((0, None, None), (None, 0, None), (None, None, 0)):
        mixed = tuple(b if d == 0 else a for a, b, d in zip(args, batch, dims, strict=True))
        close(tpc.vmap(f, dims)(*mixed), tpc.vmap(h, dims)(*mixed))
    gradient, by_rows = (tpc.func.grad(g, argnums=(0, 1, 2)) for g in (f, h))
    close(tpc.vmap(gradient)(*batch), tpc.vmap(by_rows)(*batch))
    close(tpc.func.jvp(gradient, args, along), tpc.func.jvp(by_rows, args, along))
    close(tpc.func.hessian(f)(*args), tpc.func.hessian(h)(*args))
    close(tpc.func.jacrev(f, 2)(*args), tpc.func.jacrev(h, 2)(*args))
    close(grads(lambda *t: tpc.vmap(f)(*t).sum(), batch)[1], grads(lambda *t: tpc.vmap(h)(*t).sum(), batch)[1])


def test_transforms_of_cond():
    p, x, w = tpc.tensor([1.0, -1.0, 2.0]), tpc.stack([X, X * 0.5, X - 1]), X + 1

    def rows(function):
        return tpc.stack([function(p[i], x[i], w) for i in range(3)])

    close(tpc.vmap(by_cond, (0, 0, None))(p, x, w), rows(by_if))
    gradient, expected = tpc.func.grad(by_cond, 1), tpc.func.grad(by_if, 1)
    close(tpc.vmap(gradient, (0, 0, None))(p, x, w), rows(expected))
    close(tpc.vmap(by_cond, (None, 0, None))(p[1], x, w), tpc.stack([by_if(p[1], r, w) for r in x]))
    for q in p[:2]:
        close(tpc.func.jvp(lambda x, q=q: by_cond(q, x, w), (X,), (w,)), tpc.func.jvp(lambda x, q=q: by_if(q, x, w), (X,), (w,)))
    close(tpc.vmap(tpc.vmap(lambda a: tpc.cond(a > 1, lambda a: a * 2, lambda a: -a, (a,))))(x), tpc.where(x > 1, x * 2, -x))
    compiled = tpc.compile(tpc.vmap(by_cond, (0, 0, None)), fullgraph=True)
    for _ in range(3):
        close(compiled(p, x, w), rows(by_if))
    assert tpc.vmap(lambda q: tpc.cond(YES, lambda a: q.detach() * a, lambda a: a + q.data, (X,)))(x).tolist() == (x * X).tolist()


def test_transforms_of_while_loop():
    def loop(x):
        return tpc.while_loop(lambda i, x: (x.sum() < 30) & (i < 10), lambda i, x: (i + 1, x * 2 * X), (0, x))[1].sum()

    def python(x):
        i = 0
        while x.sum() < 30 and i < 10:
            x, i = x * 2 * X, i + 1
        return x.sum()

    x = tpc.stack([X, X * 0.01, X + 20])
    close(tpc.vmap(loop)(x), tpc.stack([python(r) for r in x]))
    want = [tpc.func.jvp(python, (r,), (X,)) for r in x]
    close(tpc.func.jvp(loop, (x[1],), (X,)), want[1])
    close(tpc.vmap(lambda r: tpc.func.jvp(loop, (r,), (X,)))(x), tuple(tpc.stack(c) for c in zip(*want, strict=True)))
    close(tpc.func.jacfwd(loop)(x[1]), tpc.func.jacfwd(python)(x[1]))


# --- programs -----------------------------------------------------------------------------------


def test_trace_prints_bodies_that_parse_back():
    traced = tpc.trace(by_scan, tpc.spec("f32[2] grad"), tpc.spec("f32[5,2]"), tpc.spec("f32[2] grad"))
    for module in (traced.module, traced.optimized):
        for program in module.programs.values():
            assert str(parse_program(str(program))) == str(program)
    forward, reverse = traced.module.programs.values()
    assert [op.name for op in forward.ops if op.bodies] == ["scan"]
    (back,) = [op for op in reverse.ops if op.bodies]
    assert (back.attrs["reverse"], back.attrs["length"]) == (True, 5)
    assert "scan" in traced.draw()
    assert "scan" in str(traced.report())
