"""Views, joining, arranging: values, gradients, what shares memory and what does not, PyTorch's errors."""

from __future__ import annotations

import pytest

import tpc


def grid() -> tpc.Tensor:
    """[[0, 1, 2], [3, 4, 5]]"""
    return tpc.arange(6.0).reshape(2, 3)


def gradient(x: tpc.Tensor, y: tpc.Tensor) -> list:
    """Of the sum of y * (1, 2, 3, ...): tells where each element of y came from."""
    weights = tpc.arange(1.0, y.numel() + 1).reshape(y.shape)
    return tpc.autograd.grad((y * weights).sum(), x, retain_graph=True)[0].tolist()


# --- views ---


def test_reshape_works_out_one_size():
    assert grid().reshape(3, -1).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert grid().reshape((6,)).shape == (6,)
    assert tpc.reshape(grid(), (1, 6)).shape == (1, 6)
    with pytest.raises(RuntimeError, match="cannot reshape tensor of 0 elements"):
        tpc.zeros(0, 3).reshape(0, -1)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 2), r"shape '\[4, 2\]' is invalid for input of size 6"),
        ((-1, -1), "only one dimension can be inferred"),
        ((-2, 3), "invalid shape dimension -2"),
        ((4, -1), r"shape '\[4, -1\]' is invalid"),
    ],
)
def test_reshape_refuses_shapes_that_do_not_fit(shape: tuple[int, ...], message: str):
    with pytest.raises(RuntimeError, match=message):
        grid().reshape(*shape)


def test_view_never_copies_and_says_so():
    assert grid().view(3, 2).tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size and stride"):
        grid().t().view(6)
    assert grid().t().reshape(6).tolist() == [0, 3, 1, 4, 2, 5]


def test_a_write_to_a_view_shows_in_what_it_is_a_view_of():
    x = grid()
    x.t()[0].mul_(10)
    x.view(6)[5] = -1.0
    assert x.tolist() == [[0, 1, 2], [30, 4, -1]]


def test_a_reshape_that_copies_has_memory_of_its_own():
    x = grid()
    flat = x.t().reshape(6)
    flat[0] = 7.0
    assert x[0, 0].item() == 0.0


def test_strides_tell_how_a_view_lies_in_memory():
    x = tpc.zeros(2, 3, 4)
    assert x.stride() == (12, 4, 1)
    assert x.transpose(0, 2).stride() == (1, 4, 12)
    assert x[:, 1:, ::2].stride() == (12, 4, 2)
    assert x[1:, 1:].storage_offset() == 16
    assert x.diagonal(0, 1, 2).stride() == (12, 5)
    assert tpc.zeros(3, 1).expand(3, 4).stride() == (1, 0)
    assert x.is_contiguous() and x[1:].is_contiguous() and not x[:, 1:].is_contiguous()


def test_contiguous_copies_only_where_it_must():
    x = grid()
    assert x.contiguous() is x
    copy = x.t().contiguous()
    assert copy.is_contiguous()
    copy[0] = 9.0
    assert x.tolist() == grid().tolist()


def test_aliases_have_one_address():
    x = grid()
    assert x.data_ptr() == x.detach().data_ptr() == x.view(6).data_ptr() == x.t().data_ptr()
    assert x.data_ptr() != x.clone().data_ptr()


def test_flatten_and_unflatten():
    x = tpc.zeros(2, 3, 4)
    assert x.flatten().shape == (24,)
    assert x.flatten(1).shape == (2, 12)
    assert x.unflatten(-1, (2, -1)).shape == (2, 3, 2, 2)
    with pytest.raises(RuntimeError, match="don't multiply up to the size of dim 1"):
        x.unflatten(1, (2, 2))


def test_squeeze_and_unsqueeze():
    x = tpc.zeros(1, 3, 1)
    assert x.squeeze().shape == (3,)
    assert x.squeeze(0).shape == (3, 1)
    assert x.squeeze(1).shape == (1, 3, 1)
    assert x.squeeze((0, -1)).shape == (3,)
    assert tpc.unsqueeze(tpc.zeros(3), -1).shape == (3, 1)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        tpc.zeros(3).unsqueeze(2)


def test_dimensions_change_places():
    x = tpc.zeros(2, 3, 4)
    assert x.permute(2, 0, 1).shape == (4, 2, 3)
    assert x.transpose(0, -1).shape == (4, 3, 2)
    assert x.movedim(0, 2).shape == (3, 4, 2)
    assert x.movedim((0, 1), (2, 0)).shape == (3, 4, 2)
    assert x.mT.shape == (2, 4, 3)
    with pytest.raises(RuntimeError, match="duplicate dims are not allowed"):
        x.permute(0, 0, 1)
    with pytest.raises(RuntimeError, match="number of dimensions in the tensor input does not match"):
        x.permute(0, 1)


