"""Square brackets and index functions: what they read, what they write, what their gradients are."""

from __future__ import annotations

import numpy as np
import pytest

import tpc
from tpc.functions.gathering import one_hot


def grid() -> tpc.Tensor:
    """[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]"""
    return tpc.arange(12.0).reshape(3, 4)


def gradient(x: tpc.Tensor, y: tpc.Tensor) -> list:
    """Of the sum of y * (1, 2, 3, ...): tells where each element of y came from."""
    weights = tpc.arange(1.0, y.numel() + 1).reshape(y.shape)
    return tpc.autograd.grad((y * weights).sum(), x, retain_graph=True)[0].tolist()


# --- ints, slices, None, Ellipsis ---


def test_ints_and_slices_read_as_in_numpy():
    x, a = grid(), np.arange(12.0).reshape(3, 4)
    for index in (1, -1, (1, 2), slice(1, None), (slice(None), slice(None, None, 2)), (..., 0), (None, 1), (slice(5, 9),), (), ...):
        assert x[index].tolist() == a[index].tolist(), index


def test_they_give_views():
    x = grid()
    x[1][2] = 0.0
    x[:, ::2][0, 1] = 50.0
    assert x.tolist() == [[0, 1, 50, 3], [4, 5, 0, 7], [8, 9, 10, 11]]
    assert x[:].data_ptr() == x.data_ptr()


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ((0, -5), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (1.5, IndexError, "only integers, slices"),
        ("a", TypeError, "invalid data type 'str'"),
    ],
)
def test_what_is_no_index_is_refused_at_once(index: object, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        grid()[index]


def test_a_number_has_no_index():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        tpc.tensor(1.0)[0]
    assert tpc.tensor(1.0)[None].shape == (1,)


# --- index tensors ---


def test_index_tensors_lists_and_arrays_pick_elements():
    x = grid()
    for rows in (tpc.tensor([2, 0]), [2, 0], np.array([2, 0]), range(2, -1, -2)):
        assert x[rows].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert x[[0, 1], [1, -1]].tolist() == [1, 7]
    assert x[tpc.tensor([[0], [2]]), tpc.tensor([0, 3])].tolist() == [[0, 3], [8, 11]]
    assert x[[]].shape == (0, 4)


def test_picked_elements_are_copies():
    x = grid()
    x[[0]].mul_(100)
    assert x.tolist() == grid().tolist()


def test_separated_index_tensors_come_out_in_front():
    x = tpc.zeros(2, 3, 4)
    assert x[:, [0, 1], [0, 1]].shape == (2, 2)
    assert x[[0, 1], :, [0, 1]].shape == (2, 3)
    assert x[:, [0, 1, 0]].shape == (2, 3, 4)
    assert x[0, :, [0, 1]].shape == (3, 2)  # PyTorch applies the int first; NumPy gives (2, 3)


def test_index_tensors_must_broadcast_and_be_integers():
    x = grid()
    with pytest.raises(IndexError, match=r"could not be broadcast together with shapes \[2\], \[3\]"):
        x[[0, 1], [0, 1, 2]]
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        x[tpc.tensor([0.0])]
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 3"):
        x[[7]].tolist()


def test_a_zero_dimensional_index_tensor_is_an_int():
    x = grid()
    x[tpc.tensor(1)][0] = -1.0
    assert x[1].tolist() == [-1, 5, 6, 7]


# --- masks ---


def test_masks_select():
    x = grid()
    assert x[x > 8].tolist() == [9, 10, 11]
    assert x[[True, False, True]].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert x[:, x[0] > 1].tolist() == [[2, 3], [6, 7], [10, 11]]
    assert x[tpc.tensor([True, False, True]), 1].tolist() == [1, 9]
    assert x[x > 100].shape == (0,)
    assert x[True].shape == (1, 3, 4)
    assert x[False].shape == (0, 3, 4)


def test_a_mask_has_the_shape_of_what_it_masks():
    with pytest.raises(IndexError, match=r"The shape of the mask \[2\] at index 0 does not match the shape of the indexed tensor \[3, 4\]"):
        grid()[[True, False]]


def test_nonzero_tells_the_places():
    m = tpc.tensor([[0, 2], [3, 0]])
    assert m.nonzero().tolist() == [[0, 1], [1, 0]]
    rows, columns = m.nonzero(as_tuple=True)
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    assert tpc.argwhere(m).shape == (2, 2)


# --- writing ---


def test_numbers_and_tensors_are_written():
    x = grid()
    x[0] = 7
    x[1:, 1] = tpc.tensor([1.0, 2.0])
    x[[0, 2], [0, 3]] = tpc.tensor([-1.0, -2.0])
    assert x.tolist() == [[-1, 7, 7, 7], [4, 1, 6, 7], [8, 2, 10, -2]]


def test_a_mask_writes_without_counting():
    x = grid()
    x[x > 5] = 0
    x[tpc.tensor([False, True, False])] = tpc.tensor([1.0, 2.0, 3.0, 4.0])
    assert x.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4], [0, 0, 0, 0]]
    x[x == 0] = tpc.tensor([9.0, 8.0, 7.0, 6.0, 5.0])
    assert x.tolist() == [[9, 1, 2, 3], [1, 2, 3, 4], [8, 7, 6, 5]]


