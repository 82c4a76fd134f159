"""Modules: what they register, what they save and load, who hears of their calls."""

from __future__ import annotations

import copy
import pickle

import pytest

import tpc
from tpc import nn


class Square(tpc.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


class Scaled(nn.Module):
    def __init__(self, scale=2.0):
        super().__init__()
        self.weight = nn.Parameter(tpc.tensor([scale, 1.0]))
        self.register_buffer("shift", tpc.tensor([0.5, 0.0]))
        self.register_buffer("cache", tpc.zeros(1), persistent=False)

    def forward(self, x):
        return Square.apply(x * self.weight) + self.shift

    def extra_repr(self):
        return "size=2"


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Scaled()
        self.rest = nn.ModuleList([Scaled(3.0)])

    def forward(self, x):
        return self.rest[0](self.first(x))


def test_what_is_assigned_is_registered():
    m = Pair()
    assert [n for n, _ in m.named_parameters()] == ["first.weight", "rest.0.weight"]
    assert [n for n, _ in m.named_buffers()] == ["first.shift", "first.cache", "rest.0.shift", "rest.0.cache"]
    assert [n for n, _ in m.named_modules()] == ["", "first", "rest", "rest.0"]
    assert list(m.state_dict()) == ["first.weight", "first.shift", "rest.0.weight", "rest.0.shift"]
    assert m.get_submodule("rest.0") is m.rest[0]
    assert m.get_parameter("first.weight") is m.first.weight


def test_assignments_that_make_no_sense():
    m = Scaled()
    with pytest.raises(TypeError, match="cannot assign 'Tensor' object to parameter 'weight'"):
        m.weight = tpc.ones(2)
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        m.register_buffer("forward", tpc.ones(2))
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor"):
        m.register_parameter("other", _not_a_leaf())
    with pytest.raises(AttributeError, match="'Scaled' object has no attribute 'bias'"):
        _ = m.bias

    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(tpc.ones(1))

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early()


def _not_a_leaf():
    p = nn.Parameter(tpc.ones(2))
    made = p * 1
    made.__class__ = nn.Parameter
    return made


def test_repr_is_a_tree():
    assert repr(Pair()) == ("Pair(\n  (first): Scaled(size=2)\n  (rest): ModuleList(\n    (0): Scaled(size=2)\n  )\n)")
    assert repr(nn.Parameter(tpc.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"


def test_loading_copies_values_or_changes_nothing():
    source, target = Scaled(5.0), Scaled(1.0)
    kept = target.weight
    assert repr(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert target.weight is kept
    assert target.weight.tolist() == [5.0, 1.0]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "shift"'):
        target.load_state_dict({"weight": tpc.zeros(2)})
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "more"'):
        target.load_state_dict({**source.state_dict(), "more": tpc.zeros(2)})
    with pytest.raises(RuntimeError, match="size mismatch for shift: copying a param with shape"):
        target.load_state_dict({"weight": tpc.zeros(2), "shift": tpc.zeros(3)})
    assert target.weight.tolist() == [5.0, 1.0]
    missing, unexpected = target.load_state_dict({"weight": tpc.zeros(2), "more": tpc.zeros(1)}, strict=False)
    assert (missing, unexpected) == (["shift"], ["more"])


def test_loading_with_assign_takes_the_tensors():
    m = Scaled()
    m.load_state_dict({"weight": tpc.ones(2).double(), "shift": tpc.zeros(2).double()}, assign=True)
    assert isinstance(m.weight, nn.Parameter)
    assert m.weight.dtype is tpc.float64


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies_are_independent(copied):
    m = Pair()
    other = copied(m)
    x = tpc.tensor([1.0, 2.0])
    with tpc.no_grad():
        other.first.weight.zero_()
    assert m(x).tolist() == [182.75, 16.0]  # (3 * ((2 * 1)^2 + 1/2))^2 + 1/2, (2^2)^2
    assert other(x).tolist() == [2.75, 0.0]  # (3 * 1/2)^2 + 1/2
    assert isinstance(other.first.weight, nn.Parameter)
    assert other.first.weight.requires_grad


def test_conversion_keeps_the_parameters():
    m = Scaled()
    p = m.weight
    m.double()
    assert m.weight is p
    assert p.dtype is tpc.float64
    assert m.shift.dtype is tpc.float64
    assert m.to(tpc.float32).weight.dtype is tpc.float32
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        m.to(tpc.int64)


def test_forward_hooks_see_and_replace():
    m, told = Scaled(), []
    handle = m.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    m.register_forward_hook(lambda m, args, out: told.append((args[0].tolist(), out.tolist())))
    m.register_forward_hook(lambda m, args, kwargs, out: out * 10, with_kwargs=True)
    assert m(tpc.tensor([0.0, 0.0])).tolist() == [45.0, 10.0]  # 10 * ((2 * 1)^2 + 1/2), 10 * 1^2
    assert told == [([1.0, 1.0], [4.5, 1.0])]
    handle.remove()
    assert m(tpc.tensor([0.0, 0.0])).tolist() == [5.0, 0.0]


def test_backward_hooks_see_and_replace():
    m, told = Scaled(), []
    m.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))

    def hook(m, grad_input, grad_output):
        told.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 100,)

    m.register_full_backward_hook(hook)
    x = tpc.tensor([1.0, 1.0], requires_grad=True)
    m(x).sum().backward()
    assert told == [([16.0, 4.0], [2.0, 2.0])]  # 2 * 2 w^2 x
    assert x.grad.tolist() == [1600.0, 400.0]
    assert m.weight.grad.tolist() == [8.0, 4.0]  # 2 * 2 w x^2


def test_containers_follow_python():
    row = nn.ModuleList([Scaled(1.0), Scaled(2.0), Scaled(3.0)])
    assert [m.weight[0].item() for m in row[1:]] == [2.0, 3.0]
    del row[0]
    assert list(row.state_dict())[:2] == ["0.weight", "0.shift"]
    row.insert(0, Scaled(7.0))
    assert row[0].weight[0].item() == 7.0
    with pytest.raises(IndexError, match="index 3 is out of range"):
        row[3]
    named = nn.ModuleDict({"a": Scaled(), "b": Scaled()})
    assert "a" in named
    assert list(named) == ["a", "b"]
    parameters = nn.ParameterDict({"w": tpc.ones(2)})
    assert isinstance(parameters["w"], nn.Parameter)
    assert [n for n, _ in nn.ParameterList([tpc.ones(1), tpc.ones(2)]).named_parameters()] == ["0", "1"]
    twice = nn.Sequential(Scaled(1.0), Scaled(1.0))
    assert twice(tpc.tensor([0.0, 2.0])).tolist() == [0.75, 16.0]
    assert len(twice[:1]) == 1


def test_initial_values():
    tpc.manual_seed(0)
    w = tpc.empty(200, 100)
    assert abs(nn.init.xavier_uniform_(w)).max().item() <= (6 / 300) ** 0.5
    assert nn.init.kaiming_normal_(w, nonlinearity="relu").std().item() == pytest.approx((2 / 100) ** 0.5, rel=0.02)
    q = nn.init.orthogonal_(tpc.empty(3, 5))
    assert tpc.allclose(q @ q.t(), tpc.eye(3), atol=1e-6)
    t = nn.init.trunc_normal_(w, mean=1.0, std=2.0, a=0.0, b=3.0)
    assert 0.0 <= t.min().item() <= t.max().item() <= 3.0
    # The mean of a normal distribution cut off between a and b: mean + std * (phi(-1/2) - phi(1)) / (Phi(1) - Phi(-1/2)).
    assert t.mean().item() == pytest.approx(1.4133, abs=0.02)
    assert (nn.init.sparse_(tpc.empty(10, 4), 0.3) == 0).sum(0).tolist() == [3, 3, 3, 3]


@pytest.fixture
def heard():
    """What hooks of all modules heard; they are gone afterwards."""
    names, handles = [], []

    def listen(register, hook):
        handles.append(register(hook))

    yield names, listen
    for handle in handles:
        handle.remove()


def test_hooks_of_all_modules_come_before_its_own(heard):
    names, listen = heard
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model.register_forward_hook(lambda m, args, out: names.append("own"))
    listen(nn.modules.module.register_module_forward_pre_hook, lambda m, args: names.append(f"before {type(m).__name__}"))
    listen(nn.modules.module.register_module_forward_hook, lambda m, args, out: names.append(f"after {type(m).__name__}"))
    listen(nn.modules.module.register_module_full_backward_hook, lambda m, gin, gout: names.append(f"back {type(m).__name__}"))
    model(tpc.ones(1, 2, requires_grad=True)).sum().backward()
    assert names == [
        "before Sequential", "before Linear", "after Linear", "before ReLU", "after ReLU", "after Sequential", "own", "back ReLU",
        "back Linear", "back Sequential",
    ]  # fmt: skip


def test_a_hook_of_all_modules_is_seen_by_recordings(heard):
    names, listen = heard
    run = tpc.compile(nn.ReLU(), fullgraph=True)
    assert run(tpc.ones(1)).item() == 1.0
    listen(nn.modules.module.register_module_forward_hook, lambda m, args, out: out * 2)
    assert run(tpc.ones(1)).item() == 2.0


def test_a_module_that_compiles_itself():
    traced = []

    class Cubed(nn.Module):
        def forward(self, x):
            traced.append(1)
            return x**3

    module = Cubed()
    outer = nn.Sequential(module)
    module.compile(fullgraph=True)
    assert [outer(tpc.tensor(float(k))).item() for k in range(4)] == [0.0, 1.0, 8.0, 27.0]
    assert len(traced) == 1
    assert copy.deepcopy(outer)(tpc.tensor(2.0)).item() == 8.0
    assert len(traced) == 2


def test_modules_are_replaced_by_path():
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.ReLU())
    model.set_submodule("0.0", nn.Tanh())
    assert isinstance(model[0][0], nn.Tanh)
    model.set_submodule("0.tail", nn.Sigmoid())
    assert isinstance(model[0].tail, nn.Sigmoid)
    with pytest.raises(AttributeError, match="`missing` is no attribute of Sequential"):
        model.set_submodule("0.missing", nn.Tanh(), strict=True)
    with pytest.raises(ValueError, match="without a target name"):
        model.set_submodule("", nn.Tanh())
    with pytest.raises(ValueError, match=r"is not an nn\.Module"):
        model.set_submodule("1", "relu")


def test_to_empty_keeps_shapes_and_dtypes():
    model = nn.Linear(3, 2).double()
    weight = model.weight
    assert model.to_empty(device="cpu") is model
    assert model.weight is weight
    assert (model.weight.shape, model.weight.dtype) == ((2, 3), tpc.float64)


def test_the_transformer_decodes_causally():
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
    source, target = tpc.randn(2, 3, 8), tpc.randn(2, 4, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    assert mask.tolist()[1] == [0.0, 0.0, -tpc.inf, -tpc.inf]
    before = model(source, target, tgt_mask=mask)
    target[:, 3] += 1
    after = model(source, target, tgt_mask=mask)
    assert tpc.allclose(before[:, :3], after[:, :3], atol=1e-6)
    assert not tpc.allclose(before[:, 3], after[:, 3], atol=1e-3)
    with pytest.raises(RuntimeError, match="the batch number of src and tgt must be equal"):
        model(source[:1], target)
