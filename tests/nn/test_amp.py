"""Autocast and its decorators, loss scaling, the CUDA that is not there."""

from __future__ import annotations

import warnings

import pytest

import tpc


def test_autocast_is_a_mode_that_code_can_ask_for():
    assert not tpc.is_autocast_enabled("cpu")
    with tpc.autocast("cpu", dtype=tpc.float16):
        assert tpc.is_autocast_enabled("cpu") and tpc.is_autocast_cpu_enabled()
        assert tpc.get_autocast_dtype("cpu") is tpc.float16
        with tpc.autocast("cpu", enabled=False):
            assert not tpc.is_autocast_enabled("cpu")
        assert (tpc.ones(2) @ tpc.ones(2)).dtype is tpc.float32
    assert not tpc.is_autocast_enabled("cpu") and tpc.get_autocast_dtype("cpu") is tpc.float32


def test_autocast_decorates():
    @tpc.autocast("cpu")
    def inside():
        return tpc.is_autocast_enabled("cpu")

    assert inside() and not tpc.is_autocast_enabled("cpu")


def test_autocast_for_cuda_stays_off():
    with pytest.warns(UserWarning, match="CUDA is not available"), tpc.autocast("cuda"):
        assert not tpc.is_autocast_enabled()
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'abc'"):
        tpc.autocast("abc")


def doubled(cast_inputs):
    seen = []

    class Doubled(tpc.autograd.Function):
        @staticmethod
        @tpc.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, x, options):
            seen.append((x.dtype, options["y"].dtype, tpc.is_autocast_enabled("cpu")))
            return x * 2

        @staticmethod
        @tpc.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append(tpc.is_autocast_enabled("cpu"))
            return g * 2, None

    return Doubled, seen


def test_custom_fwd_casts_under_autocast_only():
    x = tpc.ones(3, requires_grad=True)
    function, seen = doubled(tpc.float16)
    function.apply(x, {"y": tpc.ones(1)}).sum().backward()
    with tpc.autocast("cpu"):
        function.apply(x, {"y": tpc.ones(1, dtype=tpc.float64)})
    assert seen == [(tpc.float32, tpc.float32, False), False, (tpc.float16, tpc.float64, False)]


def test_backward_runs_as_forward_did():
    x = tpc.ones(3, requires_grad=True)
    function, seen = doubled(None)
    with tpc.autocast("cpu"):
        y = function.apply(x, {"y": tpc.ones(1)})
    y.sum().backward()
    assert seen[0][2] is True and seen[1] is True
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        tpc.amp.custom_fwd(device_type=3)


def test_scaler_skips_steps_with_infinite_gradients():
    p = tpc.ones(2, requires_grad=True)
    optimizer = tpc.optim.SGD([p], lr=0.5)
    scaler = tpc.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scaler.scale(p.sum()).backward()
    assert p.grad.tolist() == [8.0, 8.0]
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.5, 0.5] and scaler.get_scale() == 8.0
    p.grad = tpc.tensor([float("inf"), 1.0])
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.5, 0.5] and scaler.get_scale() == 4.0
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(p.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 8.0
    other = tpc.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()


def test_scaler_for_cuda_does_nothing():
    with pytest.warns(UserWarning, match="not available"):
        scaler = tpc.amp.GradScaler()
    loss = tpc.ones(())
    assert scaler.scale(loss) is loss and not scaler.is_enabled() and scaler.get_scale() == 1.0


def test_scaler_says_when_it_is_used_out_of_order():
    p = tpc.ones(2, requires_grad=True)
    optimizer = tpc.optim.SGD([p], lr=0.5)
    scaler = tpc.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.unscale_(optimizer)
    p.grad = tpc.ones(2)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)


def test_there_is_no_cuda():
    assert not tpc.cuda.is_available() and tpc.cuda.device_count() == 0 and tpc.cuda.memory_allocated() == 0
    tpc.cuda.empty_cache()
    tpc.cuda.manual_seed_all(3)
    with pytest.raises(RuntimeError, match="there is no CUDA device"):
        tpc.cuda.current_device()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tpc.cuda.amp.autocast(enabled=False), tpc.cuda.device(None):
            assert not tpc.is_autocast_enabled()
