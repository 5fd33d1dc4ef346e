"""The magics: `%%compile` for a cell, `%compile` for an expression, `%lab_graph`, `%lab_code`,
`%lab_reset`, `%lab_doctor`.

The cell behaves as without the magic, except that compiled functions compute the values.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    line_magic,
    magics_class,
    no_var_expand,
    output_can_be_silenced,
)
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from inductor_lab.api.compilation import Compilation
from inductor_lab.bench.bench_result import BenchResult
from inductor_lab.bench.kernels import Timed, timed
from inductor_lab.compiler.base.display import annotated
from inductor_lab.compiler.base.options import MODES, Options
from inductor_lab.debug.recompiles.watch_recompiles import recompiles
from inductor_lab.notebook.calls import Explorers, Inspected
from inductor_lab.notebook.cell import run_calling
from inductor_lab.notebook.completion import complete_options
from inductor_lab.notebook.variables import compiled_functions_go_first

LAST = "_lab"
"""The notebook's variable for the last compilation."""

MEASURED_SECONDS = 1.0
"""Seconds for which `-b` times the kernels of the compilation."""

ALL = "_lab_all"
"""The variable for the compilations of the last cell, one for each function."""

NOTHING = (
    "%%compile: nothing to compile: the cell's own statements call no module and no function of "
    "yours (calls inside functions, lambdas and threads do not count). "
    "Call one, as in f(torch.randn(8)), or name what to compile: %%compile torch.relu"
)

LAST_BENCH = "_lab_bench"
"""The variable for the last benchmark."""

LAST_BLAME = "_lab_blame"
"""The variable for the last result of `%%compile --blame`."""


Magic = TypeVar("Magic", bound=Callable[..., Any])


def register(shell: Any) -> None:
    """Add the magics to an IPython shell."""
    shell.register_magics(LabMagics)
    for name in ("%compile", "%%compile"):
        shell.set_hook("complete_command", complete_options, str_key=name)
    compiled_functions_go_first(shell)


def decorated(*decorators: Callable[[Any], Any]) -> Callable[[Magic], Magic]:
    """Combine several decorators of IPython and keep the type; the first is the outermost."""

    def decorate(function: Magic) -> Magic:
        made: Any = function
        for decorator in reversed(decorators):
            made = decorator(made)
        found: Magic = made
        return found

    return decorate


ARGUMENTS = (
    argument("-a", "--annotate", action="store_true",
             help="show the source shaded by bytes moved, as %%%%cython -a does by Python calls"),
    argument("-b", "--bench", action="store_true",
             help="compare its time with others, interleaved; the result is kept in _lab_bench"),
    argument("--blame", action="store_true",
             help="report the first wrong stage, value and line, if any; the calls themselves run "
                  "uncompiled, and the last result is kept in _lab_blame"),
    argument("--stock", action="store_true",
             help="with --blame: check stock torch.compile, with --mode and --dynamic"),
    argument("--profile", action="store_true",
             help="show the time of each kernel, of libraries, and of Python"),
    argument("--against", default="eager,inductor",
             help="with -b: what to compare with; stock inductor takes ten seconds to compile"),
    argument("--mode", choices=MODES, default="default", help="the mode, as in torch.compile"),
    argument("--dynamic", action="store_true", help="compile for sizes that may change"),
    argument("--target", help='write code for a named GPU without one: "cuda:90", "hip:gfx942"'),
    argument("--no-fusion", action="store_true", help="make a separate kernel for every loop nest"),
    argument("-r", "--result", metavar="NAME",
             help="also keep the compilation in this variable (it is always in _lab)"),
    argument("arguments", nargs=argparse.REMAINDER,
             help="names of what to compile, such as net or opt.step; or arguments for the last "
                  "function defined in the cell, such as torch.randn(8), 3; of %%compile in a "
                  "line: the expression to run"),
)
"""Of `%%compile` and `%compile`."""


