"""Sizes that lowering, scheduling and code generation for a GPU share."""

from __future__ import annotations

LONGEST_HELD = 4096
"""The longest row, in elements, that one Triton program holds in registers
(`codegen/triton/blocks.py`)."""

ROW_ELEMENTS = 1024
"""Elements of one program if its rows are contiguous in memory; short rows share a program."""

GPU_PARTS = 256
"""Groups of rows, one for each program, that fill a GPU
(`schedule/fusion/mixed_order_reduction.py`)."""

LONGEST_SHARED = 524_288
"""The longest row, in elements, that a GPU keeps in its caches, or in the registers of several
programs, between two loops over it (`codegen/triton/shared_rows.py`)."""

WINDOW = 4
"""The largest number of loads from one buffer for one output element; more need too many
registers."""

EXCHANGED = frozenset({"sum", "prod", "max", "min"})
"""Reductions whose partial results these programs exchange, as float32."""
