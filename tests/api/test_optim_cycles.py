"""Schedules that cycle rate and momentum or follow a measure, against PyTorch's numbers."""

from __future__ import annotations

import pytest

import tpc
from tpc.optim import lr_scheduler

ONE_CYCLE = [0.016, 0.139916, 0.351714, 0.397766, 0.373205, 0.324698, 0.258952, 0.185055, 0.113224, 0.053391, 0.013827]
ITS_MOMENTA = [0.95, 0.91773, 0.862574, 0.850558, 0.856699, 0.868826, 0.885262, 0.903737, 0.921694, 0.936653, 0.946544]
TRIANGLES = [0.1, 0.233333, 0.366667, 0.5, 0.366667, 0.233333, 0.1, 0.166667, 0.233333, 0.3, 0.233333]


def test_one_cycle_in_a_compiled_step_is_one_recording():
    p = tpc.ones(1, requires_grad=True)
    optimizer = tpc.optim.Adam([p])
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.4, 12)
    recorded, rates, momenta = [], [], []

    @tpc.compile(fullgraph=True)
    def step():
        recorded.append(1)
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()

    group = optimizer.param_groups[0]
    for _ in ONE_CYCLE:
        rates.append(group["lr"])
        momenta.append(group["betas"][0])
        step()
        scheduler.step()
    assert rates == pytest.approx(ONE_CYCLE, abs=1e-6)
    assert momenta == pytest.approx(ITS_MOMENTA, abs=1e-6)
    assert len(recorded) == 1
    assert optimizer.state_dict()["param_groups"][0]["betas"] == pytest.approx((0.95, 0.999))
    scheduler.step()
    with pytest.raises(ValueError, match=r"Tried to step 13 times\. The specified number of total steps is 12"):
        scheduler.step()


def test_triangles_half_as_high_each_time():
    optimizer = tpc.optim.SGD([tpc.ones(1, requires_grad=True)], lr=0.4, momentum=0.5)
    scheduler = lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, 3, mode="triangular2")
    got = scheduler.get_last_lr()
    for _ in TRIANGLES[1:]:
        scheduler.step()
        got = got + scheduler.get_last_lr()
    assert got == pytest.approx(TRIANGLES, abs=1e-6)
    with pytest.raises(ValueError, match="optimizer must support momentum or beta1"):
        lr_scheduler.CyclicLR(tpc.optim.SGD([tpc.ones(1, requires_grad=True)], lr=0.4), 0.1, 0.5)


def test_a_plateau_lowers_the_rate():
    optimizer = tpc.optim.SGD([tpc.ones(1, requires_grad=True)], lr=0.4)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, cooldown=1, min_lr=0.003)
    got = []
    for measure in (3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1):
        scheduler.step(measure)
        got += scheduler.get_last_lr()
    assert got == pytest.approx([0.4] * 3 + [0.04] * 5 + [0.004] * 3 + [0.003] * 5)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 1.5),  # the mean of 0, 1, 2, 3
        ({"multi_avg_fn": tpc.optim.swa_utils.get_ema_multi_avg_fn(0.9)}, 0.561),
        ({"avg_fn": lambda old, new, count: 0.5 * old + 0.5 * new, "use_buffers": True}, 2.125),
    ],
)
def test_averaged_models(settings, expected):
    model = tpc.nn.Linear(1, 1)
    average = tpc.optim.swa_utils.AveragedModel(model, **settings)
    for k in range(4):
        with tpc.no_grad():
            model.weight.fill_(k)
        average.update_parameters(model)
    assert average.module.weight.item() == pytest.approx(expected)
    assert average.n_averaged.item() == 4
    assert list(average.state_dict()) == ["n_averaged", "module.weight", "module.bias"]


@pytest.mark.parametrize(
    ("strategy", "epochs", "rates"),
    [("cos", 3, [0.775, 0.325, 0.1, 0.1]), ("linear", 3, [0.7, 0.4, 0.1, 0.1]), ("cos", 0, [0.1, 0.1, 0.1, 0.1])],
)
def test_annealing_to_the_rate_of_averaging(strategy, epochs, rates):
    optimizer = tpc.optim.SGD([tpc.ones(1, requires_grad=True)], lr=1.0)
    scheduler = tpc.optim.swa_utils.SWALR(optimizer, 0.1, epochs, strategy)
    got = []
    for _ in rates:
        optimizer.step()
        scheduler.step()
        got.append(optimizer.param_groups[0]["lr"])
    assert got == pytest.approx(rates)


def test_running_statistics_are_computed_anew():
    model = tpc.nn.Sequential(tpc.nn.BatchNorm1d(1))
    tpc.optim.swa_utils.update_bn([(tpc.tensor([[1.0], [3.0]]), 0), (tpc.tensor([[5.0], [9.0]]), 0)], model)
    (norm,) = model
    assert (norm.running_mean.item(), norm.running_var.item(), norm.momentum) == (4.5, 5.0, 0.1)
