"""`lab.memory`: the memory of one training step in eager mode, with stock and with our compiler.

    allocations.py       what torch's allocators do while a function runs, with marks in between
    run_step.py          one training step: the call, and its backward
    eager_recorder.py    marks of eager mode: operator, line, saved tensors, variables
    host_recorder.py     marks of compiled code: each line of a host program
    our_parts.py         the buffers of our host programs
    attribution.py       who keeps each byte at the peak
    step_memory.py       the result
    measure.py           `lab.memory`: runs in processes of their own
    edits.py, trials.py  suggestions, and their trials
"""
