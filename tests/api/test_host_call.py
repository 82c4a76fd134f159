"""`tpc.host_call`: Python, NumPy and SciPy code inside what is recorded."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import tpc
from tpc.autograd import Function
from tpc.ir.json_form import dumps, loads
from tpc.ir.parser import parse, parse_program
from tpc.runtime.interpreter import interpret


def double(a):
    return a * 2


def wrong_dtype(a):
    return a.astype(np.float64)


class Sine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return tpc.host_call(np.sin, x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * tpc.host_call(np.cos, x)


@pytest.mark.parametrize("way", [lambda f: f, lambda f: tpc.compile(f, fullgraph=True)], ids=["deferred", "compiled"])
class TestValues:
    def test_the_type_of_the_first_tensor_is_expected_unless_out_says_otherwise(self, way):
        f = way(lambda x: tpc.host_call(double, x))
        for start in (0.0, 5.0):
            assert f(tpc.tensor([start, 1.0])).tolist() == [2 * start, 2.0]

    def test_several_results(self, way):
        f = way(lambda x: tpc.host_call(lambda a: (a.sum(keepdims=True), a.argsort()), x, out=("f32[1]", tpc.spec("i64[3]"))))
        for _ in range(2):
            total, order = f(tpc.tensor([3.0, 1.0, 2.0]))
            assert (total.tolist(), order.tolist()) == ([6.0], [1, 2, 0])

    def test_in_forward_and_backward_of_a_function(self, way):
        x = tpc.tensor([0.0, np.pi], dtype=tpc.float64, requires_grad=True)
        f = way(lambda: Sine.apply(x).sum())
        for _ in range(3):
            x.grad = None
            f().backward()
            assert x.grad.tolist() == [1.0, -1.0]

    def test_a_whole_step(self, way):
        x = tpc.tensor([0.0], requires_grad=True)

        def step():
            x.grad = None
            Sine.apply(x).sum().backward()
            return x.grad

        step = way(step)
        assert [step().item() for _ in range(3)] == [1.0] * 3

    def test_backward_may_be_given_with_the_call(self, way):
        def cube(x):
            return tpc.host_call(lambda a: a**3, x, backward=lambda g, x: 3 * g * x * x)

        x = tpc.tensor([2.0], requires_grad=True)
        f = way(lambda x: cube(x).sum())
        (first,) = tpc.autograd.grad(f(x), x, create_graph=True)
        assert first.tolist() == [12.0]
        assert tpc.autograd.grad(first.sum(), x)[0].tolist() == [12.0]

    def test_arguments_belong_to_the_function(self, way):
        def spoil(a):
            a += 100
            return a

        f = way(lambda x: (tpc.host_call(spoil, x), x + 0))
        x = tpc.tensor([1.0])
        for _ in range(3):
            changed, same = f(x)
            assert (changed.item(), same.item(), x.item()) == (101.0, 1.0, 1.0)

    def test_it_may_use_tpc_itself(self, way):
        f = way(lambda x: tpc.host_call(lambda a: tpc.from_numpy(a).exp().numpy(), x))
        assert f(tpc.zeros(2)).tolist() == [1.0, 1.0]
        assert f(tpc.zeros(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (wrong_dtype, RuntimeError, r"wrong_dtype.*test_host_call.py:\d+ has shape \[3\] and dtype f64, but shape \[3\] and dtype f32"),
        (lambda a: a[:2], RuntimeError, r"has shape \[2\] and dtype f32, but shape \[3\]"),
        (lambda a: (a, a), TypeError, "returned 2 results, but 1 result were expected"),
        (lambda a: a.tolist(), TypeError, "is a list, but a NumPy array"),
        (lambda a: None, TypeError, "is a NoneType"),
    ],
)
def test_what_comes_back_is_held_to_what_was_promised(function, error, message):
    x = tpc.ones(3)
    for f in (lambda: tpc.host_call(function, x), tpc.compile(lambda: tpc.host_call(function, x))):
        with pytest.raises(error, match=message):
            f().tolist()


def test_errors_of_the_function_come_through():
    def fails(a):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        tpc.host_call(fails, tpc.ones(1)).tolist()
    assert "host_call f32[1]" in raised.value.__notes__[0]


def test_backward_without_a_gradient_names_function_and_line():
    x = tpc.ones(2, requires_grad=True)
    y = tpc.host_call(double, x)
    with pytest.raises(RuntimeError, match=r"double called at .*test_host_call.py:\d+ .*backward="):
        y.sum().backward()
    assert tpc.host_call(double, x.detach()).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("args", [{"out": "f32[2]"}, {"out": 3, "ordered": True}])
def test_calls_that_make_no_sense(args):
    with pytest.raises(TypeError, match="host_call"):
        tpc.host_call(double, **args)


# --- what may be left out, and what may not -----------------------------------------------------


def test_equal_calls_are_made_once_and_unused_ones_not_at_all():
    calls = []

    def counted(a):
        calls.append(1)
        return a

    @tpc.compile
    def f(x):
        tpc.host_call(counted, x + 1)
        return tpc.host_call(counted, x) * tpc.host_call(counted, x)

    f(tpc.ones(1)).tolist()
    calls.clear()
    f(tpc.ones(1)).tolist()
    assert len(calls) == 1


def test_nothing_is_called_again_for_backward():
    calls = []

    def counted(a):
        calls.append(1)
        return a * 2

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            y = tpc.host_call(counted, x)
            ctx.save_for_backward(y)
            return y * 1

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = tpc.ones(1000, requires_grad=True)
    f = tpc.compile(lambda x: Twice.apply(x).sum(), memory_budget=0.0)
    f(x).backward()
    calls.clear()
    f(x).backward()
    assert len(calls) == 1


def test_ordered_calls_run_each_time_and_in_order():
    log = []

    def note(a):
        log.append(a.item())

    @tpc.compile(fullgraph=True)
    def f(x):
        tpc.host_call(note, x, out=(), ordered=True)
        y = x * 2
        tpc.host_call(note, y, out=(), ordered=True)
        tpc.host_call(note, x, out=(), ordered=True)
        return y

    f(tpc.tensor(1.0))
    f(tpc.tensor(5.0))
    tpc.host_call(note, tpc.tensor(7.0), out=(), ordered=True)  # outside of a recording: at once
    assert log == [1.0, 2.0, 1.0, 5.0, 10.0, 5.0, 7.0]


# --- vmap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("vectorized", "shapes"), [(False, [(3,)] * 4), (True, [(4, 3)])])
def test_vmap_calls_for_each_sample_or_once(vectorized, shapes):
    seen = []

    def total(a):
        seen.append(a.shape)
        return a.sum(-1)

    x = tpc.arange(12.0).reshape(4, 3)
    assert tpc.vmap(lambda a: tpc.host_call(total, a, out="f32[]", vectorized=vectorized))(x).tolist() == [3.0, 12.0, 21.0, 30.0]
    assert seen == shapes


def test_vmap_in_vmap_and_tensors_without_batch():
    x, w = tpc.arange(6.0).reshape(2, 3), tpc.tensor(10.0)
    f = tpc.vmap(tpc.vmap(lambda a: tpc.host_call(np.add, a, w)))
    assert f(x).tolist() == (x + 10).tolist()


def test_gradients_under_vmap():
    square = lambda x: tpc.host_call(np.square, x, backward=lambda g, x: 2 * g * x)
    assert tpc.vmap(tpc.func.grad(square))(tpc.tensor([1.0, 3.0])).tolist() == [2.0, 6.0]


def test_ordered_calls_have_no_order_inside_vmap():
    with pytest.raises(RuntimeError, match="ordered host_call"):
        tpc.vmap(lambda a: tpc.host_call(double, a, ordered=True))(tpc.ones(2))


# --- programs as text ---------------------------------------------------------------------------


def test_text_and_json_hold_the_name_and_no_code():
    tpc.register_host_function("test_host_call.double", double)
    module = tpc.trace(lambda x: tpc.host_call("test_host_call.double", x), tpc.spec("f32[2]")).module
    assert 'function="test_host_call.double"' in str(module)
    for again in (parse(str(module)), loads(dumps(module))):
        (result,) = interpret(*again.programs.values(), [np.ones(2, np.float32)])
        assert result.tolist() == [2.0, 2.0]


def test_a_program_whose_function_is_not_here_says_so_when_it_runs():
    program = parse_program(
        """program @f (%x: f32[2]) -> (f32[2]) {
          %0 = host_call %x {function="gone", dtypes=["f32"], shapes=[[2]], vectorized=false, mapped=0, ordered=false} : f32[2]
          return %0
        }"""
    )
    with pytest.raises(RuntimeError, match=r"'gone', which this process does not have.*register_host_function\('gone', function\)"):
        interpret(program, [np.ones(2, np.float32)])


def test_a_name_belongs_to_one_function():
    tpc.register_host_function("test_host_call.taken", double)
    tpc.register_host_function("test_host_call.taken", double)
    with pytest.raises(ValueError, match="another host function"):
        tpc.register_host_function("test_host_call.taken", wrong_dtype)
    with pytest.raises(ValueError, match="register it first"):
        tpc.host_call("test_host_call.nobody", tpc.ones(1))


def test_functions_of_one_name_are_told_apart():
    made = [lambda a, k=k: a * k for k in range(4)]
    results = [tpc.host_call(f, tpc.ones(1)) for f in made]
    assert [r.item() for r in results] == [0.0, 1.0, 2.0, 3.0]


def test_functions_that_no_program_holds_are_forgotten():
    from tpc.runtime.kernels.host import KNOWN

    class Held:
        def __call__(self, a):
            return a

    y = tpc.host_call(Held(), tpc.ones(1))
    gc.collect()
    assert any("Held" in name for name in KNOWN)
    del y
    gc.collect()
    assert not any("Held" in name for name in KNOWN)


# --- plain NumPy in Functions -------------------------------------------------------------------


class Plain(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return tpc.from_numpy(np.sinh(x.detach().numpy()))  # the line

    @staticmethod
    def backward(ctx, g):
        return tpc.from_numpy(g.numpy() * np.cosh(ctx.saved_tensors[0].detach().numpy()))


def test_numpy_in_a_function_runs_deferred_and_says_where():
    x = tpc.zeros(100, requires_grad=True)
    f = tpc.compile(lambda x: Plain.apply(x).sum())
    with pytest.warns(UserWarning, match=r"deferred mode.*test_host_call.py:\d+"):
        f(x).backward()
    assert x.grad.sum().item() == 100.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(x)
    with pytest.raises(RuntimeError, match=r"test_host_call.py:\d+"):
        tpc.compile(lambda x: Plain.apply(x).sum(), fullgraph=True)(x)
