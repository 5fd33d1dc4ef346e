"""A small TorchDynamo, to be read: Python bytecode becomes FX graphs, guards and graph breaks.

    fast = dynamo.capture(f)
    fast(x, w)                        # runs f, and keeps what was captured
    print(fast)                       # graphs, guards, breaks

Read `values.py` (what the interpreter knows of a value), `interpreter.py` (one method for each
bytecode instruction), `frames.py` (guards are tried, graphs run, breaks crossed), in this order.

What it leaves out: nn.Module, closures, writing to elements, `with`, `try`, generators,
dictionaries, symbolic sizes, devices other than the CPU.  A function with an instruction that it
does not know runs as it is; the rest of a loop that cannot be captured is run by Python.
TorchDynamo: `torch/_dynamo/symbolic_convert.py`, and a folder of kinds of values.
"""

from inductor_lab.course.dynamo import instructions
from inductor_lab.course.dynamo.frames import Captured, capture

__all__ = ["Captured", "capture", "instructions"]
