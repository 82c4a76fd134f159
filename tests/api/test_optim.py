"""Optimisers against their textbook formulas in NumPy, deferred and as one compiled step."""

from __future__ import annotations

import numpy as np
import pytest

import tpc

STEPS, SIZE = 6, 5


def sgd(p, gradient, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    v = np.zeros_like(p)
    for t in range(1, STEPS + 1):
        g = gradient(p, t) * (-1 if maximize else 1) + weight_decay * p
        v = momentum * v + (g if t == 1 else (1 - dampening) * g)
        p = p - 0.1 * (g + momentum * v if nesterov else v if momentum else g)
    return p


def adam(p, gradient, weight_decay=0.0, amsgrad=False, decoupled=False, eps=1e-8):
    m, v, top = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for t in range(1, STEPS + 1):
        g = gradient(p, t)
        if decoupled:
            p = p * (1 - 0.1 * weight_decay)
        else:
            g = g + weight_decay * p
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        top = np.maximum(top, v) if amsgrad else v
        p = p - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(top / (1 - 0.999**t)) + eps)
    return p


CASES = [
    (tpc.optim.SGD, {}, sgd, {}),
    (tpc.optim.SGD, {"momentum": 0.9}, sgd, {}),
    (tpc.optim.SGD, {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}, sgd, {}),
    (tpc.optim.SGD, {"momentum": 0.9, "nesterov": True, "maximize": True}, sgd, {}),
    (tpc.optim.Adam, {}, adam, {}),
    (tpc.optim.Adam, {"weight_decay": 0.1, "amsgrad": True}, adam, {}),
    (tpc.optim.AdamW, {"weight_decay": 0.1, "eps": 1e-3}, adam, {"decoupled": True}),
]


@pytest.mark.parametrize("compiled", [False, True], ids=["deferred", "compiled"])
@pytest.mark.parametrize(("kind", "settings", "reference", "extra"), CASES)
def test_updates(kind, settings, reference, extra, compiled):
    start = np.random.default_rng(0).standard_normal(SIZE)
    p = tpc.tensor(start).requires_grad_()
    optimizer = kind([p], lr=0.1, **settings)

    def step(t):
        optimizer.zero_grad()
        (p * p + p * t).sum().backward()
        optimizer.step()

    run = tpc.compile(step, fullgraph=True) if compiled else step
    for t in range(1, STEPS + 1):
        run(tpc.tensor(float(t)))
    wanted = reference(start, lambda p, t: 2 * p + t, **settings, **extra)
    assert np.allclose(p.detach().numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_a_new_rate_needs_no_new_recording():
    p = tpc.ones(3).requires_grad_()
    optimizer = tpc.optim.SGD([p], lr=1.0)
    recorded = []

    @tpc.compile
    def step():
        recorded.append(1)
        optimizer.zero_grad()
        p.sum().backward()
        optimizer.step()

    for rate in (1.0, 2.0, 0.5):
        optimizer.param_groups[0]["lr"] = rate
        step()
    assert p.tolist() == [-2.5] * 3
    assert len(recorded) == 1


def test_state_goes_through_a_dictionary():
    def made():
        p = tpc.arange(4.0).requires_grad_()
        return p, tpc.optim.Adam([p], lr=0.1)

    def step(p, optimizer):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()

    p, optimizer = made()
    for _ in range(4):
        step(p, optimizer)
    q, other = made()
    for _ in range(2):
        step(q, other)
    saved, (r, fresh) = other.state_dict(), made()
    with tpc.no_grad():
        r.copy_(q)
    fresh.load_state_dict(saved)
    for _ in range(2):
        step(r, fresh)
    assert r.tolist() == p.tolist()
