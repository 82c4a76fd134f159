"""The operators as users call them, one file per family, with PyTorch's signatures."""
