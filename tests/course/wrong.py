"""Typical wrong answers, by exercise, each with words of the explanation that it must get."""

from __future__ import annotations

from typing import Any

import torch

from inductor_lab.compiler.ir.expr import Const
from inductor_lab.course.given.capture import OPERATIONS
from inductor_lab.course.labs.fusion import Graph, traffic
from tests.course.wrong_fast import LABS_6_TO_9
from tests.course.wrong_ladder import LAB_14
from tests.course.wrong_ranks import LAB_13
from tests.course.wrong_whole import LABS_10_TO_12

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
    ("1.3", same_data, "a recompile in every call"),
    ("1.4", one_graph, "the graphs should contain"),
    ("1.4", hands_on_everything, "returns"),
    ("1.5", breaks_still, "captures 2 graphs"),
    ("1.5", by_element, "the result differs from that of gate"),
    ("1.6", each_size, "compiles of TorchDynamo: 2; your answer: 3"),
    ("1.6", at_most_twice, "compiles of TorchDynamo: 3; your answer: 2"),
]


# ---- lab 5 -------------------------------------------------------------------------------------


def without_substitution(body, axes, made):
    if body[0] == "load":
        return made if body[1] == "p" else body
    return (body[0], *(without_substitution(part, axes, made) for part in body[1:]))


def one_axis_after_the_other(body, axes, made):
    if body[0] != "load":
        return (body[0], *(one_axis_after_the_other(part, axes, made) for part in body[1:]))
    if body[1] != "p":
        return body

    def renamed(tree, old, new):
        if tree[0] != "load":
            return (tree[0], *(renamed(part, old, new) for part in tree[1:]))
        return ("load", tree[1], tuple(new if axis == old else axis for axis in tree[2]))

    for old, new in zip(axes, body[2], strict=True):
        made = renamed(made, old, new)
    return made


def each_read_counts(reads, nbytes, outputs, groups):
    read = sum(nbytes[r] for g in groups for n in g for r in reads[n] if r not in g)
    return read, traffic(Graph(reads, nbytes, outputs, tuple(map(tuple, groups))))[1]


def everything_is_written(reads, nbytes, outputs, groups):
    read = sum(nbytes[r] for g in groups for r in {r for n in g for r in reads[n]} - set(g))
    return read, sum(nbytes[name] for group in groups for name in group)


def never(shared, inner, index):
    return None


def equal_alone(shared, inner, index):
    return None if index == ("i", "j") else "read at another place"


def as_given(reads, groups):
    return groups


def gives_up(reads, groups):
    made = {"x", "y"}
    for group in groups:
        if any(read not in made and read not in group for name in group for read in reads[name]):
            return None
        made.update(group)
    return groups


def each_alone(program):
    return [[nest.buffer] for nest in program.nests]


def all_in_one(program):
    return [[nest.buffer for nest in program.nests]]


LAB_5 = [
    ("5.1", without_substitution, "should be"),
    ("5.1", one_axis_after_the_other, "it should be"),
    ("5.2", each_read_counts, "bytes are read; your answer"),
    ("5.2", everything_is_written, "bytes are written; your answer"),
    ("5.3", never, "which another point computes"),
    ("5.3", equal_alone, "every point reads only values that it has computed"),
    ("5.4", as_given, "which no kernel has computed yet"),
    ("5.4", gives_up, "there is an order"),
    ("5.5", each_alone, "legal and right, but it moves"),
    ("5.5", all_in_one, "cannot be one kernel"),
]

# ---- lab 3 -------------------------------------------------------------------------------------


def last_use_wins(nodes, values):
    found = {nodes[-1][0]: 1}
    for name, op, left, right in reversed(nodes):
        gradient = found.get(name, 0)
        found[left] = gradient * (values.get(right, right) if op == "*" else 1)
        found[right] = gradient * (values.get(left, left) if op == "*" else -1 if op == "-" else 1)
    return found


def minus_is_plus(nodes, values):
    found = {nodes[-1][0]: 1}
    for name, op, left, right in reversed(nodes):
        gradient = found.get(name, 0)
        for side, other in ((left, right), (right, left)):
            by = values.get(other, other) if op == "*" else 1
            found[side] = found.get(side, 0) + gradient * by
    return found


def everything(nodes):
    return {"a", "b"} | {node[0] for node in nodes}


def the_left(nodes):
    return {left for _, op, left, right in nodes if op == "*" and isinstance(right, str)}


