"""Sizes that lowering, scheduling and code for a GPU go by together."""

from __future__ import annotations

LONGEST_HELD = 4096
"""Elements of a row that one program of a GPU holds in registers (`codegen/triton/blocks.py`)."""

ROW_ELEMENTS = 1024
"""Elements of a program whose rows are contiguous in memory; short rows share a program."""

GPU_PARTS = 256
"""Parts of rows, one a program, that fill a GPU (`schedule/fusion/mixed_order_reduction.py`)."""

LONGEST_SHARED = 524_288
"""Elements of a row that a GPU keeps at hand from one loop over it to the next, in its caches or in
the registers of several programs (`codegen/triton/shared_rows.py`)."""

WINDOW = 4
"""Places at which one element reads a buffer: more take too much of a GPU's registers."""

EXCHANGED = frozenset({"sum", "prod", "max", "min"})
"""Reductions whose parts such programs exchange, as float32."""
