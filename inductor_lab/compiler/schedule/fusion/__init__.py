"""Fusion: decide which loop nests become one kernel, and record the reasons."""
