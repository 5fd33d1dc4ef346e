"""Wrong solutions of the capstone: wrong code, cheats, and data that is not a legal program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BROKEN = [
    ("lower", "lower.view_of",
     "return View(base.buffer, val.dtype, tuple(val.shape), tuple(val.stride()), 0)",
     r"eager mode computes|accesses elements"),
    ("decompose", "decompose.softmax", "e = x.exp()\nreturn e / e.sum(dim, keepdim=True)",
     "1000 times as large"),
    ("autograd", "autograd.partition", """
joint.graph.eliminate_dead_code()
nodes = list(joint.graph.nodes)
outputs = joint.graph.output_node().args[0]
inputs = [node for node in nodes if node.op == "placeholder"]
tangents = [node for node in inputs if node.name.startswith("tangents")]
primals = [node for node in inputs if node not in tangents]
after = set(tangents)
for node in nodes[:-1]:
    after |= {node} if after.intersection(node.all_input_nodes) else set()
read = {each for node in after for each in node.all_input_nodes}.union(outputs[results:])
saved = [node for node in nodes if node in read - after]
wrong = [primals[0] if node in primals else node for node in saved]
forward = extract(joint, primals, [n for n in nodes if n not in after],
                  [*outputs[:results], *wrong])
backward = extract(joint, [*saved, *tangents], [n for n in nodes if n in after],
                   outputs[results:])
return Partition(joint, forward, backward, results, [node.name for node in saved])
""", "the backward: "),
    ("substitute", "fuse.positions", """
