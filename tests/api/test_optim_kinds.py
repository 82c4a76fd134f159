"""Adaptive optimisers and schedules against PyTorch's numbers, deferred and as one compiled step."""

from __future__ import annotations

import pytest

import tpc
from tpc.optim import lr_scheduler

AFTER_12_STEPS = [
    ("RMSprop", {"lr": 0.1}, [-4.721534089, -4.31407468, -5.166077338]),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True, "weight_decay": 0.1}, [-5.999059428, -6.744451453, -5.886419369]),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5}, [0.472030558, -1.998385315, -0.039985151]),
    ("Adadelta", {"lr": 0.1}, [0.992149844, -2.001590633, 0.490917265]),
    ("Adamax", {"lr": 0.1}, [0.111084341, -1.796781838, -0.328291997]),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}, [-0.291521597, -2.177915178, -0.783476607]),
    ("Rprop", {"lr": 0.1}, [-2.958050224, -2.579134106, -3.458050224]),
    ("Rprop", {"lr": 0.1, "step_sizes": (1e-3, 0.3)}, [-1.7915904, -2.579134106, -2.2915904]),
    ("ASGD", {"lr": 0.1}, [-3.602871669, -3.809024684, -3.637230505]),
    ("ASGD", {"lr": 0.1, "t0": 3, "lambd": 0.1, "weight_decay": 0.1}, [-3.335570531, -3.50883026, -3.364447152]),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1}, [-0.361964951, -0.865166756, -0.447317152]),
]
"""Of p**2 + t * p at t = 0 .. 11, from (1, -2, 1/2)."""


@pytest.mark.parametrize("compiled", [False, True], ids=["deferred", "compiled"])
@pytest.mark.parametrize(("kind", "settings", "expected"), AFTER_12_STEPS)
def test_updates(kind, settings, expected, compiled):
    p = tpc.tensor([1.0, -2.0, 0.5], dtype=tpc.float64, requires_grad=True)
    optimizer = getattr(tpc.optim, kind)([p], foreach=False, **settings)
    recorded = []

    def step(t):
        recorded.append(1)
        optimizer.zero_grad()
        (p * p + p * t).sum().backward()
        optimizer.step()

    run = tpc.compile(step, fullgraph=True) if compiled else step
    for t in range(12):
        run(tpc.tensor(float(t)))
    # PyTorch keeps ASGD's rate in single precision.
    assert p.tolist() == pytest.approx(expected, abs=1e-7 if kind == "ASGD" else 1e-8)
    assert len(recorded) == (1 if compiled else 12)


def test_unknown_settings_are_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'momentun'"):
        tpc.optim.RMSprop([tpc.ones(1, requires_grad=True)], momentun=0.9)
    with pytest.raises(ValueError, match=r"Invalid beta parameter at index 1: 1\.0"):
        tpc.optim.NAdam([tpc.ones(1, requires_grad=True)], betas=(0.9, 1.0))


def sequential(q):
    parts = [lr_scheduler.ConstantLR(q, 0.1, 2), lr_scheduler.ExponentialLR(q, 0.5), lr_scheduler.StepLR(q, 2)]
    return lr_scheduler.SequentialLR(q, parts, [3, 6])


SCHEDULES = [
    (lambda q: lr_scheduler.StepLR(q, 3), [0.4, 0.4, 0.4, 0.04, 0.04, 0.04, 0.004, 0.004, 0.004, 0.0004, 0.0004, 0.0004]),
    (
        lambda q: lr_scheduler.MultiStepLR(q, [2, 5, 5]),
        [0.4, 0.4, 0.04, 0.04, 0.04, 0.0004, 0.0004, 0.0004, 0.0004, 0.0004, 0.0004, 0.0004],
    ),
    (
        lambda q: lr_scheduler.ExponentialLR(q, 0.9),
        [0.4, 0.36, 0.324, 0.2916, 0.26244, 0.236196, 0.2125764, 0.1913188, 0.1721869, 0.1549682, 0.1394714, 0.1255242],
    ),
    (lambda q: lr_scheduler.PolynomialLR(q, 6, 2.0), [0.4, 0.2777778, 0.1777778, 0.1, 0.0444444, 0.0111111, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    (
        lambda q: lr_scheduler.LambdaLR(q, lambda e: 1 / (e + 1)),
        [0.4, 0.2, 0.1333333, 0.1, 0.08, 0.0666667, 0.0571429, 0.05, 0.0444444, 0.04, 0.0363636, 0.0333333],
    ),
    (
        lambda q: lr_scheduler.MultiplicativeLR(q, lambda e: 0.9),
        [0.4, 0.36, 0.324, 0.2916, 0.26244, 0.236196, 0.2125764, 0.1913188, 0.1721869, 0.1549682, 0.1394714, 0.1255242],
    ),
    (lambda q: lr_scheduler.LinearLR(q, 0.25), [0.1, 0.16, 0.22, 0.28, 0.34, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]),
    (lambda q: lr_scheduler.ConstantLR(q), [0.1333333, 0.1333333, 0.1333333, 0.1333333, 0.1333333, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]),
    (
        lambda q: lr_scheduler.CosineAnnealingLR(q, 5, 0.01),
        [0.4, 0.3627583, 0.2652583, 0.1447417, 0.0472417, 0.01, 0.0472417, 0.1447417, 0.2652583, 0.3627583, 0.4, 0.3627583],
    ),
    (
        lambda q: lr_scheduler.CosineAnnealingWarmRestarts(q, 3, 2, 0.01),
        [0.4, 0.3025, 0.1075, 0.4, 0.373875, 0.3025, 0.205, 0.1075, 0.036125, 0.4, 0.3933555, 0.373875],
    ),
    (sequential, [0.04, 0.04, 0.4, 0.4, 0.2, 0.1, 0.4, 0.4, 0.04, 0.04, 0.004, 0.004]),
    (
        lambda q: lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(q, 0.1, 3), lr_scheduler.ExponentialLR(q, 0.9)]),
        [0.04, 0.036, 0.0324, 0.2916, 0.26244, 0.236196, 0.2125764, 0.1913188, 0.1721869, 0.1549682, 0.1394714, 0.1255242],
    ),
]


