"""Layers without parameters that change shapes or drop elements: pooling, padding, resizing, dropout."""

from __future__ import annotations

from typing import Any

from tpc.functions.shape import flatten, unflatten
from tpc.nn import functional as fn
from tpc.nn.applied import Applied, applied
from tpc.tensor import Tensor


class _Strided(Applied):
    """A window that steps by its own size unless told otherwise."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stride = self.kernel_size if self.stride is None else self.stride  # type: ignore[has-type, attr-defined]


def _pools(count: int) -> list[Any]:
    def named(name: str, *args: Any) -> Any:
        function = getattr(fn, name)
        return applied(f"{args[0]}{count}d", function, *args[1:])

    window = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
    average = "kernel_size stride padding ceil_mode count_include_pad" + (" divisor_override" if count > 1 else "")
    return [
        named(f"max_pool{count}d", "MaxPool", "kernel_size stride padding dilation return_indices ceil_mode",
              window + ", dilation={dilation}, ceil_mode={ceil_mode}", None, _Strided),
        named(f"avg_pool{count}d", "AvgPool", average, window, {"stride": None}, _Strided),
        named(f"lp_pool{count}d", "LPPool", "norm_type kernel_size stride ceil_mode",
              "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}"),
        named(f"max_unpool{count}d", "MaxUnpool", "kernel_size stride padding", window, None, _Strided),
        named(f"adaptive_avg_pool{count}d", "AdaptiveAvgPool", "output_size", "output_size={output_size}"),
        named(f"adaptive_max_pool{count}d", "AdaptiveMaxPool", "output_size return_indices", "output_size={output_size}"),
    ]  # fmt: skip


MaxPool1d, AvgPool1d, LPPool1d, MaxUnpool1d, AdaptiveAvgPool1d, AdaptiveMaxPool1d = _pools(1)
MaxPool2d, AvgPool2d, LPPool2d, MaxUnpool2d, AdaptiveAvgPool2d, AdaptiveMaxPool2d = _pools(2)
MaxPool3d, AvgPool3d, LPPool3d, MaxUnpool3d, AdaptiveAvgPool3d, AdaptiveMaxPool3d = _pools(3)


class _Padded(Applied):
    """Borders around the last `COUNT` dimensions; one number stands for all sides."""

    COUNT = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        given: Any = self.padding  # type: ignore[has-type]
        self.padding = (given,) * (2 * self.COUNT) if isinstance(given, int) else tuple(given)


def _padding(mode: str) -> Any:
    def padded(input: Tensor, padding: Any) -> Tensor:
        """The input with borders, as `functional.pad` in the mode of the name."""
        return fn.pad(input, padding, mode)

    return padded


def _constant(input: Tensor, padding: Any, value: Any) -> Tensor:
    """The input with borders of one value."""
    return fn.pad(input, padding, "constant", value)


def _paddings(name: str, function: Any, settings: str = "padding", shown: str = "{padding}") -> list[Any]:
    kinds = [type("_Padded", (_Padded,), {"COUNT": n}) for n in (1, 2, 3)]
    return [applied(f"{name}{kind.COUNT}d", function, settings, shown, None, kind) for kind in kinds]  # type: ignore[attr-defined]


ZeroPad1d, ZeroPad2d, ZeroPad3d = _paddings("ZeroPad", _padding("constant"))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _paddings("ReflectionPad", _padding("reflect"))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _paddings("ReplicationPad", _padding("replicate"))
CircularPad1d, CircularPad2d, CircularPad3d = _paddings("CircularPad", _padding("circular"))
ConstantPad1d, ConstantPad2d, ConstantPad3d = _paddings("ConstantPad", _constant, "padding value", "padding={padding}, value={value}")

_DROPPED = ("p inplace", "p={p}, inplace={inplace}")
Dropout = applied("Dropout", fn.dropout, *_DROPPED)
Dropout1d = applied("Dropout1d", fn.dropout1d, *_DROPPED)
Dropout2d = applied("Dropout2d", fn.dropout2d, *_DROPPED)
Dropout3d = applied("Dropout3d", fn.dropout3d, *_DROPPED)
AlphaDropout = applied("AlphaDropout", fn.alpha_dropout, *_DROPPED)
FeatureAlphaDropout = applied("FeatureAlphaDropout", fn.feature_alpha_dropout, *_DROPPED)


def _unflattened(input: Tensor, dim: Any, unflattened_size: Any) -> Tensor:
    """One dimension as several."""
    return unflatten(input, dim, unflattened_size)


Flatten = applied("Flatten", flatten, "start_dim end_dim", "start_dim={start_dim}, end_dim={end_dim}", {"start_dim": 1})
Unflatten = applied("Unflatten", _unflattened, "dim unflattened_size", "dim={dim}, unflattened_size={unflattened_size}")
Fold = applied(
    "Fold", fn.fold, "output_size kernel_size dilation padding stride",
    "output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}",
)  # fmt: skip
Unfold = applied(
    "Unfold", fn.unfold, "kernel_size dilation padding stride",
    "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}",
)  # fmt: skip
PixelShuffle = applied("PixelShuffle", fn.pixel_shuffle, "upscale_factor", "upscale_factor={upscale_factor}")
PixelUnshuffle = applied("PixelUnshuffle", fn.pixel_unshuffle, "downscale_factor", "downscale_factor={downscale_factor}")
ChannelShuffle = applied("ChannelShuffle", fn.channel_shuffle, "groups", "groups={groups}")
CosineSimilarity = applied("CosineSimilarity", fn.cosine_similarity, "dim eps")
PairwiseDistance = applied("PairwiseDistance", fn.pairwise_distance, "p eps keepdim")
LocalResponseNorm = applied("LocalResponseNorm", fn.local_response_norm, "size alpha beta k", "{size}, alpha={alpha}, beta={beta}, k={k}")


class Upsample(applied("Upsample", fn.interpolate, "size scale_factor mode align_corners recompute_scale_factor")):  # type: ignore[misc]
    """The input at another size, as `functional.interpolate`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        factor: Any = self.settings()["scale_factor"]
        if factor is not None:
            self.scale_factor = tuple(map(float, factor)) if isinstance(factor, tuple) else float(factor)

    def extra_repr(self) -> str:
        first = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{first}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """The nearest pixels."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear interpolation between corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
