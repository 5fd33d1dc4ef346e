"""Attention kernels in C++ and Triton."""
