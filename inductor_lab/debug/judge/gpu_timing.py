"""Time calls on a GPU: three processes that each share memory of the GPU with the judge.

    candidate   confined; gets its memory when it starts, before its text runs
    nothing     confined in the same way, but runs only code of ours: what the messages cost
    reference   runs in this process, on memory of its own

Before each sample the judge waits until the GPU is idle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.candidate import Candidate
from inductor_lab.debug.judge.cases import Arguments
from inductor_lab.debug.judge.cuda_driver import CannotShare
from inductor_lab.debug.judge.remote_call import SERVED, Results
from inductor_lab.debug.judge.speed import OpenSides, Sides, room_of
from inductor_lab.debug.judge.timed_call import TimedHere, TimedProcess
from inductor_lab.debug.judge.timing_memory import DeviceMemory, NotQuiet, Probe, device_bytes
from inductor_lab.debug.judge.tree import Tree
from inductor_lab.debug.untrusted.fresh import Fresh
from inductor_lab.debug.untrusted.remote import Process, Raised, Stopped

Start = Callable[[Fresh, dict[str, Any], int], Process]
"""Starts a process from a server, with a candidate as data and the file of its memory."""
EMPTY = Candidate("def candidate():\n    pass\n")


class CannotTime(LabError):
    """Calls cannot be timed here; the results can be judged all the same."""


@dataclass
class GpuTiming:
    """The memory of the candidate, made before its process starts."""

    memory: DeviceMemory
    file: int
    probe: Probe

    @staticmethod
    def of(reference: Applied, args: Arguments) -> GpuTiming:
        """For timing these calls.  Raises CannotTime."""
        tensors = [one for one in pytree.tree_leaves(args) if isinstance(one, torch.Tensor)]
        current = torch.device("cuda", torch.cuda.current_device())
        if current.index or any(one.device != current for one in tensors):
            raise CannotTime("not timed: some arguments are not on the first GPU")
        if reference.gradients is not None:
            raise CannotTime("not timed: gradients are only timed on the CPU")
        copied = pytree.tree_map_only(torch.Tensor, torch.clone, args)
        found = [one for one in pytree.tree_leaves(reference(*copied))
                 if isinstance(one, torch.Tensor)]  # fmt: skip
        results = [(tuple(one.shape), one.dtype) for one in found]
        room = room_of(args, results, DeviceMemory, device_bytes())
        if not room or any(one.device != current for one in found):
            what = "a call moves too many bytes" if not room else "a result is not on the GPU"
            raise CannotTime(f"not timed: {what}")
        try:
            probe = Probe()
            return GpuTiming(*DeviceMemory.made(room, probe), probe)
        except (CannotShare, NotQuiet) as refused:
            raise CannotTime(f"not timed: {refused}") from None

    def close(self) -> None:
        """Free the memory."""
        os.close(self.file)
        self.memory.close()

    def sides(self, process: Process, tree: Tree, second: Fresh, start: Start) -> OpenSides:
        """What is timed, for the candidate's process.  Opening it raises CannotTime."""

        @contextmanager
        def opened(
            reference: Applied, args: Arguments, results: Results
        ) -> Iterator[Sides | None]:
            with ExitStack() as stack:
                try:
                    nothing = self._nothing(second, start, stack)
                    base, file = DeviceMemory.made(self.memory.nbytes, self.probe)
                except CannotShare as refused:
                    raise CannotTime(f"not timed: {refused}") from None
                os.close(file)
                stack.callback(base.close)
                mine = TimedProcess(self.memory, process, tree)
                yield Sides(mine, TimedHere(base, reference.function), nothing)

        return opened

    def _nothing(self, second: Fresh, start: Start, stack: ExitStack) -> TimedProcess:
        """The trusted process.  Raises CannotTime and CannotShare."""
        memory, file = DeviceMemory.made(self.memory.nbytes, self.probe)
        stack.callback(memory.close)
        try:
            shared = {"candidate": EMPTY.as_data(), "memory": memory.nbytes}
            process = stack.enter_context(start(second, shared, file))
        finally:
            os.close(file)
        try:
            process.begin()
            refused = process.run(f"{SERVED}:refusal")
        except (Raised, Stopped) as failed:
            refused = str(failed)
        if refused:
            what = f"not timed: a process here cannot share memory of the GPU: {refused}"
            raise CannotTime(what)
        return TimedProcess(memory, process, Tree(second.server.pid, keepers=True))
