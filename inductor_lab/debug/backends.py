"""Run one call through several backends, to find the component that computes a wrong result.

    eager                        TorchDynamo only
    aot_eager                    + AOTAutograd
    aot_eager_decomp_partition   + the decompositions and partitioner of stock torch.compile
    inductor_lab (unoptimized)   this compiler without rewrites, fusion and loop-tree passes
    inductor_lab                 this compiler with the default options
    stock                        TorchInductor

The first wrong backend shows which component to examine.  Each runs in its own process with a time
limit, so that a crash or a hang is a row of the table.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import torch

from inductor_lab.api.arguments import Count, Seconds, checked
from inductor_lab.api.backend import backend_with
from inductor_lab.compiler.base.display import Shown
from inductor_lab.compiler.base.errors import BadArguments, unknown_name
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.compare.compare_results import first_wrong
from inductor_lab.debug.compare.values import (
    AFTER,
    Before,
    Outcome,
    copied_call,
    gradients,
    named_results,
    plain_tensors,
    widened,
)
from inductor_lab.debug.isolate import Ended, Tell, run_all_isolated
from inductor_lab.debug.perturb import Move, judge_perturbed, reference

LIMIT = 120.0
PLAIN = Options(
    cache=False,
    rewrites_off=("masks",),
    passes_off=("all",),
    pack_weights=False,
    matmul="aten",
)
BACKENDS: Mapping[str, Any] = {
    "eager": "eager",
    "aot_eager": "aot_eager",
    "aot_eager_decomp_partition": "aot_eager_decomp_partition",
    "inductor_lab (unoptimized)": backend_with(PLAIN),
    "inductor_lab": backend_with(Options(cache=False)),
    "stock": "inductor",
}
"""Every backend by name, in order."""

Verdict: TypeAlias = Literal["agrees", "wrong", "raises", "crashes", "hangs"]
VERDICTS: Mapping[str, Verdict] = {"raised": "raises", "crashed": "crashes", "hung": "hangs"}


@dataclass(frozen=True)
class Rung:
    """One backend: the result of the call, and its seconds including the compile."""

    backend: str
    verdict: Verdict
    says: str
    seconds: float


@dataclass(frozen=True, eq=False)
class Backends(Shown):
    """A call through all backends; `first_wrong` is the first that disagrees with eager."""

    name: str
    rungs: tuple[Rung, ...]

    @property
    def first_wrong(self) -> Rung | None:
        return next((rung for rung in self.rungs if rung.verdict != "agrees"), None)

    @property
    def summary(self) -> str:
        """One sentence."""
        wrong = self.first_wrong
        if wrong is None:
            return "every backend agrees with eager"
        return f"{wrong.backend} is the first that disagrees with eager: {wrong.verdict}"

    def __repr__(self) -> str:
        return f"Backends({self.name}: {self.summary})"

    def __str__(self) -> str:
        width = max((len(rung.backend) for rung in self.rungs), default=0)
        rows = [
            f"  {r.backend:{width}}  {r.verdict:8} {r.seconds:6.1f} s  {r.says}".rstrip()
            for r in self.rungs
        ]
        return "\n".join([f"{self.name}: {self.summary}", *rows])


@checked
def backends(
    fn: Callable[..., Any],
    /,
    *args: Any,
    only: Sequence[str] = (),
    limit: Seconds = LIMIT,
    jobs: Count = 1,
    **kwargs: Any,
) -> Backends:
    """Call `fn` through each backend and compare with eager mode.

    Compares results, values written to arguments, and the gradients of arguments and module
    parameters that require them.

    only   names of `BACKENDS` to run; default: all
    limit  time limit of each backend in seconds; `jobs` of them run at a time

    Raises BadArguments for an unknown backend.  Exceptions of `fn` are passed on.
    """
    unknown = [name for name in only if name not in BACKENDS]
    if unknown:
        what, todo = unknown_name("backend", unknown[0], BACKENDS)
        raise BadArguments(what, todo=todo)
    names = [name for name in BACKENDS if not only or name in only]
    alone = copy.deepcopy(fn) if isinstance(fn, torch.nn.Module) else fn
    plain, spread = reference(partial(outcome, alone, args, kwargs))
    exact = _in_float64(fn, args, kwargs)
    works = [partial(_through, name, fn, args, kwargs) for name in names]
    found: dict[int, Rung] = {}
    for number, ended in run_all_isolated(works, limit, jobs):
        found[number] = _rung(names[number], ended, plain, exact, spread)
    name = getattr(fn, "__name__", type(fn).__name__)
    return Backends(name, tuple(found[number] for number in range(len(names))))


def _through(
    name: str, fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any], tell: Tell
) -> Outcome:
    with torch_api.fresh_compile({}):
        torch_api.reset()
        compiled = torch.compile(fn, backend=BACKENDS[name])
        return outcome(compiled, args, kwargs)


def _in_float64(fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Outcome | None:
    """The call in float64; None if the function does not accept float64."""
    wide = copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn
    leaves, tree = pytree.tree_flatten((args, dict(kwargs)))
    leaves = widened(leaves)
    try:
        given, named = pytree.tree_unflatten(leaves, tree)
        return outcome(wide, given, named)
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return None


def _rung(
    name: str,
    ended: Ended,
    plain: Outcome,
    exact: Outcome | None,
    spread: Mapping[str, torch.Tensor],
) -> Rung:
    if ended.how != "returned":
        said = str(ended).strip().split("\n")[0]
        return Rung(name, VERDICTS[ended.how], said, ended.seconds)
    judged = judge_perturbed(ended.value, plain, exact, spread)
    wrong = first_wrong(judged)
    if wrong is not None:
        return Rung(name, "wrong", f"{wrong[0]}: {wrong[1]}", ended.seconds)
    same = all(j.kind == "equal" for j in judged.values())
    return Rung(name, "agrees", "bit-identical" if same else "up to rounding", ended.seconds)


def outcome(
    fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any], move: Move = list
) -> Outcome:
    """Everything that one call produces, on copies of its arguments that `move` has changed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        given, named = copied_call(args, kwargs)
        leaves = [v for v in pytree.tree_leaves((given, named))
                  if isinstance(v, torch.Tensor)]  # fmt: skip
        move(leaves)
        before = Before(leaves)
        found = dict(named_results(fn(*given, **named)))
        found |= {f"argument {n}{AFTER}": leaf for n, leaf in before.written(leaves)}
        sources = {f"argument {n}": leaf for n, leaf in enumerate(leaves)}
        sources.update(_parameters(fn))
        if torch.is_grad_enabled():
            found.update(gradients(found, sources))
    return plain_tensors(found, kept=True)


def _parameters(fn: Callable[..., Any]) -> Mapping[str, torch.Tensor]:
    module = getattr(fn, "_orig_mod", fn)
    if not isinstance(module, torch.nn.Module):
        return {}
    return {name: value for name, value in module.named_parameters() if value.requires_grad}
