"""Data sets, distributions and settings of the process."""

from __future__ import annotations

import math

import pytest

import tpc
from tpc.distributions import Bernoulli, Categorical, Gumbel, Normal, Uniform
from tpc.utils.data import DataLoader, Subset, TensorDataset


def t(*values: float) -> tpc.Tensor:
    return tpc.tensor(values, dtype=tpc.float64)


# --- distributions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("distribution", "value", "expected"),
    [
        (Normal(t(0.3), 2.0), 1.0, -1.673335713764618),
        (Gumbel(t(0.3), 2.0), 1.0, -1.747835270278659),
        (Uniform(t(0.3), 2.0), 1.0, -math.log(1.7)),
        (Uniform(t(0.3), 2.0), 2.5, -math.inf),
        (Bernoulli(t(0.3)), 1.0, math.log(0.3)),
        (Bernoulli(logits=t(0.0)), 0.0, math.log(0.5)),
        (Categorical(t(1.0, 3.0)), 1, math.log(0.75)),
    ],
)
def test_logarithms_of_densities(distribution, value: float, expected: float):
    assert distribution.log_prob(tpc.tensor([value])).item() == pytest.approx(expected, rel=1e-6)


def test_entropies():
    assert Normal(0.0, 1.0).entropy().item() == pytest.approx(0.5 + 0.5 * math.log(2 * math.pi))
    assert Bernoulli(t(0.5, 1.0)).entropy().tolist() == pytest.approx([math.log(2), 0])
    assert Categorical(t(1, 1)).entropy().item() == pytest.approx(math.log(2))


def test_samples_have_the_shape_of_the_sample_and_of_the_parameters():
    tpc.manual_seed(0)
    for distribution in (Normal(t(5, 5), 0.1), Gumbel(t(5, 5), 0.1), Uniform(t(4, 4), 6.0)):
        sample = distribution.sample((1000,))
        assert sample.shape == (1000, 2)
        assert sample.mean().item() == pytest.approx(5, abs=0.1)
    assert Bernoulli(t(0, 1)).sample((3,)).tolist() == [[0, 1]] * 3
    assert Categorical(tpc.tensor([[0.0, 1.0], [1.0, 0.0]])).sample((2,)).tolist() == [[1, 0], [1, 0]]


def test_reparametrised_samples_have_gradients():
    loc = t(1, 2).requires_grad_()
    Normal(loc, 1.0).rsample((3,)).sum().backward()
    assert loc.grad.tolist() == [3, 3]
    assert not Normal(loc, 1.0).sample().requires_grad
    with pytest.raises(NotImplementedError, match=r"no rsample\(\)"):
        Bernoulli(t(0.5)).rsample()


# --- data ---------------------------------------------------------------------------------------


def test_batches_in_order():
    loader = DataLoader(TensorDataset(tpc.arange(10.0).reshape(5, 2), tpc.arange(5)), batch_size=2)
    assert [y.tolist() for _, y in loader] == [[0, 1], [2, 3], [4]]
    assert (len(loader), next(iter(loader))[0].tolist()) == (3, [[0, 1], [2, 3]])


def test_batches_in_another_order_have_the_same_samples():
    loader = DataLoader(Subset(TensorDataset(tpc.arange(10)), [1, 3, 5, 7]), batch_size=3, shuffle=True, drop_last=True)
    (batch,) = [x for (x,) in loader]
    assert set(batch.tolist()) < {1, 3, 5, 7}


def test_samples_may_be_dicts_of_numbers():
    assert next(iter(DataLoader([{"x": 1, "y": [2.0]}, {"x": 3, "y": [4.0]}], batch_size=2)))["x"].tolist() == [1, 3]


# --- settings -----------------------------------------------------------------------------------


def test_variables_are_tensors():
    x = tpc.ones(2)
    leaf = tpc.autograd.Variable(x, requires_grad=True)
    assert (leaf.requires_grad, x.requires_grad) == (True, False)
    assert isinstance(x, tpc.autograd.Variable)


def test_settings():
    tpc.use_deterministic_algorithms(True)
    assert tpc.are_deterministic_algorithms_enabled()
    tpc.set_default_tensor_type("torch.DoubleTensor")
    assert tpc.ones(1).dtype is tpc.float64
    tpc.set_default_tensor_type(tpc.FloatTensor)
    with pytest.raises(RuntimeError, match="runs on the CPU"):
        tpc.set_default_device("cuda")
    tpc.set_printoptions(precision=2)
    assert str(tpc.tensor(1 / 3)) == "tensor(0.33)"
    tpc.set_printoptions(profile="default")
    assert (tpc.version.cuda, tpc.version.__version__) == (None, tpc.__version__)


