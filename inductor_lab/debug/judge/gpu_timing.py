"""Time calls on a GPU: two processes that each share memory of the GPU with the judge.

    candidate   confined; gets its memory when it starts, before its text runs
    reference   confined in the same way; gets the reference as text

Before each sample the judge waits until the GPU is idle.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.candidate import Candidate, candidate_of
from inductor_lab.debug.judge.cases import Arguments
from inductor_lab.debug.judge.cuda_driver import CannotShare
from inductor_lab.debug.judge.remote_call import SERVED, Results
from inductor_lab.debug.judge.speed import CannotTime, OpenSides, Sides, room_of
from inductor_lab.debug.judge.timed_call import Timed
from inductor_lab.debug.judge.timing_memory import DeviceMemory, NotQuiet, Probe, device_bytes
from inductor_lab.debug.judge.tree import Tree
from inductor_lab.debug.untrusted.fresh import Fresh
from inductor_lab.debug.untrusted.remote import Process, Raised, Stopped

Start = Callable[[Fresh, dict[str, Any], int], Process]
"""Starts a process from a server, with a candidate as data and the file of its memory."""
LEFT = 600.0
"""The trusted process is started anew if it has fewer seconds left."""


@dataclass
class GpuTiming:
    """The memory of the candidate, made before its process starts, and the reference as text."""

    text: Candidate
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
        try:
            text = candidate_of(reference.function)
        except BadArguments as refused:
            raise CannotTime(f"not timed: the reference has no text: {refused.what}") from None
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
            return GpuTiming(text, *DeviceMemory.made(room, probe), probe)
        except (CannotShare, NotQuiet) as refused:
            raise CannotTime(f"not timed: {refused}") from None

    def close(self) -> None:
        """Free the memory."""
        os.close(self.file)
        self.memory.close()

    def sides(self, process: Process, tree: Tree, trusted: TrustedProcess) -> OpenSides:
        """What is timed, for the candidate's process.  Opening it raises CannotTime."""

        @contextmanager
        def opened(
            reference: Applied, args: Arguments, results: Results
        ) -> Iterator[Sides | None]:
            try:
                base = trusted.with_memory(self.text, self.memory.nbytes, self.probe)
            except CannotShare as refused:
                raise CannotTime(f"not timed: {refused}") from None
            yield Sides(Timed(self.memory, process, tree), base)

        return opened


class TrustedProcess:
    """The process of a reference, kept from one candidate to the next.

    server  makes a server whose processes are not those of candidates
    """

    def __init__(self, server: Callable[[], Fresh], start: Start) -> None:
        self.make_server, self.start = server, start
        self.server: Fresh | None = None
        self.side: Timed | None = None
        self.text: Candidate | None = None

    def with_memory(self, text: Candidate, nbytes: int, probe: Probe) -> Timed:
        """The process of this text, with at least this much memory.

        Raises CannotTime and CannotShare.
        """
        side = self.side
        if side is not None and self.text == text and side.memory.nbytes >= nbytes \
                and side.process.deadline > time.monotonic() + LEFT:  # fmt: skip
            return side
        self._end()
        self.server = self.server or self.make_server()
        memory, file = DeviceMemory.made(nbytes, probe)
        shared = {"candidate": text.as_data(), "memory": memory.nbytes}
        process = self.start(self.server, shared, file)
        os.close(file)
        try:
            process.begin()
            refused = process.run(f"{SERVED}:refusal")
        except (Raised, Stopped) as failed:
            refused = str(failed)
        if refused:
            process.close()
            memory.close()
            raise CannotTime(f"not timed: the process of the reference cannot start: {refused}")
        self.text = text
        self.side = Timed(memory, process, Tree(self.server.server.pid, keepers=True))
        return self.side

    def _end(self) -> None:
        if self.side is not None:
            self.side.process.close()
            self.side.memory.close()
            self.side = None

    def close(self) -> None:
        """End the process and its server."""
        self._end()
        if self.server is not None:
            self.server.close()
