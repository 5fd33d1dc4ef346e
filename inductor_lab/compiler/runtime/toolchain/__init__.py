"""Finds a C++ compiler, compiles shared libraries and loads them."""
