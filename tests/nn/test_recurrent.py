"""Recurrent layers and attention: steps by hand, sequences as their steps, gradients kept small."""

from __future__ import annotations

import math

import pytest

import tpc
from tpc import nn


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def constant(module, value):
    with tpc.no_grad():
        for p in module.parameters():
            p.fill_(value)
    return module


def test_cells_by_hand():
    x, h, c = tpc.tensor([[2.0]]), tpc.tensor([[1.0]]), tpc.tensor([[4.0]])
    a = 0.1 * (2 + 1) + 0.2
    assert constant(nn.RNNCell(1, 1), 0.1)(x, h).item() == pytest.approx(math.tanh(a))
    assert constant(nn.RNNCell(1, 1, nonlinearity="relu"), -0.1)(x, h).item() == 0.0
    out, cell = constant(nn.LSTMCell(1, 1), 0.1)(x, (h, c))
    expected = sigmoid(a) * 4 + sigmoid(a) * math.tanh(a)
    assert cell.item() == pytest.approx(expected)
    assert out.item() == pytest.approx(sigmoid(a) * math.tanh(expected))
    new = math.tanh(0.3 + sigmoid(a) * 0.2)
    assert constant(nn.GRUCell(1, 1), 0.1)(x, h).item() == pytest.approx((1 - sigmoid(a)) * new + sigmoid(a))


@pytest.mark.parametrize(("layer", "cell"), [(nn.RNN, nn.RNNCell), (nn.LSTM, nn.LSTMCell), (nn.GRU, nn.GRUCell)])
def test_a_sequence_is_its_steps(layer, cell):
    tpc.manual_seed(0)
    rnn, one = layer(3, 4, bidirectional=True), cell(3, 4)
    one.load_state_dict({k.removesuffix("_l0_reverse"): v for k, v in rnn.state_dict().items() if k.endswith("reverse")})
    x, state = tpc.randn(5, 2, 3), None
    out, last = rnn(x)
    assert out.shape == (5, 2, 8)
    for t in reversed(range(5)):
        state = one(x[t], state)
        h = state[0] if isinstance(state, tuple) else state
        assert tpc.allclose(out[t, :, 4:], h, atol=1e-6)
    assert tpc.allclose((last[0] if isinstance(last, tuple) else last)[1], h, atol=1e-6)


def test_batch_first_and_no_batch_are_the_same_numbers():
    gru = nn.GRU(3, 4, num_layers=2)
    turned = nn.GRU(3, 4, num_layers=2, batch_first=True)
    turned.load_state_dict(gru.state_dict())
    x = tpc.randn(5, 1, 3)
    out, last = gru(x)
    assert tpc.allclose(turned(x.transpose(0, 1))[0], out.transpose(0, 1), atol=1e-6)
    assert tpc.allclose(gru(x[:, 0])[1], last[:, 0], atol=1e-6)
    with pytest.raises(RuntimeError, match=r"Expected hidden size \[2, 1, 4\], got \[1, 1, 4\]"):
        gru(x, tpc.zeros(1, 1, 4))
    assert repr(turned) == "GRU(3, 4, num_layers=2, batch_first=True)"


def test_recurrence_trains_in_a_compiled_step():
    lstm = nn.LSTM(1, 2, proj_size=1)
    run = tpc.compile(lambda x: lstm(x)[0].sum(), fullgraph=True)
    x = tpc.randn(3, 2, 1)
    run(x).backward()
    got = [p.grad.clone() for p in lstm.parameters()]
    lstm.zero_grad()
    lstm(x)[0].sum().backward()
    assert all(tpc.allclose(g, p.grad, atol=1e-6) for g, p in zip(got, lstm.parameters(), strict=True))


def test_attention_to_equal_keys_is_a_mean():
    attention = nn.MultiheadAttention(2, 1, batch_first=True)
    with tpc.no_grad():
        attention.in_proj_weight.copy_(tpc.eye(2).repeat(3, 1))
        attention.out_proj.weight.copy_(tpc.eye(2))
    query, same = tpc.randn(1, 1, 2), tpc.ones(1, 3, 2)
    out, weights = attention(query, same, tpc.tensor([[[3.0, 0.0], [0.0, 3.0], [3.0, 3.0]]]))
    assert weights.flatten().tolist() == pytest.approx([1 / 3] * 3)
    assert out.flatten().tolist() == pytest.approx([2.0, 2.0])
    _, masked = attention(query, same, same, key_padding_mask=tpc.tensor([[False, True, False]]))
    assert masked.flatten().tolist() == pytest.approx([0.5, 0.0, 0.5])


def test_an_encoder_normalises_what_it_adds():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2).eval()
    out = encoder(tpc.randn(3, 2, 4))
    assert out.mean(-1).abs().max().item() < 1e-6
    assert encoder.layers[0].linear1.weight is not encoder.layers[1].linear1.weight


def test_gradients_are_kept_small():
    p, q = nn.Parameter(tpc.zeros(1)), nn.Parameter(tpc.zeros(1))
    p.grad, q.grad = tpc.tensor([3.0]), tpc.tensor([4.0])
    assert nn.utils.clip_grad_norm_([p, q], 10.0).item() == 5.0
    assert p.grad.item() == 3.0
    nn.utils.clip_grad_norm_([p, q], 1.0)
    assert (p.grad.item(), q.grad.item()) == pytest.approx((0.6, 0.8), rel=1e-5)
    nn.utils.clip_grad_value_([p, q], 0.7)
    assert q.grad.item() == pytest.approx(0.7)
    q.grad.fill_(math.inf)
    with pytest.raises(RuntimeError, match=r"The total norm of order 2\.0 for gradients"):
        nn.utils.clip_grad_norm_([p, q], 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    layer = constant(nn.Linear(2, 1), 1.0)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    nn.utils.vector_to_parameters(vector * tpc.tensor([1.0, 2.0, 3.0]), layer.parameters())
    assert layer.weight.tolist() == [[1.0, 2.0]]
    assert layer.bias.tolist() == [3.0]


def test_a_decoder_that_ignores_its_memory_is_an_encoder():
    decoder, encoder = nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0), nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    encoder.load_state_dict(decoder.state_dict(), strict=False)
    x, memory = tpc.randn(3, 2, 4), tpc.randn(5, 2, 4)
    assert not tpc.allclose(decoder(x, memory), encoder(x), atol=1e-3)
    constant(decoder.multihead_attn.out_proj, 0.0)
    # What the first part gives is normalised already: normalising it again changes nothing but by eps.
    assert tpc.allclose(decoder(x, memory), encoder(x), atol=1e-4)
    assert nn.TransformerDecoder(decoder, 2)(x, memory).shape == (3, 2, 4)
