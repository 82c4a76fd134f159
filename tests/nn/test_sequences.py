"""Packed sequences, the adaptive softmax, lazy layers: values against PyTorch's, compiled and not."""

from __future__ import annotations

import copy

import pytest

import tpc
from tpc import nn
from tpc.nn.utils import rnn


def filled(module):
    with tpc.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(tpc.linspace(-1, 1, p.numel()).view(p.shape) * ((1 + k % 3) * 0.5))
    return module


# --- sequences ----------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True], ids=["deferred", "compiled"])
@pytest.mark.parametrize(
    ("kind", "sums", "states"),
    [
        (nn.LSTM, [0.45682, 1.407043, 1.077633], [0.211315, 0.191657, 0.207911, 0.01884, 0.139166, 0.174857]),
        (nn.GRU, [1.161745, 7.599235, 5.154809], [0.991566, 1.598315, 1.435333, -0.431485, 0.203917, 0.358585]),
    ],
)
def test_packed_sequences_end_where_they_end(kind, sums, states, compiled):
    layer = filled(kind(2, 2, bidirectional=True))

    def run(x, lengths):
        out, state = layer(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))
        return rnn.pad_packed_sequence(out, batch_first=True)[0], state[0] if isinstance(state, tuple) else state

    run = tpc.compile(run, fullgraph=True) if compiled else run
    for _ in range(2):
        out, state = run(tpc.linspace(-1, 1, 24).view(4, 3, 2), tpc.tensor([2, 4, 3]))
        assert out.sum((1, 2)).tolist() == pytest.approx(sums, abs=1e-5)
        assert state.sum(-1).flatten().tolist() == pytest.approx(states, abs=1e-5)


def test_packing_and_padding():
    given = [tpc.tensor([1.0, 2.0]), tpc.tensor([3.0, 4.0, 5.0])]
    assert rnn.pad_sequence(given, batch_first=True, padding_value=-1).tolist() == [[1.0, 2.0, -1.0], [3.0, 4.0, 5.0]]
    assert rnn.pad_sequence(given, padding_side="left").tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    packed = rnn.pack_sequence(given, enforce_sorted=False)
    assert packed.data.tolist() == [3.0, 1.0, 4.0, 2.0, 5.0]
    assert (packed.batch_sizes.tolist(), packed.sorted_indices.tolist()) == ([2, 2, 1], [1, 0])
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, total_length=4)
    assert padded.tolist() == [[1.0, 2.0, 0.0, 0.0], [3.0, 4.0, 5.0, 0.0]]
    assert lengths.tolist() == [2, 3]
    assert [x.tolist() for x in rnn.unpad_sequence(padded, lengths, batch_first=True)] == [[1.0, 2.0], [3.0, 4.0, 5.0]]
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order when `enforce_sorted` is True"):
        rnn.pack_sequence(given)
    with pytest.raises(RuntimeError, match="Length of all samples has to be greater than 0"):
        rnn.pack_padded_sequence(padded, [1, 0], batch_first=True)


# --- adaptive softmax ---------------------------------------------------------------------------


def test_the_adaptive_softmax():
    layer = filled(nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 6], div_value=2.0))
    x = tpc.linspace(-1, 1, 12).view(3, 4)
    out, loss = layer(x, tpc.tensor([0, 4, 1]))
    assert out.tolist() == pytest.approx([-0.7330298, -2.8336093, -2.5703504], abs=1e-5)
    assert loss.item() == pytest.approx(2.0456631)
    loss.backward()
    assert layer.tail[1][0].weight.grad is None
    assert layer.predict(x[::2]).tolist() == [0, 8]
    assert layer.log_prob(x).exp().sum(1).tolist() == pytest.approx([1.0] * 3)
    assert layer(x[0], tpc.tensor(7)).loss.item() == pytest.approx(4.3118, abs=1e-4)
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 8\], but values in range \[0, 9\]"):
        layer(x, tpc.tensor([0, 9, 1]))
    with pytest.raises(ValueError, match="unique, positive integers sorted in an increasing order"):
        nn.AdaptiveLogSoftmaxWithLoss(4, 9, [6, 3])


# --- lazy layers --------------------------------------------------------------------------------


def test_lazy_layers_learn_their_width():
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert repr(model[0]) == "LazyConv2d(0, 4, kernel_size=(3, 3), stride=(1, 1))"
    weight = model[3].weight
    assert repr(weight) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        _ = weight.shape
    assert model(tpc.ones(2, 3, 5, 5)).shape == (2, 2)
    assert [type(m) for m in model] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert model[3].weight is weight
    assert type(weight) is nn.Parameter
    assert (weight.shape, model[0].in_channels, model[1].running_mean.shape) == ((2, 36), 3, (4,))
    with pytest.raises(RuntimeError):
        model(tpc.ones(2, 4, 5, 5))


def test_lazy_layers_are_loaded_copied_and_compiled():
    full = nn.Linear(3, 2)
    lazy = nn.LazyLinear(2)
    twin = copy.deepcopy(lazy)
    lazy.load_state_dict(full.state_dict())
    x = tpc.ones(1, 3)
    assert tpc.equal(lazy(x), full(x))
    assert type(lazy) is nn.Linear
    run = tpc.compile(twin, fullgraph=True)
    for _ in range(3):
        assert tpc.allclose(run(x), twin(x))
    assert twin.in_features == 3
    double = nn.LazyConvTranspose1d(2, 3).double()
    assert double(x.double()[None]).dtype is tpc.float64
    with pytest.raises(RuntimeError, match=r"Expected 2D \(unbatched\) or 3D \(batched\) input to LazyConv1d"):
        nn.LazyConv1d(2, 1)(tpc.ones(2))


def test_lists_of_equal_modules_are_shown_once():
    shown = repr(nn.ModuleList([nn.ReLU(), nn.Linear(1, 1), nn.Linear(1, 1)]))
    assert shown == "ModuleList(\n  (0): ReLU()\n  (1-2): 2 x Linear(in_features=1, out_features=1, bias=True)\n)"
    assert repr(nn.ModuleList()) == "ModuleList()"
    names = [name.partition(".")[0] for name, _ in nn.TransformerDecoderLayer(4, 2).named_parameters()]
    assert list(dict.fromkeys(names)) == ["self_attn", "multihead_attn", "linear1", "linear2", "norm1", "norm2", "norm3"]