found, left = [Affine(0, (0,) * len(sizes)) for _ in range(producer.kept)], at
for axis in sorted(range(producer.kept), key=lambda k: -producer.store.coefs[k]):
    stride = producer.store.coefs[axis]
    if stride <= 0:
        return None
    found[axis] = Affine(0, tuple(c // stride if c % stride == 0 else 0 for c in left.coefs))
    left = Affine(0, tuple(c if c % stride else 0 for c in left.coefs))
return found
""", "eager mode computes|accesses elements"),
    ("group", "fuse.is_legal", "return True", r"reads \w+\[\d+\], which this point has not"),
    ("memory", "memory.lowest_start", "return 0", "share bytes from 0 on, and both are needed"),
]  # fmt: skip
"""Step, function, its body, what the verdict says."""

CHEATS = [
    ("memory", "memory.plan", """
from inductor_lab.mini import memory
return memory.plan(schedule)
""", "does not use the solution of inductor_lab.mini"),
    ("substitute", "fuse.substitute", """
import inductor_lab, os
text = open(os.path.join(os.path.dirname(inductor_lab.__file__), "mini", "fuse.py")).read()
names = {}
exec(text, names)
return names["substitute"](program)
""", "PermissionError"),
    ("group", "fuse.group", "while True:\n    pass", "still running after 20 s"),
    ("autograd", "autograd.partition", """
import os
for end in range(3, 64):
    try:
        os.write(end, b'["l", 1, "returned", null]' * 100)
    except OSError:
        pass
os._exit(0)
""", "cannot be read|ended its process"),
    ("loops", "loops.run_nest", """
import torch
torch.isclose = torch.equal = lambda *args, **kwargs: True
out.zero_()
""", "eager mode computes"),
    ("lower", "lower.Body.load", "return len(bytearray(64 << 30))", "memory|MemoryError"),
]  # fmt: skip
"""The same."""

BROKEN_TRITON = {
    "no_mask": ('{result}, mask=live)")', '{result})")', r"elements: a mask is missing|a race"),
    "sizes": ("% {size}", "% {self.group.sizes[0]}",
              "eager mode computes|a mask is missing|a race"),
    "first_value": ("total = self.variable(constant(Const(first, dtype)))",
                    "total = self.variable(constant(Const(0, dtype)))", "eager mode computes"),
    "loads_twice": ("if key not in known:", "if key not in known or isinstance(expr, Load):",
                    "loaded and stored|a kernel has no `buf"),
    "names_of_a_loop": ("self.value(nest.body, dict(known))", "self.value(nest.body, known)",
                        "eager mode computes|cannot be run"),
    "python": ('self.line("p = tl', 'self.line("import torch")\n        self.line("p = tl',
               "a kernel has no `import torch`"),
}  # fmt: skip
"""What → text of the reference, its replacement, what the verdict says."""

KERNEL = "@triton.jit\ndef kernel0(x, BLOCK: tl.constexpr):\n    "
KERNEL_CHEATS = [
    "import torch", "x = 1", "def kernel0(x):\n    pass", "this is no Python",
    "@triton.jit\ndef kernel0(x, BLOCK=print(1)):\n    x = 1",
    "@triton.jit\ndef kernel0(x, BLOCK: print(1)):\n    x = 1",
    "@triton.jit\ndef kernel0(x, *more):\n    x = 1",
    "@triton.jit\ndef kernel0(x) -> print(1):\n    x = 1",
    "@triton.jit\ndef kernel0(x, tl):\n    x = 1",
    KERNEL + "open('f')", KERNEL + "tl.core.builtins.eval('1')", KERNEL + "a = tl.core\n    a.sys",
    KERNEL + "x.__class__", KERNEL + "tl.__dict__", KERNEL + "x.handle", KERNEL + "y = lambda: 1",
    KERNEL + "range = 1", KERNEL + "for a in x:\n        a = 1",
    KERNEL + "while True:\n        x = 1",
    KERNEL + "y = [a for a in x]", KERNEL + "return x", KERNEL + "with x:\n        x = 1",
]
"""Texts that are more than a kernel."""


def with_nest(change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Callable[[Any], Any]:
    """A change of the first nest of a program as data."""
    def changed(data: Any) -> Any:
        tag, inputs, buffers, constants, steps, outputs = data
        first = next(k for k, step in enumerate(steps) if step[0] == "@Nest")
        steps = (*steps[:first], change(steps[first]), *steps[first + 1 :])
        return tag, inputs, buffers, constants, steps, outputs

    return changed


def _stored_at_one_place(nest: tuple[Any, ...]) -> tuple[Any, ...]:
    tag, out, sizes, kept, _, reduce, body = nest
    return tag, out, sizes, kept, ("@Affine", 0, (0,) * len(sizes)), reduce, body


def _stored_outside(nest: tuple[Any, ...]) -> tuple[Any, ...]:
    tag, out, sizes, kept, store, reduce, body = nest
    return tag, out, sizes, kept, ("@Affine", 1000, store[2]), reduce, body


def _with_operation(name: str) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    return lambda nest: (*nest[:-1], ("@Op", name, (nest[-1],), nest[-1][-1]))


def _with_call(data: Any) -> Any:
    call = ("@Call", ("more",), ("@target", "aten.from_file.default"), ("/etc/passwd",), {})
    return (*data[:4], (*data[4], call), data[5])


def _one_group(items: Any) -> Any:
    """All nests in one kernel that shares their first axis."""
    nests = [nest for item in items if item[0] == "@Group" for nest in item[2]]
    calls = [item for item in items if item[0] == "@Call"]
    return (*calls, ("@Group", nests[0][2][:1], tuple(nests), frozenset()))


def _at_0(found: Any) -> Any:
    places, last_use = found
    moved = {name: (tag, buffer, 0, end - start, first, last)
             for name, (tag, buffer, start, end, first, last) in places.items()}  # fmt: skip
    return moved, last_use


WRONG_DATA: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "no_program": ("substitute", lambda data: data[5], "cannot go on|is not a program"),
    "one_element": ("substitute", with_nest(_stored_at_one_place), "write the same element"),
    "outside": ("substitute", with_nest(_stored_outside), r"accesses elements 1000 to"),
    "load": ("substitute", with_nest(_with_operation("load")), "there is no operation load"),
    "call": ("substitute", _with_call, "the program calls aten.from_file.default"),
    "lost": ("lower", lambda data: (*data[:4], (), data[5]), "nothing writes the output"),
    "one_group": ("group", _one_group,
                  "which this point has not written|does not have the axes|no earlier step"),
    "half": ("autograd", lambda halves: halves[:1], "a forward and a backward"),
    "swapped": ("autograd", lambda halves: halves[::-1], "the forward: "),
    "at_0": ("memory", _at_0, "share bytes from 0 on"),
    "no_places": ("memory", lambda found: ({}, found[1]), "too many or too few buffers"),
    "bounds": ("loops", lambda found: found[::-1] if len(found) == 2 else found, "bounds are"),
}  # fmt: skip
"""What → step, change of the data, sentence."""
