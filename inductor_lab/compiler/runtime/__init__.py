"""Compile kernels, load them and call them: toolchain, cache, executable."""