def test_distributions_are_found_in_modules_of_their_names():
    for name in tpc.distributions.__all__:
        assert getattr(getattr(tpc.distributions, name.lower()), name) is getattr(tpc.distributions, name)


def numbers(count):
    return TensorDataset(tpc.arange(count))


def test_samplers_say_the_order():
    data = tpc.utils.data
    loader = DataLoader(numbers(10), 4, sampler=data.SubsetRandomSampler([1, 2, 3, 4, 5]), num_workers=2, persistent_workers=True)
    batches = [x.tolist() for (x,) in loader]
    assert [len(b) for b in batches] == [4, 1] == [4] * (len(loader) - 1) + [1]
    assert sorted(k for batch in batches for k in batch) == [1, 2, 3, 4, 5]
    batches = data.BatchSampler(data.SequentialSampler(range(10)), 3, drop_last=True)
    assert [x.tolist() for (x,) in DataLoader(numbers(10), batch_sampler=batches)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    drawn = list(data.WeightedRandomSampler([0.0, 1.0, 0.0, 3.0], 200))
    assert set(drawn) == {1, 3}
    assert 110 < drawn.count(3) < 190
    assert sorted(data.RandomSampler(range(3), num_samples=6)) == [0, 0, 1, 1, 2, 2]
    assert len(list(data.RandomSampler(range(3), replacement=True, num_samples=7))) == 7
    with pytest.raises(ValueError, match="sampler option is mutually exclusive with shuffle"):
        DataLoader(numbers(3), shuffle=True, sampler=data.SequentialSampler(range(3)))
    with pytest.raises(ValueError, match="batch_size should be a positive integer value"):
        DataLoader(numbers(3), batch_size=0)


def test_data_sets_are_joined_and_split():
    data = tpc.utils.data
    joined = numbers(3) + numbers(4)
    assert len(joined) == 7
    assert [joined[i][0].item() for i in (2, 3, -1)] == [2, 0, 3]
    parts = data.random_split(numbers(10), [0.5, 0.3, 0.2])
    assert [len(p) for p in parts] == [5, 3, 2]
    assert sorted(x.item() for p in parts for (x,) in (p[i] for i in range(len(p)))) == list(range(10))
    assert [len(p) for p in data.random_split(range(5), [0.5, 0.5])] == [3, 2]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length"):
        data.random_split(numbers(3), [1, 1])
    stacked = data.StackDataset(image=numbers(2), label=range(2))
    assert stacked[1]["label"] == 1


def test_streams_are_gathered_into_batches():
    class Stream(tpc.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [x.tolist() for x in DataLoader(Stream(), 2)] == [[0, 1], [2, 3], [4]]
    assert list(DataLoader(Stream(), batch_size=None)) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="DataLoader with IterableDataset"):
        DataLoader(Stream(), shuffle=True)


@pytest.mark.parametrize(
    ("distribution", "value", "expected"),
    [
        (Normal(t(0.3), 2.0), 1.0, 0.636830651175619),
        (Gumbel(t(0.3), 2.0), 1.0, math.exp(-math.exp(-0.35))),
        (Uniform(t(0.3), 2.0), 1.0, 0.7 / 1.7),
    ],
)
def test_probabilities_of_at_most_a_value(distribution, value, expected):
    probability = distribution.cdf(tpc.tensor([value], dtype=tpc.float64))
    assert probability.item() == pytest.approx(expected, rel=1e-6)
    assert distribution.icdf(probability).item() == pytest.approx(value)


def test_distributions_are_shown_by_what_was_given():
    assert repr(Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(Uniform(t(1, 2), 3.0)) == "Uniform(low: tpc.Size([2]), high: tpc.Size([2]))"
    assert repr(Bernoulli(0.5)) == "Bernoulli(probs: 0.5)"
    assert repr(Categorical(logits=t(1, 2))) == "Categorical(logits: tpc.Size([2]))"
    assert Bernoulli(t(0.75, 1.0)).logits.tolist() == pytest.approx([math.log(3), 36.04365338911715])
