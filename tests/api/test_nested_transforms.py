"""Transforms inside transforms: history and tangents of an outer one survive the aliases that an inner one makes."""

from __future__ import annotations

import pytest

import tpc

B = tpc.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
X = tpc.tensor([1.0, 2.0])
grad, jvp, vmap = tpc.func.grad, tpc.func.jvp, tpc.vmap


def cube(z):
    return (z**3).sum()


def grown(z):
    return (z.exp() * z).sum()


CASES = {
    "jvp of vmap of grad": (lambda: jvp(vmap(grad(cube)), (B,), (tpc.ones(3, 2),))[1], 6 * B),
    "grad of vmap of grad": (lambda: grad(lambda b: vmap(grad(cube))(b).sum())(B), 6 * B),
    "saved results": (lambda: grad(lambda b: vmap(grad(grown))(b).sum())(B), (2 + B) * B.exp()),
    "jvp with saved results": (lambda: jvp(vmap(grad(grown)), (B,), (B,))[1], (2 + B) * B.exp() * B),
    "a closure over what carries a tangent": (
        lambda: jvp(lambda x: vmap(lambda b: grad(lambda z: (b * z**3).sum())(x))(B), (X,), (tpc.ones(2),))[1],
        6 * B * X,
    ),
    "grad of vmap of jvp": (
        lambda: grad(lambda x: vmap(lambda b: jvp(lambda z: (b * z**3).sum(), (x,), (b,))[1])(B).sum())(X),
        (B * B * 6 * X).sum(0),
    ),
    "detach cuts off every level": (lambda: grad(lambda b: vmap(grad(lambda y: (y.detach() * y).sum()))(b).sum())(B), B * 0),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    call, want = CASES[name]
    got = call()
    tpc.testing.assert_close(got, want)
    assert not got.requires_grad
    compiled = tpc.compile(call, fullgraph=True)
    for _ in range(2):
        tpc.testing.assert_close(compiled(), want)


def test_data_of_a_batched_tensor():
    assert vmap(lambda x: x.data * 2)(B).tolist() == (B * 2).tolist()
