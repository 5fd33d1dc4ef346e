"""Guards as conditions that the page evaluates: it predicts TorchDynamo's answer without a call.

A condition is a small tree of JSON lists, parsed from the guard's Python text:

    L['n'] == 5                       ["compare", ["=="], [["input", "L['n']"], ["const", 5]]]
    4 <= L['x'].size()[0]             ["compare", ["<="], [["const", 4], ["size", "L['x']", 0]]]
    check_tensor(L['x'], ..., size=[8, None], stride=[4, 1])
                                      ["tensor", "L['x']", "float32", false, [8, null], [4, 1]]

`guards.js` evaluates them for the edited inputs.  A guard about anything else (the id of a
function, torch's state) has no condition, since no edit changes it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, cast

from inductor_lab.compiler.capture.capture import Capture, Guard, Symbol, readable_source
from inductor_lab.widgets.shapes import GuardInput

Condition = list[Any]

_ROOT = re.compile(r"[LG]\['(\w+)'\]")
_ARRAY = re.compile(r"___from_numpy\((L\['\w+'\])\)")
"""A NumPy array, as the tensor that TorchDynamo makes of it."""
_TYPE = re.compile(r"type=<class '([\w.]+)'>")
_COMPARE = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "==", ast.IsNot: "!=",
}
_ARITHMETIC = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "neg",
}
_FUNCTIONS = {"Mod": "%", "PythonMod": "%", "FloorDiv": "//", "Min": "min", "Max": "max"}
_RELATIONS = {"Eq": "==", "Ne": "!=", "Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">="}


def condition_of(guard: Guard) -> Condition | None:
    """The condition of a guard; None if it does not depend on an editable value."""
    if guard.kind == "TYPE_MATCH":
        found = _TYPE.search(guard.code)
        return ["type", guard.source, found[1]] if found and _ROOT.fullmatch(guard.source) else None
    try:
        return _condition(ast.parse(guard.code, mode="eval").body)
    except (SyntaxError, ValueError, LookupError, RecursionError, _NotEditable):
        return None


def inputs_of(capture: Capture) -> list[GuardInput]:
    """The editable inputs with their current values: each local or global that a guard checks.

    {source, name, kind: tensor, size, stride, dtype, requires_grad} (stride None: contiguous), the
    same with kind `array` for a NumPy array, or {source, name, kind: int|float|bool|str, value}.
    Only for the frame that the user called.
    """
    first = entry_guards(capture)
    symbols = {symbol.source: symbol for symbol in capture.symbols}
    found: dict[str, GuardInput] = {}
    for guard in first:
        source = _ARRAY.sub(r"\1", guard.source)
        if _ROOT.fullmatch(source) and source not in found:
            value = _value(condition_of(guard), guard.source, symbols)
            if value is not None:
                kind = {} if source == guard.source else {"kind": "array"}
                known = {"source": source, "name": readable_source(source), **value, **kind}
                found[source] = cast(GuardInput, known)
    return sorted(found.values(), key=lambda each: each["source"].startswith("G"))


def entry_guards(capture: Capture) -> list[Guard]:
    """The guards of the function that was called, in the order in which Dynamo checks them."""
    if not capture.guards:
        return []
    ids = capture.compile_ids or (capture.guards[0].compile_id,)
    own = [guard for guard in capture.guards if guard.compile_id == ids[0]]
    return sorted(own, key=lambda guard: guard.kind == "SHAPE")


def _value(
    condition: Condition | None, source: str, symbols: dict[str, Symbol]
) -> dict[str, Any] | None:
    match condition:
        case ["tensor", _, dtype, requires_grad, sizes, strides]:
            known = [
                _hint(symbols.get(f"{source}.size()[{i}]"), 1) if size is None else size
                for i, size in enumerate(sizes)
            ]
            stride = None if None in strides else strides
            return {"kind": "tensor", "size": known, "stride": stride, "dtype": dtype,
                    "requires_grad": requires_grad}
        case ["type", _, "int" | "float" as kind] if source in symbols:
            number = _hint(symbols[source], 1)
            return {"kind": kind, "value": float(number) if kind == "float" else number}
        case ["compare", ["=="], [["input", name], ["const", value]]] if name == source:
            kind = type(value).__name__
            return {"kind": kind, "value": value} if kind in _EDITABLE else None
    return None


_EDITABLE = ("int", "float", "bool", "str")


def _hint(symbol: Symbol | None, otherwise: int) -> int | float:
    try:
        return ast.literal_eval(symbol.hint) if symbol else otherwise
    except (ValueError, SyntaxError):
        return otherwise


class _NotEditable(Exception):
    """A guard depends on something whose value the page does not know."""


def _condition(tree: ast.expr) -> Condition:
    match tree:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return ["const", value]
        case ast.Subscript(value=ast.Call(func=ast.Attribute(value=tensor, attr="size")),
                           slice=ast.Constant(value=int() as axis)):
            return ["size", _source(tensor), axis]
        case ast.Subscript(value=ast.Call(func=ast.Attribute(value=tensor, attr="stride")),
                           slice=ast.Constant(value=int() as axis)):
            return ["stride", _source(tensor), axis]
        case ast.Subscript():
            return ["input", _source(tree)]
        case ast.Compare(left=left, ops=ops, comparators=others) if _all_known(ops):
            operands = [_condition(each) for each in (left, *others)]
            return ["compare", [_COMPARE[type(op)] for op in ops], operands]
        case ast.BoolOp(op=op, values=values):
            return ["op", _ARITHMETIC[type(op)], [_condition(each) for each in values]]
        case ast.UnaryOp(op=ast.Not() | ast.USub() as op, operand=operand):
            return ["op", _ARITHMETIC[type(op)], [_condition(operand)]]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return ["op", _ARITHMETIC[type(op)], [_condition(left), _condition(right)]]
        case ast.Call():
            return _called(tree)
    raise _NotEditable


def _called(tree: ast.Call) -> Condition:
    match tree:
        case ast.Call(func=ast.Name(id="check_tensor"), args=[tensor, _, _, dtype, *_]):
            return _tensor(tensor, dtype, {k.arg: k.value for k in tree.keywords})
        case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
            return ["op", _FUNCTIONS[name], [_condition(each) for each in args]]
        case ast.Call(func=ast.Name(id=name), args=args) if name in _RELATIONS:
            return ["compare", [_RELATIONS[name]], [_condition(each) for each in args]]
        case ast.Call(func=ast.Attribute(attr="isnan"), args=[value]):
            return ["op", "isnan", [_condition(value)]]
    raise _NotEditable


def _all_known(ops: Iterable[ast.cmpop]) -> bool:
    return all(type(op) in _COMPARE for op in ops)


def _tensor(tensor: ast.expr, dtype: ast.expr, facts: dict[str | None, ast.expr]) -> Condition:
    known = [ast.literal_eval(facts[name]) for name in ("requires_grad", "size", "stride")]
    return ["tensor", _source(tensor), ast.unparse(dtype).removeprefix("torch."), *known]


def _source(tree: ast.expr) -> str:
    text = _ARRAY.sub(r"\1", ast.unparse(tree))
    if not _ROOT.fullmatch(text):
        raise _NotEditable
    return text
