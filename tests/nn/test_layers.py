"""Layers: their numbers by hand, their texts and state as in PyTorch, on copied weights."""

from __future__ import annotations

import pytest

import tpc
from tpc import nn


def filled(module, *values):
    with tpc.no_grad():
        for p, v in zip(module.parameters(), values, strict=True):
            p.copy_(tpc.tensor(v))
    return module


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (nn.Linear(3, 4, bias=False), "Linear(in_features=3, out_features=4, bias=False)"),
        (nn.Conv2d(2, 4, 3, padding=1), "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))"),
        (nn.ConvTranspose1d(2, 4, 3, 2, groups=2), "ConvTranspose1d(2, 4, kernel_size=(3,), stride=(2,), groups=2)"),
        (nn.BatchNorm1d(3), "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"),
        (nn.LayerNorm(5), "LayerNorm((5,), eps=1e-05, elementwise_affine=True, bias=True)"),
        (nn.MaxPool2d(2), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
        (nn.Embedding(10, 3, padding_idx=0), "Embedding(10, 3, padding_idx=0)"),
        (nn.Dropout(0.2), "Dropout(p=0.2, inplace=False)"),
        (nn.ReLU(inplace=True), "ReLU(inplace=True)"),
        (nn.LeakyReLU(), "LeakyReLU(negative_slope=0.01)"),
        (nn.Upsample(scale_factor=2), "Upsample(scale_factor=2.0, mode='nearest')"),
        (nn.ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
        (nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
    ],
)
def test_texts(module, text):
    assert repr(module) == text


def test_linear_and_its_initial_range():
    assert filled(nn.Linear(2, 2), [[1.0, 2.0], [0.0, 1.0]], [0.5, -1.0])(tpc.tensor([3.0, 4.0])).tolist() == [11.5, 3.0]
    assert nn.Linear(100, 50).weight.abs().max().item() <= 0.1


def test_convolution_with_reflected_borders():
    conv = filled(nn.Conv1d(1, 1, 3, padding=1, padding_mode="reflect", bias=False), [[[1.0, 10.0, 100.0]]])
    assert conv(tpc.tensor([[[1.0, 2.0, 3.0]]])).tolist() == [[[212.0, 321.0, 232.0]]]
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.Conv1d(3, 4, 1, groups=2)


def test_transposed_convolution_reaches_a_wanted_size():
    conv = filled(nn.ConvTranspose1d(1, 1, 2, stride=3, bias=False), [[[1.0, 2.0]]])
    x = tpc.tensor([[[1.0, 5.0]]])
    assert conv(x).tolist() == [[[1.0, 2.0, 0.0, 5.0, 10.0]]]
    assert conv(x, output_size=[6]).tolist() == [[[1.0, 2.0, 0.0, 5.0, 10.0, 0.0]]]
    with pytest.raises(ValueError, match="requested an output size"):
        conv(x, output_size=[9])


def test_batch_norm_keeps_running_statistics():
    norm = nn.BatchNorm1d(1)
    x = tpc.tensor([[1.0], [3.0]])
    assert norm(x).flatten().tolist() == pytest.approx([-1.0, 1.0], abs=1e-5)
    assert norm.running_mean.tolist() == pytest.approx([0.2])
    assert norm.running_var.tolist() == pytest.approx([1.1])  # 0.9 * 1 + 0.1 * 2: unbiased
    assert norm.num_batches_tracked.item() == 1
    norm.eval()
    assert norm(tpc.tensor([[0.2]])).item() == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        norm(tpc.ones(2))


def test_batch_norm_without_momentum_averages_all_batches():
    norm = nn.BatchNorm1d(1, momentum=None)
    for mean in (1.0, 2.0, 6.0):
        norm(tpc.tensor([[mean - 1], [mean + 1]]))
    assert norm.running_mean.item() == pytest.approx(3.0)


def test_padding_of_an_embedding_is_not_trained():
    table = nn.Embedding(3, 2, padding_idx=0)
    assert table.weight[0].tolist() == [0.0, 0.0]
    table(tpc.tensor([0, 1, 1])).sum().backward()
    assert table.weight.grad.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0]]
    assert not nn.Embedding.from_pretrained(tpc.ones(2, 2)).weight.requires_grad


def test_dropout_asks_for_the_mode():
    drop = nn.Dropout(1.0)
    assert drop(tpc.ones(3)).tolist() == [0.0, 0.0, 0.0]
    assert drop.eval()(tpc.ones(3)).tolist() == [1.0, 1.0, 1.0]


def test_weights_of_a_loss_are_buffers():
    loss = nn.CrossEntropyLoss(weight=tpc.tensor([1.0, 3.0]))
    assert list(loss.state_dict()) == ["weight"]
    even = tpc.zeros(2, 2)
    assert loss(even, tpc.tensor([0, 1])).item() == pytest.approx(0.693147, abs=1e-6)  # log 2
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'wieght'"):
        nn.CrossEntropyLoss(wieght=None)


def test_what_subclasses_of_layers_use():
    class Scaled(nn.Conv2d):
        def forward(self, x):
            return self._conv_forward(x, self.weight * 2, self.bias)

    class Flat(nn.BatchNorm1d):
        def _check_input_dim(self, x):
            raise ValueError("asked")

    assert isinstance(nn.Conv2d(1, 1, 1), nn.modules.conv._ConvNd)
    layer = Scaled(1, 1, 1, bias=False, padding=1, padding_mode="circular")
    with tpc.no_grad():
        layer.weight.fill_(3.0)
    assert layer(tpc.ones(1, 1, 2, 2)).tolist() == [[[[6.0] * 4] * 4]]
    with pytest.raises(ValueError, match="asked"):
        Flat(2)(tpc.ones(3, 2))
    assert nn.init._calculate_fan_in_and_fan_out(tpc.ones(4, 3, 2, 2)) == (12, 16)
    assert isinstance(nn.LayerNorm(2), nn.modules.normalization.LayerNorm)
    assert nn.modules.utils._pair(3) == (3, 3)
    assert nn.modules.utils._pair([1, 2]) == (1, 2)
    assert nn.modules.utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradients_of_convolutions_for_users_backwards(count):
    x = tpc.randn(2, 4, *[7, 6, 5][:count], dtype=tpc.float64, requires_grad=True)
    w = tpc.randn(6, 2, *[3, 2, 2][:count], dtype=tpc.float64, requires_grad=True)
    settings = (2, 1, 1, 2)
    out = getattr(nn.functional, f"conv{count}d")(x, w, None, *settings)
    g = tpc.randn_like(out).requires_grad_()
    expected = tpc.autograd.grad(out, (x, w), g)
    for_input = getattr(nn.grad, f"conv{count}d_input")(x.shape, w, g, *settings)
    for_weight = getattr(nn.grad, f"conv{count}d_weight")(x, w.shape, g, *settings)
    assert tpc.allclose(for_input, expected[0])
    assert tpc.allclose(for_weight, expected[1])
    # <grad, x> = <g, conv(x, w)>: its gradient with respect to g is the convolution again.
    assert tpc.allclose(tpc.autograd.grad((for_input * x.detach()).sum(), g)[0], out)
    with tpc.no_grad():
        assert not getattr(nn.grad, f"conv{count}d_input")(x.shape, w, g, *settings).requires_grad
