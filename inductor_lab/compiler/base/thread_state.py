"""Copies the user's torch settings to another thread.

torch keeps some settings for each thread: overrides of its configuration (dynamo, inductor,
functorch), gradients, autocast, the default device, the number of threads.  Work for the user in a
new thread must run with the user's settings.  Other settings (default dtype, deterministic
algorithms, precision of products) belong to the process.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TypeVar

from inductor_lab.compiler.torch_door.torch_types import torch

T = TypeVar("T")
CASTING = ("cpu", "cuda")
"""Device types that have autocast."""


@dataclass(frozen=True)
class ThreadState:
    """The settings of the thread that calls `now`, for one `run` in another thread (see `copy`).

    context    torch's overrides of its configuration, and other context variables
    autocasts  for each device type: whether autocast is enabled, and its dtype
    """

    context: contextvars.Context
    gradients: bool
    inference: bool
    autocasts: tuple[tuple[str, bool, torch.dtype], ...]
    keeps_casts: bool
    device: torch.device
    threads: int

    @classmethod
    def now(cls) -> ThreadState:
        """The settings of the current thread."""
        casts = ((k, torch.is_autocast_enabled(k), torch.get_autocast_dtype(k)) for k in CASTING)
        return cls(
            context=contextvars.copy_context(),
            gradients=torch.is_grad_enabled(),
            inference=torch.is_inference_mode_enabled(),
            autocasts=tuple(casts),
            keeps_casts=torch.is_autocast_cache_enabled(),
            device=torch.get_default_device(),
            threads=torch.get_num_threads(),
        )

    def copy(self) -> ThreadState:
        """The same settings, for one more `run`."""
        return replace(self, context=self.context.copy())

    def run(self, work: Callable[[], T]) -> T:
        """Run `work` with these settings; all except the number of threads are restored
        afterwards."""
        return self.context.run(self._run, work)

    def _run(self, work: Callable[[], T]) -> T:
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.gradients))
            for kind, enabled, dtype in self.autocasts:
                if enabled:
                    stack.enter_context(
                        torch.autocast(kind, dtype, cache_enabled=self.keeps_casts)
                    )
            if self.device != torch.get_default_device():
                stack.enter_context(self.device)
            return work()


def start_autograd() -> None:
    """Let autograd start its threads before the first compile, if torch is built for CUDA and there
    is no GPU.

    A capture gives such a torch a device guard for GPUs that do not exist.  If autograd starts
    later, it has a thread for each of them, and then forks of this process cannot run a backward.
    """
    if torch.backends.cuda.is_built() and not torch.cuda.is_available():
        small_backward()


def small_backward() -> None:
    """The smallest backward; raises RuntimeError in a fork where none can run."""
    with torch.inference_mode(False), torch.enable_grad():
        torch.ones((), device="cpu", requires_grad=True).sin().backward()
