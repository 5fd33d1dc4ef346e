"""Save and restore the state that a call may change besides its arguments.

Each run of a stateful function then starts from the same state.

    class Scale:                                kept = Kept.of(scale, (x,), {})
        def __call__(self, x):                  scale(x)            x * 1, and n is 1
            self.n += 1                         kept.put_back()     n is 0
            return x * self.n                   scale(x)            x * 1 once more

The state is everything that the function can reach: modules with their parameters, buffers and
gradients, closures, globals that it names, attributes of objects, lists, dictionaries, sets, arrays
and random generators.  Iterators, files, and attributes of classes and Python modules are excluded.
"""

from __future__ import annotations

import functools
import pickle
import random
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch

from inductor_lab.compiler.capture.span import outside_torch
from inductor_lab.compiler.torch_door.torch_api import pytree

MOST_OBJECTS = 100_000
"""At most this many objects are saved; further reachable objects are not restored."""
ATOMS = (int, float, complex, str, bytes, type(None))
MAPPINGS = (dict, OrderedDict, defaultdict, Counter)
CHANGING = (list, deque, set, *MAPPINGS)
CLOSED = {*sys.stdlib_module_names, "IPython", "ipykernel", "traitlets", "inductor_lab"}
"""Packages whose objects are not searched for state."""
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_REGISTERED = ("_parameters", "_buffers", "_modules")
_MISSING: Any = object()


@dataclass(frozen=True)
class _Globals:
    """The global names of a Python module that a function uses."""

    names: dict[str, Any]
    used: frozenset[str]


@dataclass(frozen=True)
class _Saved:
    """A mutable object and its saved content."""

    name: str
    thing: Any
    content: Any