@pytest.mark.parametrize(("made", "rates"), SCHEDULES)
def test_schedules(made, rates):
    optimizer = tpc.optim.SGD([tpc.ones(1, requires_grad=True)], lr=0.4)
    scheduler = made(optimizer)
    got = [optimizer.param_groups[0]["lr"]]
    for _ in rates[1:]:
        optimizer.step()
        scheduler.step()
        got += scheduler.get_last_lr()
    assert got == pytest.approx(rates, abs=1e-6)


def test_a_compiled_step_follows_the_schedule_without_a_new_recording():
    p = tpc.ones(1, requires_grad=True)
    optimizer = tpc.optim.SGD([p], lr=1.0)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    recorded = []

    @tpc.compile(fullgraph=True)
    def step():
        recorded.append(1)
        optimizer.zero_grad()
        p.sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
        scheduler.step()
    assert p.item() == 1 - 1 - 0.5 - 0.25
    assert len(recorded) == 1


def test_a_changed_setting_is_recorded_anew():
    p = tpc.ones(1, requires_grad=True)
    optimizer = tpc.optim.SGD([p], lr=1.0)

    @tpc.compile(fullgraph=True)
    def step():
        optimizer.zero_grad()
        (p * 0).sum().backward()
        optimizer.step()

    step()
    assert p.item() == 1.0
    optimizer.param_groups[0]["weight_decay"] = 0.5
    step()
    assert p.item() == 0.5


def test_a_schedule_resumes():
    def made():
        optimizer = tpc.optim.SGD([tpc.ones(1, requires_grad=True)], lr=0.4)
        return optimizer, lr_scheduler.CosineAnnealingLR(optimizer, 7)

    _, first = made()
    for _ in range(3):
        first.step()
    optimizer, second = made()
    optimizer.load_state_dict(first.optimizer.state_dict())
    second.load_state_dict(first.state_dict())
    first.step()
    second.step()
    assert second.get_last_lr() == first.get_last_lr()


def rosenbrock(p):
    return (1 - p[0]) ** 2 + 10 * (p[1] - p[0] ** 2) ** 2


LBFGS_LOSSES = [
    ({"lr": 0.3, "max_iter": 4}, [1694.0, 504.636084894, 146.225315131, 30.076204948], [0.248702104, -0.422033742], 16, 16),
    (
        {"line_search_fn": "strong_wolfe", "max_iter": 7, "history_size": 2},
        [1694.0, 1.016918723, 0.16884794, 6.979e-06], [1.000012198, 1.000021815], 27, 21,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "losses", "expected", "calls", "moves"), LBFGS_LOSSES)
@pytest.mark.parametrize("reload", [False, True], ids=["", "reloaded"])
def test_lbfgs(settings, losses, expected, calls, moves, reload):
    p = tpc.tensor([3.0, -4.0], dtype=tpc.float64, requires_grad=True)
    optimizer = tpc.optim.LBFGS([p], **settings)
    called = []

    def closure():
        called.append(1)
        optimizer.zero_grad()
        loss = rosenbrock(p)
        loss.backward()
        return loss

    got = []
    for _ in losses:
        got.append(optimizer.step(closure).item())
        if reload:
            saved = optimizer.state_dict()
            optimizer = tpc.optim.LBFGS([p], **settings)
            optimizer.load_state_dict(saved)
    assert got == pytest.approx(losses, abs=1e-6)
    assert p.tolist() == pytest.approx(expected, abs=1e-6)
    assert (len(called), optimizer.state[p]["func_evals"], optimizer.state[p]["n_iter"]) == (calls, calls, moves)


