"""Functions such as exp and tanh, written as arithmetic without branches, so that loops over them become vector code."""