def saved_alone(values, saved):
    return all(v.name in saved or v.is_input for v in values if v.needed)


def always(values, saved):
    return True


def all_needed(values):
    return [value.name for value in values if value.needed]


def nothing_saved(values):
    return []


LAB_3 = [
    ("3.1", last_use_wins, "the derivative with respect to"),
    ("3.1", minus_is_plus, "the derivative with respect to"),
    ("3.2", everything, "no derivative reads it"),
    ("3.2", the_left, "which your answer leaves out"),
    ("3.3", saved_alone, "it is enough; your answer is that it is not"),
    ("3.3", always, "cannot be computed"),
    ("3.4", all_needed, "is enough"),
    ("3.4", nothing_saved, "saving nothing is not enough"),
    ("3.5", all_needed, "legal, but it saves"),
    ("3.5", nothing_saved, "which cannot be recomputed"),
]

# ---- lab 4 -------------------------------------------------------------------------------------


def without_offset(size, stride, offset, op):
    after = torch.empty(1000).as_strided(size, stride)
    kind, dim, *rest = op
    if kind == "transpose":
        after = after.transpose(dim, rest[0])
    elif kind == "select":
        after = after.select(dim, rest[0])
    else:
        after = after[(slice(None),) * dim + (slice(*rest),)]
    return tuple(after.shape), after.stride(), offset


def sizes_alone(size, stride, offset, op):
    return size


def packed(size, wanted):
    return torch.empty(wanted).stride()


def its_own(size, wanted):
    return torch.empty(size).stride()


def always_a_view(size, stride, wanted):
    return torch.empty(wanted).stride()


def always_a_copy(size, stride, wanted):
    return None


def first_column(nests, x):
    return [row[:1] for row in x]


def rows_as_tensor(nests, x):
    return torch.tensor(x)


def overflows(build, x):
    power = build.op("exp", x)
    return build.op("truediv", power, build.op("add", Const(1.0, x.dtype), power))


def a_number(build, x):
    return 3


LAB_4 = [
    ("4.1", without_offset, "gives (size, stride, offset)"),
    ("4.1", sizes_alone, "your answer"),
    ("4.2", packed, "the stride of dimension"),
    ("4.2", its_own, "the stride of dimension"),
    ("4.3", always_a_view, "your answer"),
    ("4.3", always_a_copy, "no copy is needed"),
    ("4.4", first_column, "it should be"),
    ("4.4", rows_as_tensor, "it should return list or tuple"),
    ("4.5", overflows, "torch.sigmoid gives"),
    ("4.5", a_number, "made by build.op"),
]

# ---- lab 2 -------------------------------------------------------------------------------------


def overflowing_softmax(x):
    return x.exp() / x.exp().sum(-1, keepdim=True)


def library_softmax(x):
    return torch.softmax(x, -1)


def unbiased(x):
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).sum(-1, keepdim=True) / (x.shape[-1] - 1)
    return centred * (variance + 1e-5).rsqrt()


def of_everything(x):
    centred = x - x.mean()
    return centred * ((centred * centred).mean() + 1e-5).rsqrt()


def overflowing_sum(x):
    return x.exp().sum(-1).log()


def infinity_less_infinity(x):
    top = x.amax(-1, keepdim=True)
    return (x - top).exp().sum(-1).log() + top.squeeze(-1)


def once(operators, table):
    return [part for name in operators for part in table.get(name, [name])]


def as_a_set(operators, table):
    return set(operators)


def any_relu(node, edit):
    return node.args[0]


def no_relu(node, edit):
    return None


LAB_2 = [
    ("2.1", overflowing_softmax, "torch computes"),
    ("2.1", library_softmax, "_softmax is not one of the simple operators"),
    ("2.2", unbiased, "torch computes"),
    ("2.2", of_everything, "torch computes"),
    ("2.3", overflowing_sum, "torch computes"),
    ("2.3", infinity_less_infinity, "torch computes"),
    ("2.4", once, "it should be"),
    ("2.4", as_a_set, "it should return list"),
    ("2.5", any_relu, "with your rule"),
    ("2.5", no_relu, "a relu of an abs is still there"),
]

WRONG = [*LAB_1, *LAB_2, *LAB_3, *LAB_4, *LAB_5, *LABS_6_TO_9, *LABS_10_TO_12, *LAB_13, *LAB_14]
