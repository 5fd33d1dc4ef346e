"""Prints loop trees as Triton kernels."""