@magics_class
class LabMagics(Magics):
    """All magics of inductor_lab."""

    @decorated(magic_arguments(), *ARGUMENTS, output_can_be_silenced, no_var_expand,
               line_cell_magic("compile"))
    def compile(self, line: str, cell: str | None = None) -> Any:
        """Run the cell, compile the functions that it calls, and show what the compiler did.

        Modules and the user's functions are compiled at their first call, each with its own tab; if
        the line names some, only those.  If a later call recompiles, the timeline of all calls
        follows, as in `lab.recompiles`.  The cell's value is shown as usual.  Examples:

            %%compile
            loss = net(x).pow(2).mean()
            loss.backward()

            %%compile -r c torch.randn(1000)
            def f(x):
                return torch.sin(x) ** 2 + torch.cos(x) ** 2

        A line does the same for one expression:

            %compile --bench f(torch.randn(1000))
        """
        __tracebackhide__ = True
        given = parse_argstring(self.compile, line)
        names = " ".join(given.arguments)
        if cell is None:
            cell, names = names, ""
            if not cell:
                raise UsageError("%compile needs an expression, as in %compile f(x)")
        options = Options.make(
            mode=given.mode,
            dynamic=given.dynamic or None,
            target=given.target,
            fusion=False if given.no_fusion else None,
        )
        if given.target and (given.bench or given.profile):
            raise UsageError("%%compile times code on this machine; leave --target out")
        if given.stock and not given.blame:
            raise UsageError("--stock goes with --blame; lab.inspect(f, x, compiler='stock') "
                             "shows what stock did")  # fmt: skip
        if given.blame:
            compiler = "stock" if given.stock else "inductor_lab"
            return self._blame(cell, options, compiler, names)
        inspected = Inspected(options)
        try:
            with recompiles() as seen:
                ran = run_calling(self.shell, cell, inspected, names)
        except (Exception, KeyboardInterrupt):
            if inspected.failed is not None:
                _display_below(self.shell, inspected.failed)
            raise
        if not inspected.found:
            print(NOTHING)
            return ran
        self._show(given, inspected.found)
        if seen.has_recompiles:
            display(seen)
        return ran

    def _blame(self, cell: str, options: Options, compiler: str, arguments: str) -> Any:
        """Run the cell, and show which stage of its calls is wrong."""
        from inductor_lab.debug.blame.cell import Blamed

        blamed = Blamed(options, compiler)
        ran = run_calling(self.shell, cell, blamed, arguments)
        display(*blamed.found)
        self._names[LAST_BLAME] = blamed.found[-1] if blamed.found else None
        return ran

    def _show(self, given: argparse.Namespace, compiled: tuple[Compilation, ...]) -> None:
        """Display the requested views; views of one compilation show the last one."""
        measured = timed(compiled[-1], MEASURED_SECONDS) if given.bench else None
        found = compiled[-1] if measured is None else measured.compilation
        self._names[LAST] = found
        self._names[ALL] = compiled = (*compiled[:-1], found)
        if given.result:
            self._names[given.result] = found
        if measured is not None:
            result = bench_of(measured, [name for name in given.against.split(",") if name])
            self._names[LAST_BENCH] = result
            display(result)
        if given.profile:
            display(found.profile())
        if given.annotate:
            display(annotated(found))
        elif not (given.bench or given.profile):
            display(Explorers(compiled) if len(compiled) > 1 else found)

    @line_magic
    def lab_graph(self, line: str) -> None:
        """%lab_graph [NAME]: draw the graphs of a compilation (default: the last one)."""
        compilation = self._compilation(line)
        graphs = [part.graph for part in compilation.parts]
        display(*graphs) if graphs else display(compilation.capture)

    @line_magic
    def lab_code(self, line: str) -> None:
        """%lab_code [NAME]: print the generated kernels of a compilation."""
        kernels = [kernel for part in self._compilation(line).parts for kernel in part.kernels]
        print("\n".join(map(str, kernels)) if kernels else "no kernels: only calls of libraries")

    @line_magic
    def lab_reset(self, line: str) -> None:
        """%lab_reset: reset torch.compile and delete the last compilation."""
        torch.compiler.reset()
        for name in (LAST, ALL):
            self._names.pop(name, None)
        importlib.import_module("inductor_lab.compiler.base.display").close_explorers()

    @line_magic
    def lab_doctor(self, line: str) -> None:
        """%lab_doctor: what this machine has for inductor_lab, and what is missing."""
        print(importlib.import_module("inductor_lab.debug.doctor").report())

    @property
    def _names(self) -> dict[str, Any]:
        """The notebook's variables."""
        assert self.shell is not None, "magics are registered with a shell"
        names: dict[str, Any] = self.shell.user_ns
        return names

    def _compilation(self, name: str) -> Compilation:
        wanted = name.strip() or LAST
        value = self._names.get(wanted)
        if isinstance(value, Compilation):
            return value
        raise UsageError(f"{wanted} is not a compilation: "
                         "run a cell under %%compile, or c = lab.inspect(f, x)")


def bench_of(measured: Timed[Compilation], against: list[str]) -> BenchResult:
    """Compare a measured compilation with others, on the same call."""
    from inductor_lab.bench.run import bench

    call = measured.compilation.call
    assert call is not None, "a measured compilation has a call"
    result = bench(
        call.fn,
        *call.args,
        against=against,
        modes=[call.options.mode],
        options=call.options,
        backward=measured.backward,
        kernels=False,
        **call.kwargs,
    )
    return result.with_steps(measured.compilation, measured.limits)


def _display_below(shell: Any, value: Any) -> None:
    """Display a value after the cell has ended, below its traceback."""

    def show(result: Any) -> None:
        shell.events.unregister("post_run_cell", show)
        display(value)

    shell.events.register("post_run_cell", show)
