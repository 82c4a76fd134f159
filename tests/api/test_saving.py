"""Saving and loading: everything comes back bit for bit, training goes on as if nothing had been, damage is one error."""

from __future__ import annotations

import io
import math
import struct
from collections import OrderedDict

import pytest

import tpc
from tpc import nn, safetensors
from tpc.optim.lr_scheduler import ExponentialLR

ALL_DTYPES = "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64".split()


def test_nested_data_comes_back(tmp_path):
    shared = tpc.arange(3)
    data = {
        "tensors": [tpc.ones(2, 3, dtype=getattr(tpc, d)) for d in ALL_DTYPES],
        1: (None, True, "text", -(2**70), 0.1, 1e-320, 2 - 1j, b"\x00\xff", {1, 2}, tpc.float16),
        "order": OrderedDict(b=1, a=[]),
        "empty": tpc.zeros(0, 2),
        "scalar": tpc.tensor(-0.0),
        "again": (shared, shared),
    }
    tpc.save(data, tmp_path / "data")
    got = tpc.load(tmp_path / "data")
    assert got[1] == data[1]
    assert list(got["order"]) == ["b", "a"]
    assert all(a.dtype is b.dtype and tpc.equal(a, b) for a, b in zip(got["tensors"], data["tensors"], strict=True))
    assert got["empty"].shape == (0, 2)
    assert math.copysign(1, got["scalar"].item()) == -1
    assert got["again"][0] is got["again"][1]
    got["again"][0].add_(1)


def test_numbers_that_are_none_and_parameters_come_back():
    stream = io.BytesIO()
    tpc.save([math.inf, -math.inf, math.nan, nn.Parameter(tpc.ones(2))], stream)
    stream.seek(0)
    high, low, none, p = tpc.load(stream)
    assert (high, low) == (math.inf, -math.inf)
    assert math.isnan(none)
    assert isinstance(p, nn.Parameter)
    assert p.requires_grad


class Work:
    """A model with dropout and running statistics, an optimiser, a schedule."""

    def __init__(self):
        self.model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1))
        self.optimizer = tpc.optim.AdamW(self.model.parameters(), lr=0.1, amsgrad=True)
        self.schedule = ExponentialLR(self.optimizer, 0.9)
        self.run = tpc.compile(self.step, fullgraph=True)

    def step(self):
        self.optimizer.zero_grad()
        loss = self.model(tpc.randn(5, 3)).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def steps(self, count):
        losses = []
        for _ in range(count):
            losses.append(self.run().item())
            self.schedule.step()
        return losses

    def state(self):
        parts = {name: getattr(self, name).state_dict() for name in ("model", "optimizer", "schedule")}
        return {**parts, "random": tpc.get_rng_state()}

    def resume(self, state):
        for name in ("model", "optimizer", "schedule"):
            getattr(self, name).load_state_dict(state[name])
        tpc.set_rng_state(state["random"])


def test_training_resumes_bit_for_bit(tmp_path):
    tpc.manual_seed(3)
    work = Work()
    work.steps(4)
    tpc.save(work.state(), tmp_path / "checkpoint")
    expected = work.steps(5)
    tpc.manual_seed(99)
    other = Work()
    other.steps(1)
    other.resume(tpc.load(tmp_path / "checkpoint"))
    assert other.steps(5) == expected
    assert all(tpc.equal(a, b) for a, b in zip(work.model.parameters(), other.model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("write", "read"),
    [(tpc.save, tpc.load), (safetensors.save_file, safetensors.load_file)],
    ids=["save", "safetensors"],
)
def test_a_damaged_file_is_one_error(write, read, tmp_path):
    path = tmp_path / "file"
    write({"a": tpc.arange(4), "b": tpc.ones(2)}, path)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(RuntimeError, match=r"cannot load .*file: .* damaged"):
            read(path)
    path.write_bytes(whole)
    assert read(path)["a"].tolist() == [0, 1, 2, 3]


def test_a_flipped_bit_in_a_tensor_is_seen(tmp_path):
    tpc.save(tpc.full((50,), 7.0), tmp_path / "file")
    data = bytearray((tmp_path / "file").read_bytes())
    data[data.index(struct.pack("<f", 7.0) * 3)] ^= 1
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(RuntimeError, match="damaged"):
        tpc.load(tmp_path / "file")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    tpc.save({"a": 1}, path)
    with pytest.raises(TypeError, match=r"obj\['a'\]\[1\] is a Linear. Save the state_dict"):
        tpc.save({"a": [1, nn.Linear(1, 1)]}, path)
    with pytest.raises(TypeError, match="'a' is a int"):
        safetensors.save_file({"a": 1}, path)
    assert tpc.load(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_safetensors_bytes_are_those_of_the_format():
    data = safetensors.save({"x": tpc.tensor([1, 2], dtype=tpc.uint8)}, {"by": "me"})
    header = b'{"__metadata__":{"by":"me"},"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}'
    assert data == len(header).to_bytes(8, "little") + header + b"\x01\x02"
    given = b'{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}'
    read = safetensors.load(len(given).to_bytes(8, "little") + given + struct.pack("<ff", 0.5, -2.0))
    assert read["w"].tolist() == [[0.5, -2.0]]


def test_safetensors_keeps_every_dtype(tmp_path):
    tensors = {d: tpc.ones(3, dtype=getattr(tpc, d)) for d in ALL_DTYPES} | {"scalar": tpc.tensor(2.5), "none": tpc.zeros(0, 4)}
    safetensors.save_file(tensors, tmp_path / "file", {"version": "1"})
    got = safetensors.load_file(tmp_path / "file")
    assert all(got[k].dtype is t.dtype and got[k].shape == t.shape and tpc.equal(got[k], t) for k, t in tensors.items())
    assert safetensors.read_metadata(tmp_path / "file") == {"version": "1"}
    with pytest.raises(ValueError, match="safetensors has no dtype for 'z'"):
        safetensors.save({"z": tpc.ones(1, dtype=tpc.complex128)})
