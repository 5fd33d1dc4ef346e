"""Generate text from groups: C++, Triton, and the host program that calls the kernels."""