def test_augmented_writes():
    x = grid()
    x[0] += 1
    x[:, 3] *= 2
    x[x > 20] -= 20
    assert x.tolist() == [[1, 2, 3, 8], [4, 5, 6, 14], [8, 9, 10, 2]]


def test_a_written_value_is_converted_and_broadcast():
    n = tpc.zeros(2, 3, dtype=tpc.int64)
    n[0] = 1.9
    n[:, 1:] = tpc.tensor([[2.0, 3.0]])
    assert n.tolist() == [[1, 2, 3], [0, 2, 3]]


def test_writes_that_do_not_fit_are_refused():
    x = grid()
    with pytest.raises(RuntimeError, match=r"The expanded size of the tensor \(4\) must match the existing size \(3\)"):
        x[0] = tpc.ones(3)
    with pytest.raises(RuntimeError, match=r"value tensor of shape \[3\] cannot be broadcast to indexing result of shape \[2\]"):
        x[[0, 1], [0, 1]] = tpc.ones(3)
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[[0]] = tpc.ones(4, dtype=tpc.float64)
    with pytest.raises(TypeError, match="can't assign a list"):
        x[0] = [1, 2, 3, 4]
    assert x.tolist() == grid().tolist()


# --- gradients ---


def test_gradients_go_back_to_what_was_read():
    x = grid().requires_grad_()
    assert gradient(x, x[1, ::2]) == [[0, 0, 0, 0], [1, 0, 2, 0], [0, 0, 0, 0]]
    assert gradient(x, x[[0, 0], [1, 1]]) == [[0, 3, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert gradient(x, x[x > 9]) == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 2]]


def test_gradients_skip_what_was_overwritten():
    x, v = tpc.ones(3).requires_grad_(), tpc.ones(2).requires_grad_()
    y = x * 1
    y[[0, 2]] = v * 2
    assert gradient(x, y) == [0, 2, 0]
    assert gradient(v, y) == [2, 6]
    z = x * 1
    z[tpc.tensor([True, True, False])] = v[0]
    assert gradient(x, z) == [0, 0, 3]
    assert gradient(v, z) == [3, 0]


# --- functions ---


def test_gather_and_scatter_are_inverse():
    x = grid()
    index = tpc.tensor([[0, 3], [1, 2], [2, 0]])
    picked = x.gather(1, index)
    assert picked.tolist() == [[0, 3], [5, 6], [10, 8]]
    assert tpc.zeros(3, 4).scatter(1, index, picked).tolist() == [[0, 0, 0, 3], [0, 5, 6, 0], [8, 0, 10, 0]]
    assert tpc.zeros(3, 4).scatter(1, index, 1.0).sum().item() == 6
    assert tpc.take_along_dim(x, index, 1).tolist() == picked.tolist()


def test_scatter_reduce_combines_what_meets():
    index, src = tpc.tensor([0, 0, 1]), tpc.tensor([2.0, 3.0, 4.0])
    start = tpc.ones(3)
    results = {r: start.scatter_reduce(0, index, src, r).tolist() for r in ("sum", "prod", "mean", "amax", "amin")}
    assert results == {"sum": [6, 5, 1], "prod": [6, 4, 1], "mean": [2, 2.5, 1], "amax": [3, 4, 1], "amin": [1, 1, 1]}
    assert start.scatter_reduce(0, index, src, "sum", include_self=False).tolist() == [5, 4, 1]
    assert start.scatter_add(0, index, src).tolist() == [6, 5, 1]


def test_gradients_of_scatter_reduce():
    index = tpc.tensor([0, 0, 1])
    src = tpc.tensor([2.0, 3.0, 4.0]).requires_grad_()
    start = tpc.ones(2)
    assert gradient(src, start.scatter_reduce(0, index, src, "prod")) == [3, 2, 2]
    assert gradient(src, start.scatter_reduce(0, index, src, "amax")) == [0, 1, 2]
    assert gradient(src, start.scatter_reduce(0, index, src, "mean", include_self=False)) == [0.5, 0.5, 2]


def test_whole_slices_by_a_vector_of_indices():
    x, rows = grid(), tpc.tensor([2, 0])
    assert x.index_select(0, rows).tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert x.index_fill(1, tpc.tensor([0, 1, 2]), -1.0)[0].tolist() == [-1, -1, -1, 3]
    assert x.index_copy(0, rows, tpc.zeros(2, 4))[:, 0].tolist() == [0, 4, 0]
    assert x.index_add(0, tpc.tensor([1, 1]), tpc.ones(2, 4), alpha=0.5)[1].tolist() == [5, 6, 7, 8]


