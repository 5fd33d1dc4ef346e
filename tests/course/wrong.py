"""Typical wrong answers, by exercise, each with words of the sentence that it must get."""

from __future__ import annotations

from typing import Any

import torch

from inductor_lab.course.labs.capture import OPERATIONS

# ---- lab 1 -------------------------------------------------------------------------------------


def swapped_operands(instructions, arguments):
    stack, variables = [], dict(arguments)
    for name, what in instructions:
        if name == "LOAD_FAST":
            stack.append(variables[what])
        elif name == "LOAD_CONST":
            stack.append(what)
        elif name == "STORE_FAST":
            variables[what] = stack.pop()
        elif name == "BINARY_OP":
            left, right = stack.pop(), stack.pop()
            stack.append(OPERATIONS[what](left, right))
        else:
            return stack.pop()


def without_stores(instructions, arguments):
    stack = []
    for name, what in instructions:
        if name == "LOAD_FAST":
            stack.append(arguments[what])
        elif name == "LOAD_CONST":
            stack.append(what)
        elif name == "BINARY_OP":
            right, left = stack.pop(), stack.pop()
            stack.append(OPERATIONS[what](left, right))
    return stack.pop()


def named_by_variables(instructions):
    nodes, stack = [], []
    for name, what in instructions:
        if name in ("LOAD_FAST", "LOAD_CONST"):
            stack.append(what)
        elif name == "STORE_FAST":
            if nodes:
                nodes[-1] = (what, *nodes[-1][1:])
            stack.pop()
        elif name == "BINARY_OP":
            right, left = stack.pop(), stack.pop()
            nodes.append((f"v{len(nodes)}", what, left, right))
            stack.append(nodes[-1][0])
    return nodes, stack.pop()


def nodes_alone(instructions):
    return []


def same_shape(arguments):
    shape = arguments["x"].shape
    return lambda others: isinstance(others["x"], torch.Tensor) and others["x"].shape == shape


def same_data(arguments):
    def holds(others):
        x, y = arguments["x"], others["x"]
        return isinstance(y, torch.Tensor) and x.equal(y) and others["n"] is arguments["n"]

    return holds


def one_graph(steps, result):
    return [(["x", "w"], [step[0] for step in steps if step[1] != "python"], [result])]


def hands_on_everything(steps, result):
    graphs: list[Any] = [[]]
    for step in steps:
        if step[1] == "python":
            graphs.append([])
        else:
            graphs[-1].append(step)
    found = []
    for graph in filter(None, graphs):
        names = [step[0] for step in graph]
        found.append(({r for s in graph for r in s[2]} - set(names), names, names))
    return found


def breaks_still(x, w):
    y = torch.softmax(x @ w, -1)
    return y * 2 if y.max() > 0.5 else y - 1


def by_element(x, w):
    y = torch.softmax(x @ w, -1)
    return torch.where(y > 0.5, y * 2, y - 1)


def each_size(rows):
    return len(set(rows))


def at_most_twice(rows):
    return min(2, len(set(rows)))


LAB_1 = [
    ("1.1", swapped_operands, "Python returns"),
    ("1.1", without_stores, "raised"),
    ("1.2", named_by_variables, "neither an argument nor a node"),
    ("1.2", nodes_alone, "tuple"),
    ("1.3", same_shape, "the graph would be wrong"),
    ("1.3", same_data, "recompiles in every call"),
    ("1.4", one_graph, "the graphs should hold"),
    ("1.4", hands_on_everything, "hands on"),
    ("1.5", breaks_still, "captures 2 graphs"),
    ("1.5", by_element, "another result"),
    ("1.6", each_size, "TorchDynamo compiles 2 times, you say 3"),
    ("1.6", at_most_twice, "TorchDynamo compiles 3 times, you say 2"),
]

WRONG = [*LAB_1]
