"""Write `left_out.toml` anew from measured times: `python -m tests.runner.choose [RECORD ...]`.

`make check` writes the records that it reads (build/records/*.json).  For each test function there
is a limit for the sum of its cases.  Of a parametrized test above it, `make test` takes one case in
so many, such that as many different parameter values as possible take part.  All limits are scaled
such that `make test` takes a fixed share (`SHARE`) of the time of all tests, on any machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.runner.parts import LEFT_OUT, ROOT, LeftOut, is_under
from tests.runner.record import Record

COMPILER = tuple(
    f"tests/{name}"
    for name in (
        "accelerate", "autograd", "capture", "codegen", "end_to_end", "ir", "lower", "models",
        "opinfo", "programs", "rewrite", "runtime", "schedule", "semantics",
    )
)  # fmt: skip
"""A wrong answer is the worst bug: these tests get more time than those of the tools."""

SHARE = 0.17
"""Of the time that all tests take.  10 minutes of the 60 that `make check` may take."""

CASES = {True: 3.0, False: 1.5}
"""The limit for all cases of a test function, of the compiler and of a tool, before scaling."""

ONE = {True: 5.0, False: 2.5}
"""The limit for a single case, before scaling: a test above it is left out."""

NEVER = {
    "tests/browser": "Chromium and JupyterLab",
    "tests/codegen/test_other_systems.py": "compiles with zig",
    "tests/course/test_hub.py": "a JupyterHub",
    "tests/course/test_nbgrader.py": "nbgrader's commands",
    "tests/course/test_site.py": "builds the site",
    "tests/debug/test_rank_diff.py": "its fixtures start process groups",
    "tests/distributed/test_training.py": "its fixtures train with two and four processes",
    "tests/end_to_end/test_missing_names.py": "its fixture compiles in a process for each name",
    "tests/end_to_end/test_override.py::test_each_run_has_the_results_of_its_own_compiler":
        "eight processes",
    "tests/end_to_end/test_warm_start.py": "its fixture compiles in five processes",
    "tests/notebooks/test_nbconvert.py": "starts nbconvert",
    "tests/project/test_javascript.py": "node",
    "tests/stock/test_compare.py": "its fixture compiles with stock TorchInductor",
    "tests/stock/test_trace_log.py": "its fixture records a log of stock TorchInductor",
    "tests/wheel": "builds and installs packages",
    "tests/widgets/test_agreement.py": "its fixtures inspect nine programs",
}
"""Whole folders, files and tests, with the reason.  The time of a module's fixture is in whichever
test comes first, so the times of the others do not show it."""

MORE = {
    "tests/codegen/test_cpp.py::test_agrees_with_eager": 14.0,
    "tests/codegen/test_cpp.py::test_agrees_with_eager_for_symbolic_sizes": 6.0,
    "tests/codegen/test_short_rows.py::test_rows_of_few_elements": 20.0,
    "tests/codegen/test_tree.py::test_a_tree_agrees_with_eager_mode": 12.0,
    "tests/codegen/test_triton.py::test_interpreted_kernels_agree_with_eager": 6.0,
    "tests/end_to_end/test_scans.py::test_every_stage": 6.0,
    "tests/end_to_end/test_scatters.py::test_every_stage": 6.0,
    "tests/end_to_end/test_stages.py::test_gradients": 8.0,
    "tests/end_to_end/test_stages.py::test_small_function": 12.0,
    "tests/lower/test_operators.py::test_one_operand": 12.0,
    "tests/opinfo/test_sample.py::test_float32": 20.0,
    "tests/semantics/test_dynamic.py::test_all_sizes": 10.0,
    "tests/semantics/test_dynamic.py::test_gradients": 8.0,
    "tests/semantics/test_flex_attention.py::test_errors_are_as_small_as_those_of_eager_mode": 15.0,
    "tests/semantics/test_mutation.py::test_results_equal_eager_mode": 8.0,
}
"""Limits of their own for tests that compare many programs with eager: they notice most."""


def measured(records: Sequence[Path]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for path in records:
        seconds.update(Record.load(path).seconds)
    return seconds


def collected() -> list[str]:
    """The node ids of all tests, in pytest's order."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if line.startswith("tests/") and "::" in line]


def choose(
    names: Sequence[str], seconds: Mapping[str, float], scale: float = 1.0
) -> LeftOut:
    """What `make test` leaves out under the limits times `scale`."""
    whole, one_in = set(NEVER), {}
    cases = defaultdict(list)
    for name in names:
        cases[name.partition("[")[0]].append(name)
    for function, found in cases.items():
        file = function.partition("::")[0]
        times = [seconds.get(name, 0.0) for name in found]
        core = is_under(file, COMPILER)
        limit = scale * MORE.get(function, CASES[core])
        if function in NEVER or is_under(file, NEVER) or sum(times) <= limit:
            continue
        if min(times) > scale * ONE[core]:
            whole.add(function)
        elif len(found) > 1:
            one_in[function] = step(found, times, limit)
    kept = {function: every for function, every in one_in.items() if every > 1}
    return LeftOut(frozenset(whole), kept)


def fit(names: Sequence[str], seconds: Mapping[str, float], share: float = SHARE) -> LeftOut:
    """The choice with the largest limits such that the kept tests take at most `share`."""
    most = share * sum(seconds.get(name, 0.0) for name in names)
    scales = [2 ** (k / 8) for k in range(-80, 81)]

    def fits(scale: float) -> bool:
        quick, _ = choose(names, seconds, scale).split(names)
        return sum(seconds.get(name, 0.0) for name in quick) <= most

    return choose(names, seconds, max(filter(fits, scales), default=scales[0]))


def step(names: Sequence[str], times: Sequence[float], limit: float) -> int:
    """The step from one kept case to the next: short enough, and with most parameter values."""
    short = [k for k in range(1, len(names) + 1) if sum(times[::k]) <= limit]
    least = short[0] if short else len(names)
    return max(range(least, least + 4), key=lambda k: (values_taken(names, k), -k))


def values_taken(names: Sequence[str], every: int) -> float:
    """The share of its values that each parameter has in the kept cases, summed over parameters."""
    ids = [name.partition("[")[2].rstrip("]").split("-") for name in names]
    places = range(max(map(len, ids)))
    values = [[one[place] for one in ids if place < len(one)] for place in places]
    kept = [[one[place] for one in ids[::every] if place < len(one)] for place in places]
    return sum(len(set(some)) / len(set(all_)) for some, all_ in zip(kept, values, strict=True))


def text(chosen: LeftOut) -> str:
    lines = [
        "# What `make test` leaves to `make check`; `python -m tests.runner.choose` writes it.",
        "# A test that is not named here is in `make test`.",
        "",
        "# Folders, files and test functions that are left out.",
        "whole = [",
        *(f"    {json.dumps(name)}," for name in sorted(chosen.whole)),
        "]",
        "",
        "# Of the cases of these tests, `make test` takes the first of every so many.",
        "[one_in]",
        *(f"{json.dumps(name)} = {every}" for name, every in sorted(chosen.one_in.items())),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    given = [Path(name) for name in sys.argv[1:]]
    seconds = measured(given or sorted((ROOT / "build" / "records").glob("*.json")))
    chosen = fit(collected(), seconds)
    LEFT_OUT.write_text(text(chosen), encoding="utf-8")
    print(f"{LEFT_OUT}: {len(chosen.whole)} left out, {len(chosen.one_in)} in part")


if __name__ == "__main__":
    main()
