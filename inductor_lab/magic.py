"""The magics: `%%compile` for a cell, and `%lab_graph`, `%lab_code`, `%lab_reset`, `%lab_doctor`.

The compiled call keeps its meaning: its value is computed by the compiled function and goes where
it went.
"""

from __future__ import annotations

import argparse
import ast
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from inductor_lab.bench.result import BenchResult
from inductor_lab.compilation import Compilation
from inductor_lab.display import annotated
from inductor_lab.errors import LabError
from inductor_lab.options import MODES, Options
from inductor_lab.so_far import SoFar

CALL = "__lab_call__"
"""The name that stands for the compiled call in a rewritten cell."""

LAST = "_lab"
"""The notebook's variable for the last compilation."""

LAST_BENCH = "_lab_bench"
"""The same for the last benchmark."""


def register(shell: Any) -> None:
    """Add the magics to an IPython shell."""
    shell.register_magics(LabMagics)


@magics_class
class LabMagics(Magics):
    """All magics of inductor_lab."""

    @magic_arguments()
    @argument("-a", "--annotate", action="store_true",
              help="show the source shaded by bytes moved, as %%%%cython -a does by Python calls")
    @argument("-b", "--bench", action="store_true",
              help="time it against others, in turns; the result is kept in _lab_bench")
    @argument("--against", default="eager,inductor",
              help="with -b: whom to compare with; stock inductor takes ten seconds to compile")
    @argument("--mode", choices=MODES, default="default", help="as torch.compile has it")
    @argument("--dynamic", action="store_true", help="compile for sizes that may change")
    @argument("--target", help='write code for a named GPU without one: "cuda:90", "hip:gfx942"')
    @argument("--no-fusion", action="store_true", help="every loop nest is a kernel of its own")
    @argument("-r", "--result", metavar="NAME",
              help="keep the compilation in this variable too (it always is in _lab)")
    @argument("arguments", nargs=argparse.REMAINDER,
              help="arguments for the last function that the cell defines, such as "
                   "torch.randn(8), 3; without them the cell's last statement is the call")
    @cell_magic("compile")
    def compile(self, line: str, cell: str) -> None:
        """Run the cell, compile the call that ends it, and show what the compiler did.

        Before the call come the cell's other statements, as always.  Example:

            %%compile -r c torch.randn(1000)
            def f(x):
                return torch.sin(x) ** 2 + torch.cos(x) ** 2
        """
        __tracebackhide__ = True
        given = parse_argstring(self.compile, line)
        options = Options.make(
            mode=given.mode,
            dynamic=given.dynamic or None,
            target=given.target,
            fusion=False if given.no_fusion else None,
        )
        found = run_cell(self.shell, cell, options, " ".join(given.arguments))
        if found is None:
            print("%%compile: nothing was compiled; end the cell with a call such as f(x)")
            return
        if given.bench:
            if given.target:
                raise UsageError("%%compile -b times code on this machine; leave --target out")
            found = found.measure()
        self.shell.user_ns[LAST] = found
        if given.result:
            self.shell.user_ns[given.result] = found
        if given.bench:
            result = bench_of(found, [name for name in given.against.split(",") if name])
            self.shell.user_ns[LAST_BENCH] = result
            display(result)
        if given.annotate or not given.bench:
            display(annotated(found) if given.annotate else found)

    @line_magic
    def lab_graph(self, line: str) -> None:
        """%lab_graph [NAME]: draw the graphs of a compilation (of the last one without a name)."""
        compilation = self._compilation(line)
        graphs = [part.graph for part in compilation.parts]
        display(*(graphs or [compilation.capture]))

    @line_magic
    def lab_code(self, line: str) -> None:
        """%lab_code [NAME]: print the generated kernels of a compilation."""
        kernels = [kernel for part in self._compilation(line).parts for kernel in part.kernels]
        print("\n".join(map(str, kernels)) if kernels else "no kernels: only calls of libraries")

    @line_magic
    def lab_reset(self, line: str) -> None:
        """%lab_reset: forget all that torch.compile has compiled, and the last compilation."""
        torch.compiler.reset()
        self.shell.user_ns.pop(LAST, None)
        importlib.import_module("inductor_lab.display").close_explorers()

    @line_magic
    def lab_doctor(self, line: str) -> None:
        """%lab_doctor: what this machine has for inductor_lab, and what it lacks."""
        print(importlib.import_module("inductor_lab.doctor").report())

    def _compilation(self, name: str) -> Compilation:
        wanted = name.strip() or LAST
        value = self.shell.user_ns.get(wanted)
        if isinstance(value, Compilation):
            return value
        raise UsageError(f"{wanted} is no compilation: "
                         "run a cell under %%compile, or c = lab.inspect(f, x)")


