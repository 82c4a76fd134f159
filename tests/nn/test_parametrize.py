"""Computed parameters: weight and spectral norms, orthogonal weights, users' own, compiled and not."""

from __future__ import annotations

import copy

import pytest

import tpc
from tpc import nn
from tpc.nn.utils import parametrizations, parametrize

WEIGHT = [[3.0, 4.0], [6.0, 8.0]]


def linear():
    made = nn.Linear(2, 2, bias=False)
    with tpc.no_grad():
        made.weight.copy_(tpc.tensor(WEIGHT))
    return made


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2


def trained(module, x, compiled):
    """Gradients after one compiled (or deferred) call."""

    def step(x):
        module.zero_grad()
        loss = (module(x) * tpc.tensor([1.0, 2.0])).sum()
        loss.backward()
        return loss

    return (tpc.compile(step, fullgraph=True) if compiled else step)(x)


@pytest.mark.parametrize("compiled", [False, True], ids=["deferred", "compiled"])
@pytest.mark.parametrize(
    ("norm", "length", "direction"),
    [(nn.utils.weight_norm, "weight_g", "weight_v"), (parametrizations.weight_norm, "original0", "original1")],
    ids=["older", "parametrized"],
)
def test_weight_norm_trains_length_and_direction(norm, length, direction, compiled):
    module = norm(linear())
    named = {name.rpartition(".")[2]: p for name, p in module.named_parameters()}
    assert list(named) == [length, direction]
    assert named[length].tolist() == [[5.0], [10.0]]
    assert trained(module, tpc.tensor([[1.0, 0.0]]), compiled).item() == pytest.approx(15.0)
    # d/dg (g v / |v|) = v / |v|; d/dv = g (e - v v.e / |v|^2) / |v|, for e = x times the output's weight
    assert named[length].grad.tolist() == [[pytest.approx(0.6)], [pytest.approx(1.2)]]
    assert [pytest.approx(row, abs=1e-6) for row in named[direction].grad.tolist()] == [[0.64, -0.48], [1.28, -0.96]]


def test_a_length_of_the_whole_weight():
    module = parametrizations.weight_norm(linear(), dim=None)
    assert module.parametrizations.weight.original0.item() == pytest.approx(125**0.5)
    assert [pytest.approx(row) for row in module.weight.tolist()] == WEIGHT


def older_and_back(module):
    return nn.utils.remove_weight_norm(nn.utils.weight_norm(module))


def parametrized_and_back(module):
    return parametrize.remove_parametrizations(parametrizations.weight_norm(module), "weight")


@pytest.mark.parametrize("remove", [older_and_back, parametrized_and_back])
def test_what_is_removed_leaves_a_plain_layer(remove):
    module = remove(linear())
    assert type(module) is nn.Linear
    assert list(dict(module.named_parameters())) == ["weight"]
    assert [pytest.approx(row) for row in module.weight.tolist()] == WEIGHT
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        nn.utils.remove_weight_norm(module)


@pytest.mark.parametrize("norm", [nn.utils.spectral_norm, parametrizations.spectral_norm], ids=["older", "parametrized"])
def test_spectral_norm_divides_by_the_largest_singular_value(norm):
    module = norm(linear(), n_power_iterations=20)
    run = tpc.compile(module, fullgraph=True)
    x = tpc.tensor([[1.0, 1.0]])
    # the weight has rank one, so its singular value is its Frobenius norm
    for _ in range(3):
        assert run(x).tolist() == [[pytest.approx(7 / 125**0.5), pytest.approx(14 / 125**0.5)]]
    original = next(p for name, p in module.named_parameters())
    run(x)[0, 0].backward()
    # d(W[0].x / s) = e0 x / s - 7 u v / s^2, with s = sqrt(125), u = (1, 2) / sqrt(5), v = (3, 4) / 5
    assert original.grad.flatten().tolist() == pytest.approx([0.0744, 0.0694, -0.0301, -0.0401], abs=1e-4)
    before = {k: v.clone() for k, v in module.state_dict().items()}
    module.eval()
    run(x)
    assert all(tpc.equal(v, before[k]) for k, v in module.state_dict().items())


def test_users_parametrizations_compose_and_are_saved():
    module = linear()
    optimizer = tpc.optim.SGD(module.parameters(), lr=0.5)
    parametrize.register_parametrization(module, "weight", Symmetric())
    assert module.weight.tolist() == [[3.0, 4.0], [4.0, 8.0]]
    parametrize.register_parametrization(module, "weight", Doubled())
    assert module.weight.tolist() == [[6.0, 8.0], [8.0, 16.0]]
    assert type(module).__name__ == "ParametrizedLinear"
    assert parametrize.is_parametrized(module, "weight")
    assert parametrize.type_before_parametrizations(module) is nn.Linear
    assert list(module.state_dict()) == ["parametrizations.weight.original"]
    module.weight.sum().backward()
    optimizer.step()
    assert module.weight.tolist() == [[4.0, 4.0], [4.0, 14.0]]
    twin = copy.deepcopy(module)
    twin.load_state_dict({"parametrizations.weight.original": tpc.eye(2)})
    assert twin.weight.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert module.weight.tolist() == [[4.0, 4.0], [4.0, 14.0]]


def test_cached_computes_once():
    calls = []

    class Counted(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x * 2

    module = parametrize.register_parametrization(linear(), "weight", Counted())
    calls.clear()
    with parametrize.cached():
        assert module.weight is module.weight
    assert len(calls) == 1
    assert module.weight is not module.weight


def test_assigning_goes_through_the_right_inverse():
    module = parametrize.register_parametrization(linear(), "weight", Symmetric())
    module.weight = tpc.tensor([[1.0, 2.0], [2.0, 3.0]])
    assert module.parametrizations.weight.original.tolist() == [[1.0, 2.0], [0.0, 3.0]]


def test_what_may_not_be_registered():
    class Cut(nn.Module):
        def forward(self, x):
            return x[:1]

    with pytest.raises(ValueError, match="may not change the shape of the tensor, unless `unsafe` flag is enabled"):
        parametrize.register_parametrization(linear(), "weight", Cut())
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element with name 'wight'"):
        parametrize.register_parametrization(linear(), "wight", Cut())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(linear(), "weight")


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize(("wide", "high"), [(3, 3), (2, 4), (4, 2)])
def test_orthogonal_weights_stay_so(kind, wide, high):
    module = nn.Linear(wide, high)
    start = module.weight.detach().clone()
    parametrizations.orthogonal(module, orthogonal_map=kind)
    optimizer = tpc.optim.SGD(module.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        (module.weight - start).pow(2).sum().backward()
        optimizer.step()
    w = module.weight.detach()
    gram = w @ w.t() if wide > high else w.t() @ w
    assert tpc.allclose(gram, tpc.eye(min(wide, high)), atol=1e-5)


def test_an_orthogonal_value_is_kept():
    module = nn.Linear(2, 2)
    turned = tpc.tensor([[0.6, -0.8], [0.8, 0.6]])
    parametrizations.orthogonal(module)
    module.weight = turned
    assert tpc.allclose(module.weight, turned, atol=1e-6)
