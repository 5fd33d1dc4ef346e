"""The order in which kernels and library calls run."""
