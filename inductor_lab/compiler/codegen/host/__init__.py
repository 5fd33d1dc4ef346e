"""The host program: a Python function that allocates, calls kernels and frees."""
