"""Accelerators.  A correct compiler does not need them, and each has a switch."""
