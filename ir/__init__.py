"""What a program is; imports nothing else of tpc."""

assert __name__ == "tpc.ir", "import tpc.ir, never ir"