class Kept:
    """A copy of the state that is reachable from some objects."""

    def __init__(self, roots: Sequence[Any]) -> None:
        self._saved = [_Saved(name, thing, _content(thing)) for name, thing in _reached(roots)]
        self._generators = _generators()

    @staticmethod
    def of(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Kept:
        """The state of a call whose tensor arguments are copies."""
        given = pytree.tree_leaves((tuple(args), dict(kwargs)))
        return Kept([fn, *(leaf for leaf in given if not isinstance(leaf, torch.Tensor))])

    def put_back(self) -> None:
        """Restore all objects that have changed."""
        for saved in self._saved:
            _put_back(saved.thing, saved.content)
        for put, state in self._generators:
            put(state)

    def drew(self) -> bool:
        """Has a random number been drawn since then?"""
        pairs = zip(self._generators, _generators(), strict=False)
        return any(_as_bytes(then) != _as_bytes(now) for (_, then), (_, now) in pairs)

    def written(self) -> Mapping[str, torch.Tensor]:
        """The tensors that have changed, by name."""
        return {
            saved.name.strip("."): saved.thing
            for saved in self._saved
            if isinstance(saved.thing, torch.Tensor)
            and not _same_numbers(saved.thing, saved.content[0])
        }


# ---- reachable objects --------------------------------------------------------------------------


def _reached(roots: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Every reachable mutable object once, with the name under which it was found first."""
    waiting = [("", root) for root in reversed(roots)]
    seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is used twice
    while waiting and len(seen) < MOST_OBJECTS:
        name, thing = waiting.pop()
        if isinstance(thing, ATOMS) or id(thing) in seen:
            continue
        seen[id(thing)] = thing
        kinds = (torch.Generator, np.ndarray, CellType, _Globals)
        if _has_numbers(thing) or isinstance(thing, kinds) or type(thing) in CHANGING:
            yield name, thing
        waiting += reversed([(f"{name}{step}", inner) for step, inner in _inside(thing)])


def tensors_reached(roots: Sequence[Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor that is reachable from some objects, with the path that leads to it."""
    for name, thing in _reached(roots):
        if isinstance(thing, torch.Tensor):
            yield name, thing


def _has_numbers(thing: Any) -> bool:
    is_tensor = isinstance(thing, torch.Tensor)
    return is_tensor and thing.layout is torch.strided and not thing.is_meta


def _inside(thing: Any) -> Iterator[tuple[str, Any]]:
    """The objects that `thing` refers to, each with the path step that leads to it."""
    if isinstance(thing, torch.Tensor):
        if thing.is_leaf:
            yield ".grad", thing.grad
    elif type(thing) in MAPPINGS:
        yield from ((f"[{key!r}]", value) for key, value in list(thing.items()))
    elif type(thing) in CHANGING or type(thing) in (tuple, frozenset):
        yield from ((f"[{place}]", value) for place, value in enumerate(list(thing)))
    elif isinstance(thing, CellType | _Globals):
        content = _content(thing)
        steps = content.items() if isinstance(thing, _Globals) else [("", content)]
        yield from ((f".{name}" * bool(name), value) for name, value in steps)
    elif isinstance(thing, FunctionType):
        yield from _in_function(thing)
    elif isinstance(thing, MethodType):
        yield from (("", thing.__self__), ("", thing.__func__))
    elif isinstance(thing, functools.partial):
        yield from (("", thing.func), ("", thing.args), ("", thing.keywords))
    elif _is_open(thing):
        yield from _in_object(thing)


def _in_function(fn: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables of a function; for a compiled function, the user's function."""
    yield "", getattr(fn, "_torchdynamo_orig_callable", None)
    if not outside_torch(fn.__code__.co_filename):
        return
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        yield f".{name}", cell
    yield from (("", fn.__defaults__), ("", fn.__kwdefaults__), ("", vars(fn)))
    if not _INSTALLED.search(fn.__code__.co_filename) and not _is_closed(fn.__module__):
        yield "", _Globals(fn.__globals__, frozenset(_names(fn.__code__)))


def _names(code: CodeType) -> Iterator[str]:
    """The names that code, and code nested in it, may use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_open(thing: Any) -> bool:
    """Can this object hold state of a model?"""
    if isinstance(thing, torch.nn.Module):
        return True
    has_attributes = hasattr(thing, "__dict__") and not isinstance(thing, type)
    return has_attributes and not _is_closed(type(thing).__module__)


def _is_closed(module: str | None) -> bool:
    name = module or ""
    return name.startswith("torch._") or name.partition(".")[0] in CLOSED


def _in_object(thing: Any) -> Iterator[tuple[str, Any]]:
    attributes = vars(thing)
    if isinstance(thing, torch.nn.Module):
        for registered in _REGISTERED:
            yield from ((f".{name}", inner) for name, inner in attributes[registered].items())
    yield from ((f".{name}", inner) for name, inner in list(attributes.items()))
    yield "", attributes
    for kind in type(thing).__mro__:
        if not (kind.__module__.startswith("torch.") or _is_closed(kind.__module__)):
            yield from ((f".{name}", inner) for name, inner in vars(kind).items())


# ---- save and restore ---------------------------------------------------------------------------


def _content(thing: Any) -> Any:
    """A copy of the object's content in new memory."""
    if isinstance(thing, torch.Tensor):
        values = thing.detach().to("cpu", copy=True)  # a GPU may lack memory for a second copy
        return values, thing.grad if thing.is_leaf else None
    if isinstance(thing, torch.Generator):
        return thing.get_state()
    if isinstance(thing, CellType):
        try:
            return thing.cell_contents
        except ValueError:  # not set yet
            return _MISSING
    if isinstance(thing, _Globals):
        return {name: thing.names[name] for name in thing.used if name in thing.names}
    return thing.copy()


def _put_back(thing: Any, content: Any) -> None:
    if isinstance(thing, torch.Tensor):
        _put_back_tensor(thing, *content)
    elif isinstance(thing, torch.Generator):
        thing.set_state(content)
    elif isinstance(thing, np.ndarray):
        if thing.flags.writeable:
            thing[...] = content
    elif isinstance(thing, CellType):
        if content is not _content(thing):
            thing.cell_contents = content
            if content is _MISSING:
                del thing.cell_contents
    elif isinstance(thing, _Globals):
        now = _content(thing)
        for name in now.keys() - content.keys():
            del thing.names[name]
        thing.names.update((n, v) for n, v in content.items() if v is not now.get(n, _MISSING))
    elif not _same_things(thing, content):
        thing.clear()
        (thing.extend if isinstance(thing, list | deque) else thing.update)(content)


def _put_back_tensor(
    tensor: torch.Tensor, values: torch.Tensor, gradient: torch.Tensor | None
) -> None:
    """Version counters are not enough: batch norm changes its statistics without a new version."""
    if not _same_numbers(tensor, values):
        with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
            if tensor.shape == values.shape:
                tensor.copy_(values)
            else:
                tensor.data = values.to(tensor.device, copy=True)
    if tensor.is_leaf and tensor.grad is not gradient:
        tensor.grad = gradient


def _same_numbers(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.shape != second.shape:
        return False
    second = second.to(first.device)
    return bool(((first == second) | (first.isnan() & second.isnan())).all())


def _same_things(first: Any, second: Any) -> bool:
    """Do two collections contain the same objects at the same positions?"""
    if len(first) != len(second):
        return False
    if isinstance(first, set):
        return not first ^ second
    if isinstance(first, Mapping):
        first, second = ([x for pair in m.items() for x in pair] for m in (first, second))
    return all(one is other for one, other in zip(first, second, strict=True))


def _as_bytes(state: Any) -> bytes:
    """The state of a random generator as bytes; it contains tensors and arrays."""
    leaves = pytree.tree_leaves(state)
    return pickle.dumps([x.numpy() if isinstance(x, torch.Tensor) else x for x in leaves])


def _generators() -> list[tuple[Callable[[Any], Any], Any]]:
    """The random generators of Python, NumPy and torch: a setter and the state of each."""
    found: list[tuple[Callable[[Any], Any], Any]] = [
        (random.setstate, random.getstate()),
        (np.random.set_state, np.random.get_state()),
        (torch.set_rng_state, torch.get_rng_state()),
    ]
    if torch.cuda.is_initialized():
        found.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
    return found