def test_lbfgs_takes_one_group_and_says_that_it_does_not_compile():
    p, q = tpc.ones(2, requires_grad=True), tpc.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        tpc.optim.LBFGS([{"params": [p]}, {"params": [q], "lr": 0.1}])
    optimizer = tpc.optim.LBFGS([p])
    with pytest.raises(RuntimeError, match="Compile the closure"):
        tpc.compile(lambda: optimizer.step(lambda: rosenbrock(p)), fullgraph=True)()
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        tpc.optim.LBFGS([p], line_search_fn="backtracking").step(lambda: _backward(rosenbrock(p * 2)))


def _backward(loss):
    loss.backward()
    return loss


def test_asgd_averages_its_way():
    p = tpc.tensor([1.0, -2.0, 0.5], dtype=tpc.float64, requires_grad=True)
    optimizer = tpc.optim.ASGD([p], lr=0.1, t0=3, lambd=0.1, weight_decay=0.1)
    for t in range(12):
        optimizer.zero_grad()
        (p * p + p * t).sum().backward()
        optimizer.step()
    assert optimizer.state[p]["ax"].tolist() == pytest.approx([-1.8875, -2.3343, -1.9619], abs=1e-4)


def test_settings_are_read_as_they_were_given():
    p = tpc.ones(1, requires_grad=True)
    optimizer = tpc.optim.SGD([p], lr=0.1, momentum=0.9)
    lr_scheduler.CyclicLR(optimizer, 0.2, 0.4)
    (group,) = optimizer.param_groups
    assert (group["lr"], group.get("lr"), dict(group)["lr"], {**group}["lr"], type(group["lr"])) == (0.2, 0.2, 0.2, 0.2, float)
    assert ("lr", 0.2) in list(group.items())
    assert group["momentum"] == 0.9
    assert next(iter(group)) == "params"
    assert repr(optimizer).splitlines()[:2] == ["SGD (", "Parameter Group 0"]
    assert "    lr: 0.2" in repr(optimizer).splitlines()
    rate = tpc.tensor(0.5)
    assert tpc.optim.SGD([p], lr=rate).param_groups[0]["lr"] is rate


class Smoothed(tpc.optim.Optimizer):
    """Makes its state in the first step, as users' optimisers do."""

    def __init__(self, params, lr, decay=0.5):
        super().__init__(params, {"lr": lr, "decay": decay})

    @tpc.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["mean"] = tpc.zeros_like(p)
                state["mean"].mul_(group["decay"]).add_(p.grad)
                p.add_(state["mean"], alpha=-group["lr"])


@pytest.mark.parametrize("compiled", [False, True], ids=["deferred", "compiled"])
def test_an_optimiser_of_the_user(compiled):
    p = tpc.ones(1, requires_grad=True)
    optimizer = Smoothed([p], lr=1.0)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    recorded = []

    def step():
        recorded.append(1)
        optimizer.zero_grad()
        (p * 2).sum().backward()
        optimizer.step()

    run = tpc.compile(step, fullgraph=True) if compiled else step
    position, mean, rate = 1.0, 0.0, 1.0
    for _ in range(5):
        run()
        scheduler.step()
        mean = mean / 2 + 2
        position, rate = position - rate * mean, rate / 2
        assert p.item() == position
    # The first step makes the state and is run as it is; the second is recorded.
    assert len(recorded) == (3 if compiled else 5)
    optimizer.param_groups[0]["decay"] = 0.0
    run()
    assert p.item() == position - rate * 2
    fresh = Smoothed([p], lr=7.0)
    fresh.load_state_dict(optimizer.state_dict())
    assert fresh.param_groups[0]["lr"] == 0.5**5
    assert fresh.state[p]["mean"].item() == 2.0


def test_state_that_changes_outside_of_tensors_is_not_recorded():
    p = tpc.ones(1, requires_grad=True)

    class Counting(tpc.optim.Optimizer):
        def step(self, closure=None):
            state = self.state[p]
            state["step"] = state.get("step", 0) + 1
            with tpc.no_grad():
                p.sub_(state["step"])

    optimizer = Counting([p], {})
    run = tpc.compile(lambda: optimizer.step())
    with pytest.warns(UserWarning, match="the optimiser's state 'step' is assigned"):
        for _ in range(4):
            run()
    assert p.item() == 1 - 1 - 2 - 3 - 4
