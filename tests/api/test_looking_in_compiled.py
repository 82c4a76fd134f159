"""Python that looks at values in a compiled function: every look is guarded, also where the array is at hand during the recording."""

from __future__ import annotations

import pytest

import tpc

LOOKS = {
    "item of an argument": (lambda x: x * 2 if x[0].item() > 0 else x, 2),
    "tolist of an argument": (lambda x: tpc.tensor(sorted(x.tolist())), 2),
    "numpy of an argument": (lambda x: tpc.tensor(x.detach().numpy().max()), 2),
    "an argument of one element": (lambda x: x + int(x[:1]), 2),
    "large": (lambda x: tpc.tensor(sorted(x.tolist())), 100),
}


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.filterwarnings("ignore:.*runs in deferred mode")
def test_a_look_at_an_argument(name):
    function, size = LOOKS[name]
    compiled = tpc.compile(function)
    for x in (tpc.arange(1.0, size + 1), -tpc.arange(1.0, size + 1), tpc.arange(1.0, size + 1).flip(0), tpc.arange(1.0, size + 1)):
        assert compiled(x).tolist() == function(x).tolist()


def test_a_look_at_a_tensor_from_outside():
    flag = tpc.tensor([1.0])
    compiled = tpc.compile(lambda x: x * 2 if flag.item() > 0 else x)
    assert compiled(tpc.ones(2)).tolist() == [2, 2]
    flag.fill_(-1)
    assert compiled(tpc.ones(2)).tolist() == [1, 1]


def test_a_second_look_at_what_the_first_was_made_from():
    def function(x):
        total = x.sum()
        first = (total * 2 > 0).item()
        return x * total.item() if first else x

    compiled = tpc.compile(function)
    for scale in (1.0, 3.0, -1.0):
        x = tpc.ones(2) * scale
        assert compiled(x).tolist() == function(x).tolist()
