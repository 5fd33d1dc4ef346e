"""What each bytecode instruction does to the stack, in Python 3.11 to 3.13.

`python -m dis file.py` shows a file's instructions; Python's manual explains them (`dis`).
"""

from __future__ import annotations

import builtins
import operator
import sys
import types
from collections.abc import Callable
from dis import Instruction
from typing import Any

import torch

from inductor_lab.course.dynamo.interpreter import BINARY, HANDLERS, Handler, Interpreter
from inductor_lab.course.dynamo.values import NULL, Break, Loop, Method, Traced

FACTS = {"shape", "dtype", "ndim"}
VIEWS = {"T", "mT", "real", "imag"}
OPEN_MODULES = ("torch", "math", "operator")
"""Modules whose attributes are taken to stay as they are."""


def instruction(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


NOTHING = ("RESUME", "NOP", "CACHE", "PRECALL", "COPY_FREE_VARS", "END_FOR", "NOT_TAKEN")
HANDLERS.update(dict.fromkeys(NOTHING, lambda frame, at: None))
HANDLERS.update({
    "LOAD_CONST": lambda frame, at: frame.push(at.argval),
    "PUSH_NULL": lambda frame, at: frame.push(NULL),
    "POP_TOP": lambda frame, at: frame.stack.pop(),
    "COPY": lambda frame, at: frame.push(frame.stack[-at.argval]),
    "KW_NAMES": lambda frame, at: setattr(frame, "keywords", frame.code.co_consts[at.arg or 0]),
})  # fmt: skip


# ---- names -----------------------------------------------------------------------------------


@instruction("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST")
def load_fast(frame: Interpreter, at: Instruction) -> None:
    for name in _names(at):
        if name not in frame.locals:
            raise UnboundLocalError(f"cannot access local variable '{name}'")
        frame.push(frame.local(name))


@instruction("STORE_FAST", "STORE_FAST_STORE_FAST")
def store_fast(frame: Interpreter, at: Instruction) -> None:
    for name in _names(at):
        (frame.locals[name],) = frame.pop(1)


@instruction("STORE_FAST_LOAD_FAST")
def store_then_load(frame: Interpreter, at: Instruction) -> None:
    (frame.locals[at.argval[0]],) = frame.pop(1)
    frame.push(frame.local(at.argval[1]))


@instruction("LOAD_GLOBAL")
def load_global(frame: Interpreter, at: Instruction) -> None:
    """A global or a builtin; if the lowest bit of its argument is set, also a NULL for a call."""
    known, name = frame.function.__globals__, at.argval
    if name in known:
        value = known[name]
        if frame.inputs is not None:
            value = frame.inputs.wrapped(value, f"G[{name!r}]", name)
    elif hasattr(builtins, name):
        value = getattr(builtins, name)
        if frame.inputs is not None:
            frame.inputs.guards.add(f"{name!r} not in G")
    else:
        raise NameError(f"name '{name}' is not defined")
    _with_null(frame, value, bool(at.arg and at.arg & 1))


@instruction("LOAD_ATTR", "LOAD_METHOD")
def load_attr(frame: Interpreter, at: Instruction) -> None:
    (owner,) = frame.pop(1)
    lowest = sys.version_info >= (3, 12) and bool(at.arg and at.arg & 1)
    method = at.opname == "LOAD_METHOD" or lowest
    _with_null(frame, _attribute(frame, owner, at.argval), method)


def _attribute(frame: Interpreter, owner: Any, name: str) -> Any:
    if frame.real:
        return getattr(owner, name)
    if isinstance(owner, Traced):
        if name in FACTS:
            return getattr(owner.like, name)
        if name in VIEWS:
            return frame.write("call_function", getattr, getattr, (owner, name), {})
        if callable(getattr(torch.Tensor, name, None)):
            return Method(owner, name)
        raise Break(f"the attribute {name} of a tensor")
    if isinstance(owner, types.ModuleType) and owner.__name__.split(".")[0] in OPEN_MODULES:
        return getattr(owner, name)
    raise Break(f"the attribute {name} of a {type(owner).__name__}")


def _with_null(frame: Interpreter, value: Any, null: bool) -> None:
    first = sys.version_info < (3, 13)
    frame.push(*((NULL, value) if first else (value, NULL)) if null else (value,))


def _names(at: Instruction) -> tuple[str, ...]:
    return at.argval if isinstance(at.argval, tuple) else (at.argval,)


# ---- the stack -------------------------------------------------------------------------------


@instruction("SWAP")
def swap(frame: Interpreter, at: Instruction) -> None:
    stack, other = frame.stack, -at.argval
    stack[-1], stack[other] = stack[other], stack[-1]


# ---- operations ------------------------------------------------------------------------------


@instruction("BINARY_OP", "COMPARE_OP")
def binary(frame: Interpreter, at: Instruction) -> None:
    symbol = at.argrepr if at.opname == "BINARY_OP" else at.argval
    symbol = symbol.removeprefix("bool(").removesuffix(")")  # Python 3.13
    frame.push(frame.apply(BINARY[symbol], *frame.pop(2)))


@instruction("BINARY_SUBSCR", "BINARY_SLICE")
def subscript(frame: Interpreter, at: Instruction) -> None:
    owner, *keys = frame.pop(2 if at.opname == "BINARY_SUBSCR" else 3)
    key = keys[0] if len(keys) == 1 else slice(*keys)
    if isinstance(owner, list | tuple) and isinstance(key, int | slice):
        frame.push(owner[key])
    else:
        frame.push(frame.apply(operator.getitem, owner, key))


@instruction("UNARY_NEGATIVE", "UNARY_INVERT")
def unary(frame: Interpreter, at: Instruction) -> None:
    how = operator.neg if at.opname == "UNARY_NEGATIVE" else operator.invert
    frame.push(frame.apply(how, *frame.pop(1)))


@instruction("UNARY_NOT", "TO_BOOL")
def truth(frame: Interpreter, at: Instruction) -> None:
    (value,) = frame.pop(1)
    found = _truth(value)
    frame.push(not found if at.opname == "UNARY_NOT" else found)


@instruction("BUILD_TUPLE", "BUILD_LIST", "BUILD_SLICE")
def build(frame: Interpreter, at: Instruction) -> None:
    parts = frame.pop(at.argval)
    made: dict[str, Any] = {
        "BUILD_TUPLE": tuple,
        "BUILD_LIST": list,
        "BUILD_SLICE": lambda p: slice(*p),
    }
    frame.push(made[at.opname](parts))


@instruction("UNPACK_SEQUENCE")
def unpack_sequence(frame: Interpreter, at: Instruction) -> None:
    (items,) = frame.pop(1)
    if isinstance(items, Traced):
        raise Break("a tensor is taken apart")
    values = list(items)
    if len(values) != at.argval:
        raise ValueError(f"{at.argval} values to unpack were expected, there are {len(values)}")
    frame.push(*reversed(values))


@instruction("CALL", "CALL_KW")
def call(frame: Interpreter, at: Instruction) -> None:
    """[NULL, function, *arguments] or, from Python 3.13, [function, NULL, *arguments]."""
    names, frame.keywords = frame.keywords, ()
    if at.opname == "CALL_KW":
        (names,) = frame.pop(1)
    one, other, *args = frame.pop(at.argval + 2)
    function = other if one is NULL else one
    if one is not NULL and other is not NULL:  # a method and its owner
        args = [other, *args]
    place = len(args) - len(names)
    frame.push(frame.call(function, args[:place], dict(zip(names, args[place:], strict=True))))


# ---- the way -----------------------------------------------------------------------------------


@instruction("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def jump(frame: Interpreter, at: Instruction) -> None:
    frame.place = frame.at[at.argval]


@instruction(*(f"POP_JUMP_{way}IF_{when}" for way in ("", "FORWARD_", "BACKWARD_")
               for when in ("TRUE", "FALSE", "NONE", "NOT_NONE")))  # fmt: skip
def pop_jump(frame: Interpreter, at: Instruction) -> None:
    (value,) = frame.pop(1)
    when = at.opname.partition("IF_")[2]
    holds = value is None if when.endswith("NONE") else _truth(value)
    if holds != (when in ("FALSE", "NOT_NONE")):
        frame.place = frame.at[at.argval]


def _truth(value: Any) -> bool:
    if isinstance(value, Traced):
        raise Break("the branch depends on the data of a tensor")
    return bool(value)


@instruction("GET_ITER")
def get_iter(frame: Interpreter, at: Instruction) -> None:
    (items,) = frame.pop(1)
    if isinstance(items, list | tuple | range):
        frame.push(Loop(items if isinstance(items, range) else tuple(items)))
    elif frame.real:
        frame.push(items if isinstance(items, Loop) else iter(items))
    else:
        raise Break(f"a loop over a {type(items).__name__}")


@instruction("FOR_ITER")
def for_iter(frame: Interpreter, at: Instruction) -> None:
    """The next item; at the end the loop goes from the stack, and so do instructions that
    Python 3.12 and 3.13 have there for it."""
    (loop,) = frame.pop(1)
    if isinstance(loop, Loop):
        over = loop.taken == len(loop.items)
        if not over:
            frame.push(Loop(loop.items, loop.taken + 1), loop.items[loop.taken])
    else:
        item = next(loop, NULL)
        over = item is NULL
        if not over:
            frame.push(loop, item)
    if over:
        frame.place = frame.at[at.argval]
        if frame.instructions[frame.place].opname == "END_FOR":
            frame.place += 2 if sys.version_info >= (3, 13) else 1


@instruction("RETURN_VALUE", "RETURN_CONST")
def return_value(frame: Interpreter, at: Instruction) -> None:
    frame.returned = at.argval if at.opname == "RETURN_CONST" else frame.pop(1)[0]
