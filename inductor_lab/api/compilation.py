"""What a user holds after a compile, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.api.arguments import Count, Gpu, Seconds, checked
from inductor_lab.compiler.base.display import annotated, live_widget, mime_bundle, write_report
from inductor_lab.compiler.base.operations import perform
from inductor_lab.compiler.records import Record


@checked
@dataclass(frozen=True, eq=False, repr=False)
class Compilation(Record):
    """One call of one function, compiled and looked into; `Record` says what it holds."""

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
        """Make the inspected call once more, as this one was made but for these changes.

        forbid, force   pairs of buffers, producer first (`[("buf0", "buf3")]`), and if need be the
                        part they stand in (`("buf0", "buf3", "g0.backward")`); a forced pair still
                        must be legal
        fusion_off      names of profit rules that are not asked
        rewrites_off    names of rewrite passes or rules that are left out
        memory_budget   0 to 1: how much may be kept for the backward
        fusion          False: every loop nest is a kernel of its own
        passes_off      names of passes of any level that are left out; ["all"]: the simplest form

        The function runs again, with all it does.  Raises BadOption for unknown names, NotRunnable
        for a compilation that was loaded from a file.  `compare` shows what has changed.
        """
        again: Compilation = perform(
            "recompile", self, forbid=forbid, force=force, fusion_off=fusion_off,
            rewrites_off=rewrites_off, memory_budget=memory_budget, fusion=fusion,
            passes_off=passes_off,
        )  # fmt: skip
        return again

    def again(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function with these arguments: was its code used again, if not, why?

        Raises NotRunnable for a compilation that was loaded from a file.
        """
        return perform("call_again", self, *args, **kwargs)

    def blame(self, *args: Any, limit: Seconds = 60.0, **kwargs: Any) -> Any:
        """Who is wrong in the inspected call, or in a call with these arguments?

        Says which stage, value, line of code and line of the user's is the first that is wrong; or
        how far roundings go.  A compiled function that answers with code that was made for
        something else is told as such.  `limit` is the seconds that the compiled code may take.
        Raises NotRunnable for a compilation that was loaded from a file.
        """
        return perform("blame_again", self, *args, limit=limit, **kwargs)

    def steps(self) -> Any:
        """The inspected call, line by line of its host programs, with every buffer.

        Calls the compiled function once (with its gradient, if it has one) to see what each part is
        given, and steps on copies.  Raises NotRunnable for a compilation that was loaded.
        """
        return perform("steps_of", self)

    def measure(self, seconds: Seconds = 1.0) -> Compilation:
        """This compilation with the time of each of its kernels and library calls.

        Makes the inspected call again for about so many seconds, with its gradient if it has one,
        and times every step where it runs.  The explorer, the annotated source and saved files show
        the times.  Raises NotRunnable for one that was loaded, or compiled for another machine.
        """
        measured: Compilation = perform("measure", self, seconds)
        return measured

    def profile(self, steps: Count = 20) -> Any:
        """Where the time of a call goes: a table of kernels and libraries, and a timeline.

        Makes the inspected call up to `steps` times with a clock around each step, and as often
        without, in turns; slow calls fewer times, so that it ends within some seconds.  Raises
        NotRunnable for one that was loaded, or compiled for another machine.
        """
        return perform("profile", self, steps)

    def ablation(self, seconds: Seconds = 2.0) -> Any:
        """The effect of each pass: the call with one pass after the other left out.

        Compiles the call once for each pass that changed something (`part.passes`), and once with
        none; then all take turns for about so many seconds.  `print` shows the table,
        `rows` are its values.  Raises NotRunnable for one that was loaded, or compiled for another
        machine.
        """
        return perform("ablation", self, seconds)

    def compare(self, other: Compilation) -> Any:
        """This compilation (before) and another one (after): numbers and the code's difference."""
        return perform("Comparison", self, other)

    def annotate(self) -> Any:
        """The source with the bytes that each line moves; a notebook opens a line's own code."""
        return annotated(self)

    def widget(self) -> Any:
        """The explorer as an anywidget, for homes that want one (VS Code, Colab, marimo)."""
        return live_widget(self)

    def _repr_mimebundle_(self, **more: Any) -> dict[str, Any] | None:
        return mime_bundle(self)

    def save(self, path: str | Path) -> Path:
        """Write all data (JSON, no pickle) to `path`; raises CannotWrite."""
        return Path(perform("save", Path(path), self))

    def dump(self, folder: str | Path) -> Path:
        """Write graphs, IR, schedule, decisions and code as files, named as stock names its own.

        `fx_graph_runnable.py` and `output_code.py` of each part run by themselves.  Raises
        CannotWrite.
        """
        return Path(perform("dump", self, folder))

    def trace(self, path: str | Path) -> Path:
        """Write when each phase ran as a Chrome trace, for Perfetto; raises CannotWrite."""
        return Path(perform("write_trace", Path(path), self.name, self.phases))

    def report(
        self, path: str | Path, *, ladder: Gpu | None = None, assembly: bool = False
    ) -> Path:
        """Write one HTML file that opens anywhere and fetches nothing; raises CannotWrite.

        ladder    a GPU such as `"cuda:90"`: every kernel as TTIR, TTGIR, LLVM and PTX for it too
        assembly  the C++ kernels' machine code too (needs objdump)
        """
        return write_report(self, Path(path), ladder, assembly)


@checked
def load(path: str | Path) -> Any:
    """Read what `save` of a `Compilation`, or of one by stock `torch.compile`, wrote.

    Live parts (running code, results) are gone; raises UnreadableFile if the file is not ours, is
    damaged, or was written by a newer version.
    """
    return perform("open_document", Path(path), Compilation)
