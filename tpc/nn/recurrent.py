"""Recurrent layers and their cells: Elman's, LSTM (Hochreiter & Schmidhuber 1997), GRU (Cho et al. 2014), in PyTorch's form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tpc.functions.elementwise import where
from tpc.functions.factories import zeros
from tpc.functions.joining import cat, stack
from tpc.nn import functional as fn
from tpc.nn import init
from tpc.nn.linear import weights
from tpc.nn.module import Module
from tpc.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from tpc.tensor import Tensor

State = tuple[Any, ...]
GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
"""How many blocks of rows the weights of each kind have."""


def _plain(activation: Callable[[Any], Any]) -> Callable[..., State]:
    def step(given: Any, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
        return (activation(given + fn.linear(state[0], w_hh, b_hh)),)

    return step


def _lstm(given: Any, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
    i, f, g, o = (given + fn.linear(state[0], w_hh, b_hh)).chunk(4, -1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru(given: Any, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
    r, z, n = given.chunk(3, -1)
    hr, hz, hn = fn.linear(state[0], w_hh, b_hh).chunk(3, -1)
    new = (n + (r + hr).sigmoid() * hn).tanh()
    keep = (z + hz).sigmoid()
    return (new + keep * (state[0] - new),)


STEPS: dict[str, Callable[..., State]] = {"RNN_TANH": _plain(fn.tanh), "RNN_RELU": _plain(fn.relu), "LSTM": _lstm, "GRU": _gru}
"""One step: what the input gives, the state, the weights of the state -> the new state, which begins with the output."""


def _reset(module: Module, hidden_size: int) -> None:
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for p in module.parameters():
        init.uniform_(p, -bound, bound)


def _picked(state: Any, order: Tensor) -> Any:
    """States [places, batch, ...] of sequences in another order."""
    return tuple([s.index_select(1, order) for s in state]) if isinstance(state, tuple) else state.index_select(1, order)


class RNNBase(Module):
    """Layers of steps along a sequence: [length, batch, input_size] (or batch first, or without batch) to [.., directions * hidden_size],
    with the last states, [layers * directions, batch, hidden_size]."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError("hidden_size and num_layers must be greater than zero")
        if proj_size and (mode != "LSTM" or proj_size >= hidden_size):
            raise ValueError("proj_size argument is only supported for LSTM, and has to be smaller than hidden_size")
        self.mode, self.input_size, self.hidden_size, self.num_layers, self.bias = mode, input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, float(dropout), bidirectional, proj_size
        rows, out = GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else out * (1 + bidirectional)
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                weights(self, dtype, **{name + suffix: shape for name, shape in shapes.items()})
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within 1 / sqrt(hidden_size)."""
        _reset(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Does nothing: weights lie as they are."""

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}"] + ([f"_l{layer}_reverse"] if self.bidirectional else [])

    def _weight(self, name: str) -> Any:
        return self._parameters.get(name)

    def _initial(self, x: Tensor) -> State:
        places, batch = self.num_layers * (1 + self.bidirectional), x.shape[1]
        sizes = [self.proj_size or self.hidden_size] + ([self.hidden_size] if self.mode == "LSTM" else [])
        return tuple([zeros(places, batch, n, dtype=x.dtype) for n in sizes])

    def _along(self, x: Any, state: State, suffix: str, lengths: Any = None) -> tuple[Any, State]:
        """One layer in one direction. Past the end of a sequence its state stays: backwards, it begins there."""
        given = fn.linear(x, self._weight("weight_ih" + suffix), self._weight("bias_ih" + suffix))
        w_hh, b_hh, w_hr = (self._weight(name + suffix) for name in ("weight_hh", "bias_hh", "weight_hr"))
        outs: list[Any] = []
        times = range(x.shape[0])
        for t in reversed(times) if suffix.endswith("reverse") else times:
            new = STEPS[self.mode](given[t], state, w_hh, b_hh)  # type: ignore[index]
            if w_hr is not None:
                new = (fn.linear(new[0], w_hr), *new[1:])
            state = new if lengths is None else tuple([where(lengths > t, a, b) for a, b in zip(new, state, strict=True)])
            outs.append(state[0])
        return stack(outs[::-1] if suffix.endswith("reverse") else outs), state

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        return self._packed(input, hx) if isinstance(input, PackedSequence) else self._padded(input, hx, self.batch_first)

    def _packed(self, given: PackedSequence, hx: Any) -> tuple[Any, Any]:
        """Packed sequences to packed outputs, and each one's state at its own end."""
        ordered = given._replace(sorted_indices=None, unsorted_indices=None)
        x, lengths = pad_packed_sequence(ordered)
        if hx is not None and given.sorted_indices is not None:
            hx = _picked(hx, given.sorted_indices)
        made, state = self._padded(x, hx, False, lengths.unsqueeze(1))
        packed = pack_padded_sequence(made, lengths)
        if given.unsorted_indices is not None:
            state = _picked(state, given.unsorted_indices)
        return given._replace(data=packed.data), state

    def _padded(self, input: Any, hx: Any, batch_first: bool, lengths: Any = None) -> tuple[Any, Any]:
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}")
        batched = input.dim() == 3
        x = input.unsqueeze(1) if not batched else input.transpose(0, 1) if batch_first else input
        first = self._given(hx, x, batched)
        last: list[State] = []
        for layer in range(self.num_layers):
            outs = []
            for suffix in self._suffixes(layer):
                made, state = self._along(x, tuple([s[len(last)] for s in first]), suffix, lengths)
                outs.append(made)
                last.append(state)
            x = outs[0] if len(outs) == 1 else cat(outs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = fn.dropout(x, self.dropout, self.training)
        states = [stack(list(parts)) for parts in zip(*last, strict=True)]
        if not batched:
            x, states = x.squeeze(1), [s.squeeze(1) for s in states]
        elif batch_first:
            x = x.transpose(0, 1)
        return x, tuple(states) if self.mode == "LSTM" else states[0]

    def _given(self, hx: Any, x: Tensor, batched: bool) -> State:
        initial = self._initial(x)
        if hx is None:
            return initial
        given = tuple(hx) if self.mode == "LSTM" else (hx,)
        given = given if batched else tuple([h.unsqueeze(1) for h in given])
        for h, wanted in zip(given, initial, strict=True):
            if h.shape != wanted.shape:
                raise RuntimeError(f"Expected hidden size {list(wanted.shape)}, got {list(h.shape)}")
        return given

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        plain = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        return text + "".join(f", {k}={getattr(self, k)}" for k, v in plain.items() if getattr(self, k) != v)


class RNN(RNNBase):
    """h' = tanh(W x + b + V h + c), or relu by `nonlinearity`."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", *args: Any, **settings: Any):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *args, **settings)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Gates i, f, o and candidate g from x and h: c' = f c + i g, h' = o tanh(c'). States are (h, c)."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__("LSTM", *args, **settings)


class GRU(RNNBase):
    """Gates r, z and candidate n = tanh(W x + b + r (V h + c)): h' = (1 - z) n + z h."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__("GRU", *args, **settings)


class RNNCellBase(Module):
    """One step: [batch, input_size] and a state (zeros unless given) to the next state."""

    mode = "RNN_TANH"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = GATES[self.mode] * hidden_size
        shift = (rows,) if bias else None
        weights(self, dtype, weight_ih=(rows, input_size), weight_hh=(rows, hidden_size), bias_ih=shift, bias_hh=shift)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within 1 / sqrt(hidden_size)."""
        _reset(self, self.hidden_size)

    def forward(self, input: Any, hx: Any = None) -> Any:
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}")
        count = 2 if self.mode == "LSTM" else 1
        empty = zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype)
        state = (empty,) * count if hx is None else tuple(hx) if count == 2 else (hx,)
        own = self._parameters
        new = STEPS[self.mode](fn.linear(input, own["weight_ih"], own["bias_ih"]), state, own["weight_hh"], own["bias_hh"])  # type: ignore[arg-type]
        return new if count == 2 else new[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """One step of an `RNN`."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", **settings: Any) -> None:
        self.__dict__["mode"] = f"RNN_{nonlinearity.upper()}"
        if self.mode not in STEPS:
            raise ValueError(f"Unknown nonlinearity: {nonlinearity}")
        mode = self.mode
        super().__init__(input_size, hidden_size, bias, **settings)
        self.mode, self.nonlinearity = mode, nonlinearity


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`."""

    mode = "LSTM"


class GRUCell(RNNCellBase):
    """One step of a `GRU`."""

    mode = "GRU"
