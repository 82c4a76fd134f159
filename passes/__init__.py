"""Programs in, better programs out; imports tpc.ir only."""

assert __name__ == "tpc.passes", "import tpc.passes, never passes"