def bench_of(measured: Compilation, against: list[str]) -> BenchResult:
    """Compare a measured compilation with others, on the same call."""
    from inductor_lab.bench.run import bench

    call = measured.call
    assert call is not None, "only what has just run is measured"
    result = bench(
        call.fn,
        *call.args,
        against=against,
        modes=[call.options.mode],
        options=call.options,
        backward=any(graph.backward is not None for graph in measured.graphs),
        kernels=False,
        **call.kwargs,
    )
    return result.with_steps(measured)


def run_cell(shell: Any, cell: str, options: Options, arguments: str = "") -> Compilation | None:
    """Run a cell with its last call inspected; None if there was no call that can be compiled.

    `arguments` are given to the last function that the cell defines.  Exceptions come through; what
    the compiler had when one of its own was raised is displayed below the traceback.
    """
    __tracebackhide__ = True
    filename = shell.compile.cache(cell, max(shell.execution_count - 1, 1))
    tree = ast.parse(shell.transform_cell(cell), filename)
    if arguments:
        tree.body.append(call_of_last_function(tree, arguments))
    found: list[Compilation] = []
    call = last_call(tree)
    if call is not None:
        call.args.insert(0, call.func)
        call.func = ast.copy_location(ast.Name(CALL, ast.Load()), call.func)
        ast.fix_missing_locations(tree)
    shell.user_ns[CALL] = _inspecting(shell, found, options)
    try:
        exec(compile(tree, filename, "exec"), shell.user_ns)
    finally:
        del shell.user_ns[CALL]
    return found[-1] if found else None


def last_call(tree: ast.Module) -> ast.Call | None:
    """The call that is the last statement, alone (`f(x)`) or assigned (`y = f(x)`)."""
    if not tree.body:
        return None
    last = tree.body[-1]
    value = last.value if isinstance(last, ast.Expr | ast.Assign | ast.AnnAssign) else None
    return value if isinstance(value, ast.Call) else None


def call_of_last_function(tree: ast.Module, arguments: str) -> ast.stmt:
    """`f(arguments)` for the last function that a cell defines; raises UsageError."""
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not names:
        raise UsageError("%%compile with arguments needs a function that the cell defines")
    try:
        call = ast.parse(f"{names[-1]}({arguments})").body[0]
    except SyntaxError as error:
        raise UsageError(f"%%compile: {arguments!r} are no arguments: {error.msg}") from None
    for node in ast.walk(call):
        ast.copy_location(node, tree.body[-1])
    return call


def _inspecting(
    shell: Any, found: list[Compilation], options: Options
) -> Callable[..., Any]:
    """A call that goes through `lab.inspect` and leaves the compilation in `found`."""
    from inductor_lab.backend import inspect

    def call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if not hasattr(fn, "__code__") and not hasattr(fn, "forward"):
            return fn(*args, **kwargs)
        so_far = SoFar()
        try:
            found.append(inspect(fn, *args, options=options, observer=so_far, **kwargs))
        except Exception as error:
            if so_far.failed or any(isinstance(cause, LabError) for cause in _causes(error)):
                _display_below(shell, so_far.give_up(error))
            raise
        return found[-1].result

    return call


def _display_below(shell: Any, value: Any) -> None:
    """Display a value once the cell has ended, below the traceback that ended it."""

    def show(result: Any) -> None:
        shell.events.unregister("post_run_cell", show)
        display(value)

    shell.events.register("post_run_cell", show)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
