"""Samples of the Fourier transforms."""

from __future__ import annotations

from tests.ops.sample import c64, c128, f32, f64, sample

for norm in ("none", "sqrt", "n"):
    for inverse in (False, True):
        sample("fft_c2c", c64(3, 8), dim=1, inverse=inverse, norm=norm)
        sample("fft_c2c", c128(5, 2), dim=0, inverse=inverse, norm=norm)
    for shape in ((3, 8), (2, 7), (1, 1)):
        sample("fft_r2c", f32(*shape), dim=1, norm=norm)
        sample("fft_r2c", f64(*shape), dim=1, norm=norm)
    for size in (1, 2, 7, 8):
        sample("fft_c2r", c64(size // 2 + 1, 3), dim=0, size=size, norm=norm)
        sample("fft_c2r", c128(2, size // 2 + 1), dim=1, size=size, norm=norm)
sample("fft_c2c", c64(0, 4), dim=1, inverse=False, norm="none")
sample("fft_r2c", f32(0, 4), dim=1, norm="none")
sample("fft_c2r", c64(3, 0), dim=0, size=4, norm="n")
