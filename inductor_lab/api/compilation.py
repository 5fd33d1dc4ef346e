"""`Compilation`: the result of `lab.inspect`, with its methods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.api.arguments import Count, Gpu, Seconds, checked
from inductor_lab.compiler.base.display import (
    HasWidget,
    annotated,
    live_widget,
    mime_bundle,
    write_report,
)
from inductor_lab.compiler.base.operations import perform
from inductor_lab.compiler.records import Record


@checked
@dataclass(frozen=True, eq=False, repr=False)
class Compilation(Record, HasWidget):
    """One inspected call of a function; `Record` lists its fields."""

    def what_if(
        self,
        *,
        forbid: Iterable[tuple[str, ...]] = (),
        force: Iterable[tuple[str, ...]] = (),
        fusion_off: Iterable[str] = (),
        rewrites_off: Iterable[str] = (),
        memory_budget: float | None = None,
        fusion: bool | None = None,
        passes_off: Iterable[str] = (),
    ) -> Compilation:
        """Compile and run the inspected call again, with these changes.

        forbid, force   pairs of buffers, producer first (`[("buf0", "buf3")]`), optionally with
                        their part (`("buf0", "buf3", "g0.backward")`); a forced pair must still
                        be legal
        fusion_off      names of profit rules to disable
        rewrites_off    names of rewrite passes or rules to disable
        memory_budget   0 to 1: how much memory may be saved for the backward
        fusion          False: every loop nest is a kernel of its own
        passes_off      names of passes of any level to disable; ["all"]: the simplest form

        The function runs again, with its side effects.  Raises BadOption for unknown names,
        NotRunnable for a compilation that was loaded from a file.  `compare` shows the difference.
        """
        again: Compilation = perform(
            "recompile", self, forbid=forbid, force=force, fusion_off=fusion_off,
            rewrites_off=rewrites_off, memory_budget=memory_budget, fusion=fusion,
            passes_off=passes_off,
        )  # fmt: skip
        return again

    def again(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function with these arguments: was its code reused?  If not, why?

        Raises NotRunnable for a compilation that was loaded from a file.
        """
        return perform("call_again", self, *args, **kwargs)

    def blame(self, *args: Any, limit: Seconds = 60.0, **kwargs: Any) -> Any:
        """Find the first wrong stage of the inspected call, or of a call with these arguments.

        Reports the first wrong stage, value, generated line and source line; or the size of
        rounding errors.  Also reports a call that used code compiled for other conditions (a stale
        guard).  `limit` is the time limit of compiled code in seconds.
        Raises NotRunnable for a compilation that was loaded from a file.
        """
        return perform("blame_again", self, *args, limit=limit, **kwargs)

    def why_not_fused(
        self, first: str | int | None = None, second: str | int | None = None, *,
        part: str | None = None,
    ) -> Any:  # fmt: skip
        """Are two values computed by one kernel?  If not, which rules prevent it, and what would
        have to change?

        first, second   a buffer (`"buf0"`), an FX node (`"exp"`), each optionally with its part
                        (`"g0.backward.buf0"`), or a source line (`12`, `"model.py:12"`); without
                        them: all pairs that were considered and not fused
        part            only this part, such as `"g0.forward"`

        Raises UnknownName for a name or a line that nothing is computed for.
        """
        return perform("why_not_fused", self, first, second, part=part)

    def cuda_graphs(self, *, require: bool = False) -> Any:
        """Which parts are replayed as CUDA graphs, and the reason for each part that is not.

        With `require`, raises NotReplayed if a part is not replayed.
        """
        return perform("cuda_graphs", self, require=require)

    def steps(self) -> Any:
        """Step through the host programs of the inspected call, with every buffer.

        Calls the compiled function once (with its gradient, if it has one) to record the inputs of
        each part, and steps on copies.  Raises NotRunnable for a compilation that was loaded.
        """
        return perform("steps_of", self)

    def measure(self, seconds: Seconds = 1.0) -> Compilation:
        """This compilation with the time of each of its kernels and library calls.

        Repeats the inspected call for about this many seconds, with its gradient if it has one,
        and times every step.  The explorer, the annotated source and saved files show
        the times.  Raises NotRunnable for one that was loaded, or compiled for another machine.
        """
        measured: Compilation = perform("measure", self, seconds)
        return measured

    def profile(self, steps: Count = 20) -> Any:
        """Where the time of a call goes: a table of kernels and libraries, and a timeline.

        Makes the inspected call up to `steps` times with a timer around each step, and as often
        without timers, interleaved.  Slow calls are made fewer times.  Raises
        NotRunnable for one that was loaded, or compiled for another machine.
        """
        return perform("profile", self, steps)

    def ablation(self, seconds: Seconds = 2.0) -> Any:
        """Measure the effect of each pass: the call without one pass at a time.

        Compiles the call once for each pass that changed something (`part.passes`), and once
        without passes; then times all, interleaved, for about this many seconds.  `print` shows the
        table, `rows` are its values.  Raises NotRunnable for one that was loaded, or compiled for
        another machine.
        """
        return perform("ablation", self, seconds)

    def compare(self, other: Compilation) -> Any:
        """Compare this compilation (before) with another one (after): numbers and a code diff."""
        return perform("Comparison", self, other)

    def annotate(self) -> Any:
        """The source with the bytes that each line moves; in a notebook, a line opens its code."""
        return annotated(self)

    def widget(self) -> Any:
        """The explorer as an anywidget: programs read and set what it shows (docs/notebooks.md)."""
        return live_widget(self)

    def _repr_mimebundle_(self, **more: Any) -> dict[str, Any] | None:
        return mime_bundle(self)

    def save(self, path: str | Path) -> Path:
        """Write all data (JSON, no pickle) to `path`; raises CannotWrite."""
        return Path(perform("save", Path(path), self))

    def dump(self, folder: str | Path) -> Path:
        """Write graphs, IR, schedule, decisions and code as files, with the names that stock uses.

        `fx_graph_runnable.py` and `output_code.py` of each part are programs.  Raises
        CannotWrite.
        """
        return Path(perform("dump", self, folder))

    def trace(self, path: str | Path) -> Path:
        """Write the times of all phases as a Chrome trace, for Perfetto; raises CannotWrite."""
        return Path(perform("write_trace", Path(path), self.name, self.phases))

    def report(
        self, path: str | Path, *, ladder: Gpu | None = None, assembly: bool = False
    ) -> Path:
        """Write one HTML file that needs no network; raises CannotWrite.

        ladder    a GPU such as `"cuda:90"`: every kernel as TTIR, TTGIR, LLVM and PTX for it too
        assembly  the C++ kernels' machine code too (needs objdump)
        """
        return write_report(self, Path(path), ladder, assembly)


@checked
def load(path: str | Path) -> Any:
    """Read a file that `save` of a `Compilation` or `StockCompilation` wrote.

    Running code and results are not in the file.  Raises UnreadableFile if the file has another
    format, is damaged, or was written by a newer version.
    """
    return perform("open_document", Path(path), Compilation)
