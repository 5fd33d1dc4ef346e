"""Calls of operators that take functions: `torch.cond(pred, true_fn, false_fn, operands)`.

The functions are operators or sub-graphs of ATen operators.  They run in eager mode: the compiler
does not lower them to loops.

Inductor: `ir.Conditional`, `ir.WhileLoop`, which compile the sub-graphs in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from inductor_lab.compiler.torch_door.torch_types import torch

PREFIX = "higher_order."
"""The prefix of the names of these operators in an `ExternCall`."""

KERNELS_OF_OURS = "kernels of ours"
"""The reason of an `ExternCall` that runs generated kernels and not a library."""


class OneKernel(NamedTuple):
    """A call that is a single C++ function with fixed sizes.

    given      the names of its inputs, in the order of the call
    makes      the name of its result
    layout     the sizes and strides of the result
    arguments  the names of the arguments of the function
    function   returns the function; it waits for the compiler
    failed     raises the error for what the function has returned
    """

    given: tuple[str, ...]
    makes: str
    layout: tuple[tuple[int, ...], tuple[int, ...]]
    arguments: tuple[str, ...]
    function: Callable[[], Any]
    failed: Callable[[Any, int], None]


class Written:
    """Generated kernels that replace an operator; their results are in new memory."""

    kernels: tuple[Any, ...]

    def one_kernel(self) -> OneKernel | None:
        """The call as a single C++ function, or None."""
        return None

    def __call__(self, *given: torch.Tensor) -> tuple[Any, ...]:
        raise NotImplementedError

    def ready(self) -> None:
        """Wait until the kernels are compiled; raises the errors of their compiler."""


def written_kernels(callees: Iterable[Any]) -> tuple[Any, ...]:
    """The generated kernels among the functions that are arguments of calls."""
    return tuple(k for called in callees if isinstance(called, Written) for k in called.kernels)


def call_higher_order(
    operator: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The results of `operator(*args, **kwargs)`; none of them shares memory with an argument.

    (A loop with no iterations returns its arguments, so they are copied.)
    """
    if args and isinstance(args[0], Written):
        return args[0](*args[1:])
    with torch.no_grad():
        args = tuple(_detached(a) for a in args)
        kwargs = {name: _detached(value) for name, value in kwargs.items()}
        given = {t.untyped_storage().data_ptr() for t in _tensors((*args, *kwargs.values()))}
        results = operator(*args, **kwargs)
        results = results if isinstance(results, tuple | list) else (results,)
        return tuple(_copied_if_shared(result, given) for result in results)


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, tuple | list):
        return tuple(_detached(item) for item in value)
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, tuple | list):
        return [tensor for item in value for tensor in _tensors(item)]
    return [value] if isinstance(value, torch.Tensor) else []


def _copied_if_shared(result: Any, given: set[int]) -> Any:
    shared = isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() in given
    return result.clone() if shared else result
