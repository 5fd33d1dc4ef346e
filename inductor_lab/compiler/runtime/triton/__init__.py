"""Compiles, launches, interprets and tunes Triton kernels."""
