"""Transforms of torch.func: captured graphs have calls that begin one and calls that end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from inductor_lab.compiler.capture.gradient_levels import level_ends
from inductor_lab.compiler.torch_door.torch_names import optional

transforms_on: Callable[[], int] = optional(
    "torch._C._functorch.get_dynamic_layer_stack_depth", lambda: 0
)
"""How many there are within one another here."""
_undo_to: Callable[[int], object] = optional(
    "torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth", lambda depth: None
)


@contextmanager
def transforms_end() -> Iterator[None]:
    """Those that the block begins end with it, also if it fails."""
    depth = transforms_on()
    with level_ends():
        try:
            yield
        finally:
            _undo_to(depth)