def test_index_put_writes_or_adds():
    x, place = tpc.zeros(3), (tpc.tensor([1, 1]),)
    assert x.index_put(place, tpc.tensor([2.0, 2.0])).tolist() == [0, 2, 0]
    assert x.index_put(place, tpc.tensor([2.0, 3.0]), accumulate=True).tolist() == [0, 5, 0]
    assert grid().take(tpc.tensor([0, 5, -1])).tolist() == [0, 5, 11]
    assert tpc.zeros(2, 2).put(tpc.tensor([3]), tpc.tensor([1.0])).tolist() == [[0, 0], [0, 1]]


def test_masked_functions():
    x, m = tpc.tensor([1.0, 2.0, 3.0]), tpc.tensor([True, False, True])
    assert x.masked_fill(m, 0).tolist() == [0, 2, 0]
    assert x.masked_select(m).tolist() == [1, 3]
    assert x.masked_scatter(m, tpc.tensor([8.0, 9.0])).tolist() == [8, 2, 9]
    with pytest.raises(RuntimeError, match="only supports boolean masks"):
        x.masked_fill(tpc.tensor([1, 0, 1]), 0)


def test_gradient_of_masked_scatter_goes_to_both():
    x, src = tpc.ones(3).requires_grad_(), tpc.ones(3).requires_grad_()
    y = x.masked_scatter(tpc.tensor([True, False, True]), src)
    assert gradient(x, y) == [0, 2, 0]
    assert gradient(src, y) == [1, 3, 0]


def test_one_hot_and_bincount():
    assert one_hot(tpc.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert one_hot(tpc.tensor([0]), 2).tolist() == [[1, 0]]
    assert tpc.bincount(tpc.tensor([1, 1, 3])).tolist() == [0, 2, 0, 1]


def test_copies_with_a_part_replaced():
    x = tpc.zeros(2, 2)
    assert tpc.select_scatter(x, tpc.ones(2), 0, 1).tolist() == [[0, 0], [1, 1]]
    assert tpc.slice_scatter(x, tpc.ones(2, 1), 1, 0, 1).tolist() == [[1, 0], [1, 0]]
    assert tpc.diagonal_scatter(x, tpc.ones(2)).tolist() == [[1, 0], [0, 1]]
    assert x.tolist() == [[0, 0], [0, 0]]


def test_a_compiled_function_reads_a_mask():
    compiled = tpc.compile(lambda x: x[x > 0] * 2)
    assert compiled(tpc.tensor([1.0, -1.0, 2.0])).tolist() == [2, 4]
    assert compiled(tpc.tensor([-1.0, 3.0, 4.0])).tolist() == [6, 8]


@pytest.mark.xfail(reason="nonzero raises before the guard on its count is compared")
def test_a_compiled_function_is_recorded_again_for_another_count():
    compiled = tpc.compile(lambda x: x[x > 0] * 2)
    compiled(tpc.tensor([1.0, -1.0, 2.0]))
    assert compiled(tpc.tensor([-1.0, -3.0, 4.0])).tolist() == [8]


def test_writes_through_expanded_dimensions():
    base = tpc.arange(3.0)
    wide = base.expand(2, 3)
    with pytest.warns(UserWarning, match="Use of index_put_ on expanded tensors is deprecated"):
        wide[tpc.tensor([[False, True, False], [False, False, False]])] = 9.0
    assert base.tolist() == [0.0, 9.0, 2.0]
    with pytest.warns(UserWarning, match="Use of masked_fill_ on expanded tensors is deprecated"):
        wide.masked_fill_(tpc.tensor([[False], [True]]), 4.0)
    assert base.tolist() == [4.0, 4.0, 4.0]
    with pytest.warns(UserWarning, match="Use of index_put_"):
        wide[[0, 1], [1, 1]] = tpc.tensor([3.0, 5.0])
    assert base.tolist() == [4.0, 5.0, 4.0]
    wide[1] += 1  # one row: no element twice
    assert wide.tolist() == [[5.0, 6.0, 5.0]] * 2
    wide.zero_()
    assert base.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        wide.add_(1)


def test_gradients_of_writes_through_expanded_dimensions():
    x = tpc.arange(3.0, requires_grad=True)
    copy = x * 1
    copy.expand(2, 3)[:, 1:2][1] = 5.0
    (copy * tpc.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert copy.tolist() == [0.0, 5.0, 2.0]
    assert x.grad.tolist() == [1.0, 0.0, 3.0]


def test_compiled_writes_through_expanded_dimensions():
    @tpc.compile(fullgraph=True)
    def masked(x, mask):
        wide = x.sum(1, keepdim=True).expand(2, 3)
        wide.masked_fill_(mask, 0.0)
        return wide

    mask = tpc.tensor([[False, True, False], [False, False, False]])
    for k in range(3):
        assert masked(tpc.tensor([[1.0], [2.0]]) + k, mask).tolist() == [[0.0] * 3, [2.0 + k] * 3]
