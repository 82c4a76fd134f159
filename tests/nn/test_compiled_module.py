"""Modules in compiled calls: recorded once, anew where the module is another, never with values of before."""

from __future__ import annotations

import pytest

import tpc
from tpc import nn


class Cube(tpc.autograd.Function):
    calls = 0

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        Cube.calls += 1
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 * ctx.saved_tensors[0] ** 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tpc.tensor([2.0]))
        self.power = 1
        self.register_buffer("shift", tpc.tensor([0.0]))

    def forward(self, x):
        y = Cube.apply(x * self.weight) * self.power + self.shift
        return y if self.training else -y


@pytest.fixture
def model():
    Cube.calls = 0
    return Model()


ONE = tpc.tensor([1.0])


def test_it_is_recorded_once(model):
    run = tpc.compile(model, fullgraph=True)
    assert [run(ONE).item() for _ in range(4)] == [8.0] * 4
    assert Cube.calls == 1


def step_of(model):
    def step(x):
        return model(x)

    return step


@pytest.mark.parametrize("way", [lambda m: m, step_of], ids=["module", "closure"])
def test_a_change_of_mode_is_seen_and_both_are_kept(model, way):
    run = tpc.compile(way(model), fullgraph=True)
    for _ in range(3):
        assert run(ONE).item() == 8.0
        model.eval()
        assert run(ONE).item() == -8.0
        model.train()
    assert Cube.calls == 2


def test_a_module_that_is_an_argument(model):
    run = tpc.compile(lambda m, x: m(x), fullgraph=True)
    assert run(model, ONE).item() == 8.0
    assert run(model.eval(), ONE).item() == -8.0


def test_replaced_parts_are_seen(model):
    run = tpc.compile(model, fullgraph=True)
    assert run(ONE).item() == 8.0
    model.weight = nn.Parameter(tpc.tensor([3.0]))
    assert run(ONE).item() == 27.0
    model.power = 2
    assert run(ONE).item() == 54.0
    model.shift = tpc.tensor([1.0])
    assert run(ONE).item() == 55.0
    handle = model.register_forward_hook(lambda m, args, out: out * 0)
    assert run(ONE).item() == 0.0
    handle.remove()
    assert run(ONE).item() == 55.0


def test_a_replaced_child_is_seen(model):
    outer = nn.Sequential(model, nn.Identity())
    run = tpc.compile(outer, fullgraph=True)
    assert run(ONE).item() == 8.0
    outer[1] = nn.ReLU()
    assert run(-ONE).item() == 0.0
    outer.insert(0, nn.Threshold(5.0, 0.0))
    assert run(ONE).item() == 0.0


def test_loaded_values_need_no_new_recording(model):
    run = tpc.compile(model, fullgraph=True)
    run(ONE)
    model.load_state_dict({"weight": tpc.tensor([1.0]), "shift": tpc.tensor([5.0])})
    assert run(ONE).item() == 6.0
    assert Cube.calls == 1


def test_an_attribute_that_forward_assigns_runs_deferred():
    class Counting(Model):
        def forward(self, x):
            self.power = self.power + 1
            return super().forward(x)

    model = Counting()
    run = tpc.compile(model)
    with pytest.warns(UserWarning, match="attribute 'power' of Counting is assigned"):
        assert run(ONE).item() == 16.0
    assert run(ONE).item() == 24.0
    with pytest.raises(RuntimeError, match="attribute 'power' of Counting is assigned"):
        tpc.compile(Counting(), fullgraph=True)(ONE)


def test_a_whole_step_is_one_recording(model):
    optimizer = tpc.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    run = tpc.compile(step, fullgraph=True)
    w = 2.0
    for _ in range(3):
        assert run(ONE).item() == pytest.approx(w**3, rel=1e-5)
        w -= 0.1 * 3 * w**2
    assert Cube.calls == 1
    assert model.weight.item() == pytest.approx(w, rel=1e-5)


def test_running_statistics_move_in_compiled_calls():
    norm = nn.BatchNorm1d(1, momentum=None)
    run = tpc.compile(norm, fullgraph=True)
    for mean in (1.0, 2.0, 6.0):
        run(tpc.tensor([[mean - 1], [mean + 1]]))
    assert norm.running_mean.item() == pytest.approx(3.0)
    norm.eval()
    assert run(tpc.tensor([[3.0]])).item() == pytest.approx(0.0, abs=1e-6)


def test_functional_call_reaches_a_compiled_module(model):
    outer = nn.Sequential(model)
    run = tpc.compile(outer, fullgraph=True)
    assert run(ONE).item() == 8.0
    assert tpc.func.functional_call(outer, {"0.weight": tpc.tensor([1.0])}, (ONE,)).item() == 1.0
    assert run(ONE).item() == 8.0


def test_trace_names_the_parameters(model):
    text = str(tpc.trace(model, tpc.spec("f32[1]")))
    assert "%weight: f32[1], %shift: f32[1]" in text
    assert "Cube#0" in text


def test_a_compiled_child_keeps_its_parameters_in_the_tree(model):
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = tpc.compile(model, fullgraph=True)

        def forward(self, x):
            return self.net(x) + 1

    outer = Outer()
    assert [outer(ONE).item() for _ in range(2)] == [9.0, 9.0]
    assert Cube.calls == 1
    assert list(outer.state_dict()) == ["net.weight", "net.shift"]
    assert outer.eval()(ONE).item() == -7.0
    del outer.net
    assert list(outer.parameters()) == []


def test_frozen_and_converted_parameters_are_seen(model):
    run = tpc.compile(model, fullgraph=True)
    run(ONE).sum().backward()
    assert model.weight.grad.item() == 12.0
    model.requires_grad_(False)
    assert not run(ONE).requires_grad
    model.requires_grad_(True).double()
    assert run(ONE.double()).dtype is tpc.float64


def test_gradients_of_each_sample(model):
    def loss(parameters, x):
        return tpc.func.functional_call(model, parameters, (x,)).sum()

    detached = {name: p.detach() for name, p in model.named_parameters()}
    each = tpc.func.vmap(tpc.func.grad(loss), in_dims=(None, 0))(detached, tpc.tensor([[1.0], [2.0]]))
    assert each["weight"].tolist() == [[12.0], [96.0]]  # 3 w^2 x^3 at w = 2
