"""Attention kernels, in C++ and in Triton."""
