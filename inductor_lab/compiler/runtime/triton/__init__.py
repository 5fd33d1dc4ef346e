"""Compile, launch, interpret and tune Triton kernels."""
