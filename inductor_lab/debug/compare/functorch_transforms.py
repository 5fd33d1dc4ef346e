"""Transforms of torch.func: a captured graph contains calls that enter and exit a transform."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from inductor_lab.compiler.capture.gradient_levels import level_ends
from inductor_lab.compiler.torch_door.torch_names import optional

transforms_on: Callable[[], int] = optional(
    "torch._C._functorch.get_dynamic_layer_stack_depth", lambda: 0
)
"""The current nesting depth of transforms."""
_undo_to: Callable[[int], object] = optional(
    "torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth", lambda depth: None
)


@contextmanager
def transforms_end() -> Iterator[None]:
    """Exit the transforms that were entered in the block, also after an exception."""
    depth = transforms_on()
    with level_ends():
        try:
            yield
        finally:
            _undo_to(depth)
