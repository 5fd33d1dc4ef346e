"""Compile, load, call: toolchain, cache, executable."""
