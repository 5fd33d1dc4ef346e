"""Fusion: which loop nests become one kernel, and why."""