def test_expand_repeats_without_copying():
    x = tpc.tensor([[1.0], [2.0]])
    assert x.expand(2, 3).tolist() == [[1, 1, 1], [2, 2, 2]]
    assert x.expand(4, -1, 3).shape == (4, 2, 3)
    with pytest.raises(RuntimeError, match=r"The expanded size of the tensor \(3\) must match the existing size \(2\)"):
        x.expand(3, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        x.expand(2, 3).mul_(2)


def test_narrow_select_and_diagonal():
    x = grid()
    assert x.narrow(1, 1, 2).tolist() == [[1, 2], [4, 5]]
    assert x.select(1, -1).tolist() == [2, 5]
    assert x.diagonal().tolist() == [0, 4]
    assert x.diagonal(1).tolist() == [1, 5]
    with pytest.raises(RuntimeError, match=r"start \(2\) \+ length \(2\) exceeds dimension size \(3\)"):
        x.narrow(1, 2, 2)


def test_gradients_pass_through_views():
    x = grid().requires_grad_()
    assert gradient(x, x.t()) == [[1, 3, 5], [2, 4, 6]]
    assert gradient(x, x.reshape(3, 2)) == [[1, 2, 3], [4, 5, 6]]
    assert gradient(x, x[:, ::2]) == [[1, 0, 2], [3, 0, 4]]
    assert gradient(x, x.diagonal(1)) == [[0, 1, 0], [0, 0, 2]]
    assert gradient(x, x.expand(2, 2, 3)) == [[8, 10, 12], [14, 16, 18]]


def test_gradients_pass_through_writes_to_views():
    x = grid().requires_grad_()
    y = x * 1
    y[0] *= 3
    y.t()[2] = 0.0
    assert y.tolist() == [[0, 3, 0], [3, 4, 0]]
    assert gradient(x, y) == [[3, 6, 0], [4, 5, 0]]


def test_a_leaf_cannot_be_written_through_a_view():
    x = tpc.ones(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
        x[0].mul_(2)


# --- together and apart ---


def test_cat_and_stack():
    a, b = tpc.tensor([[1, 2]]), tpc.tensor([[3, 4]])
    assert tpc.cat([a, b]).tolist() == [[1, 2], [3, 4]]
    assert tpc.cat((a, b), dim=-1).tolist() == [[1, 2, 3, 4]]
    assert tpc.stack([a, b]).shape == (2, 1, 2)
    assert tpc.cat([a, tpc.tensor([[0.5, 0.5]])]).dtype is tpc.float32
    assert tpc.hstack([tpc.ones(2), tpc.ones(3)]).shape == (5,)
    assert tpc.vstack([tpc.ones(2), tpc.ones(2)]).shape == (2, 2)


def test_cat_refuses_what_does_not_fit():
    with pytest.raises(RuntimeError, match="Sizes of tensors must match except in dimension 0"):
        tpc.cat([tpc.ones(2, 3), tpc.ones(2, 4)])
    with pytest.raises(RuntimeError, match=r"zero-dimensional tensor .* cannot be concatenated"):
        tpc.cat([tpc.tensor(1.0), tpc.ones(1)])
    with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
        tpc.cat([])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        tpc.stack([tpc.ones(2), tpc.ones(3)])


def test_gradient_of_cat_goes_to_each_part():
    a, b = tpc.ones(2).requires_grad_(), tpc.ones(1).requires_grad_()
    tpc.cat([a, b, a]).mul(tpc.arange(1.0, 6.0)).sum().backward()
    assert a.grad.tolist() == [5, 7]
    assert b.grad.tolist() == [3]


def test_parts_are_views():
    x = tpc.arange(5)
    assert [p.tolist() for p in x.split(2)] == [[0, 1], [2, 3], [4]]
    assert [p.tolist() for p in x.split([1, 4])] == [[0], [1, 2, 3, 4]]
    assert [p.tolist() for p in x.chunk(2)] == [[0, 1, 2], [3, 4]]
    assert [p.tolist() for p in x.tensor_split(3)] == [[0, 1], [2, 3], [4]]
    assert [p.item() for p in x.unbind()] == [0, 1, 2, 3, 4]
    x.split(2)[2].fill_(9)
    assert x.tolist() == [0, 1, 2, 3, 9]
    with pytest.raises(RuntimeError, match="split_with_sizes expects split_sizes to sum exactly to 5"):
        x.split([1, 1])


@pytest.mark.parametrize("take_apart", [lambda x: x.split(1), lambda x: x.chunk(2), lambda x: x.unbind()])
def test_tracked_parts_of_one_call_may_not_be_written(take_apart):
    y = tpc.ones(2, 2).requires_grad_() * 1
    with pytest.raises(RuntimeError, match="is the output of a function that returns multiple views"):
        take_apart(y)[0].mul_(2)


def test_meshgrid():
    a, b = tpc.meshgrid(tpc.tensor([1, 2]), tpc.tensor([3, 4, 5]), indexing="ij")
    assert a.tolist() == [[1, 1, 1], [2, 2, 2]]
    assert b.tolist() == [[3, 4, 5], [3, 4, 5]]
    assert tpc.meshgrid(tpc.ones(2), tpc.ones(3), indexing="xy")[0].shape == (3, 2)


# --- arranged anew ---


def test_flip_and_roll():
    assert grid().flip(1).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert grid().roll(1).tolist() == [[5, 0, 1], [2, 3, 4]]
    assert grid().roll(1, 1).tolist() == [[2, 0, 1], [5, 3, 4]]
    assert tpc.rot90(grid()).tolist() == [[2, 5], [1, 4], [0, 3]]


def test_repeats():
    x = tpc.tensor([1, 2])
    assert x.repeat(2).tolist() == [1, 2, 1, 2]
    assert x.repeat(2, 1).tolist() == [[1, 2], [1, 2]]
    assert x.tile(2).tolist() == [1, 2, 1, 2]
    assert x.repeat_interleave(2).tolist() == [1, 1, 2, 2]
    assert x.repeat_interleave(tpc.tensor([1, 3])).tolist() == [1, 2, 2, 2]
    with pytest.raises(RuntimeError, match="Number of dimensions of repeat dims can not be smaller"):
        grid().repeat(2)


def test_gradients_of_repeats_add_up():
    x = tpc.ones(2).requires_grad_()
    assert gradient(x, x.repeat(2)) == [4, 6]
    assert gradient(x, x.repeat_interleave(2)) == [3, 7]


def test_triangles_and_diagonals():
    x = tpc.ones(3, 3)
    assert x.tril().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert x.triu(1).tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert tpc.diag(tpc.tensor([1, 2])).tolist() == [[1, 0], [0, 2]]
    assert tpc.diag_embed(tpc.tensor([1, 2]), 1).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    y = grid().requires_grad_()
    assert gradient(y, y.triu()) == [[1, 2, 3], [0, 5, 6]]


def test_pad_fills_a_border_and_cuts():
    pad = tpc.functions.arranging.pad
    assert pad(grid(), (1, 0), value=9).tolist() == [[9, 0, 1, 2], [9, 3, 4, 5]]
    assert pad(grid(), (-1, 0, 0, 1)).tolist() == [[1, 2], [4, 5], [0, 0]]
    assert pad(grid(), (2, 1), "reflect").tolist() == [[2, 1, 0, 1, 2, 1], [5, 4, 3, 4, 5, 4]]
    assert pad(grid(), (1, 1), "circular").tolist() == [[2, 0, 1, 2, 0], [5, 3, 4, 5, 3]]
    x = grid().requires_grad_()
    assert gradient(x, pad(x, (1, 1), "replicate")) == [[3, 3, 9], [13, 8, 19]]


def test_running_sums_and_products():
    x = tpc.tensor([2.0, 3.0, 4.0]).requires_grad_()
    assert x.cumsum(0).tolist() == [2, 5, 9]
    assert x.cumprod(0).tolist() == [2, 6, 24]
    assert gradient(x, x.cumsum(0)) == [6, 5, 3]
    assert gradient(x, x.cumprod(0)) == [43, 28, 18]
    assert tpc.tensor([True, True]).cumsum(0).tolist() == [1, 2]


def test_cumprod_has_a_gradient_at_zeros_and_a_second_one():
    x = tpc.tensor([2.0, 0.0, 3.0]).requires_grad_()
    assert gradient(x, x.cumprod(0)) == [1, 22, 0]
    (first,) = tpc.autograd.grad(x.cumprod(0).sum(), x, create_graph=True)
    assert first.tolist() == [1, 8, 0]  # 1 + b + bc, a + ac, ab
    assert tpc.autograd.grad(first.sum(), x)[0].tolist() == [4, 6, 2]


def test_diff():
    assert tpc.diff(tpc.tensor([1, 4, 9])).tolist() == [3, 5]
    assert tpc.diff(tpc.tensor([1, 4, 9]), 2).tolist() == [2]
