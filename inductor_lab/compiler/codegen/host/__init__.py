"""The host program: a Python function that allocates buffers, calls kernels and frees buffers."""
