"""FX → FX: the passes in order, each a function that edits a graph and returns what it did.

```
collectives               all_reduce(x), all_reduce(y) → all_reduce_coalesced([x, y])
constant_folding          full([4], 2) * 3           → full([4], 6)
common_subexpressions     sin(x) + sin(x)            → s = sin(x); s + s
identities                view(view(x, a), b) * 1    → view(x, b)
attention                 softmax(q @ k.mT) @ v      → flash_attention(q, k, v)
products                  mm(a, b)                   → mm(a, pad(b))[:, :n] (on a GPU)
dead_code                 unused calls               → removed
```

Inductor: `compile_fx.py` (post_grad_passes), `fx_passes/`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from time import perf_counter
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.base.errors import BadOption, working_on
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.base.passes import Pass, switched_off, table_of
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.capture.span import innermost
from inductor_lab.compiler.ir.program import Write
from inductor_lab.compiler.rewrite.aliases import Aliases
from inductor_lab.compiler.rewrite.aten import complex_numbers  # noqa: F401  (its rule is one of RULES)
from inductor_lab.compiler.rewrite.aten.bucket_collectives import collectives
from inductor_lab.compiler.rewrite.aten.constant_folding import folded, is_pure
from inductor_lab.compiler.rewrite.aten.identities import BY_TARGET, RULES, Edit
from inductor_lab.compiler.rewrite.aten.match_attention import fused_attention
from inductor_lab.compiler.rewrite.aten.matmul_forms import better_products
from inductor_lab.compiler.rewrite.facts import RewriteFacts
from inductor_lab.compiler.rewrite.rewrites import Fired, Rewrites, Step
from inductor_lab.compiler.torch_door.torch_api import copy_of, with_graph, without_modes

aten = torch.ops.aten
SpanOf = Callable[[Node], Span | None]


def rewrite(
    module: GraphModule,
    name: str,
    options: Options,
    *,
    record: bool = True,
    parameters: frozenset[str] = frozenset(),
    trained: bool = False,
    writes: tuple[Write, ...] = (),
) -> Rewrites:
    """Run all passes on the graph of `module` (ATen; its nodes have `meta["val"]`).

    The outputs keep their number, order, aliasing and strides.  `meta["lab_from"]` of every node of
    the result lists the nodes of `module` that it comes from.  With `record`, the passes run on a
    copy, and each step has the graph before and after.  `parameters` are inputs that are kept
    packed; `RewriteFacts` describes the other arguments.
    Raises BadOption if `options.rewrites_off` contains an unknown name.
    """
    span_of = _span if record else _not_asked
    off = _switched_off(options)
    if options.target is not None:
        off |= {"attention", "convolutions"}  # these are for CPUs
    off |= {"widened_product"} if options.target or options.matmul != "measured" else set()
    off |= {"flash_attention"} if options.check_bounds else set()  # it takes raw pointers
    work = copy_of(module) if record else with_graph(module, module.graph)
    for node in work.graph.nodes:
        node.meta["lab_from"] = (node.name,)
        node.meta["lab_parameter"] = node.name in parameters
    before = fx_graph(module, name) if record else None
    steps = []
    facts = RewriteFacts(off, span_of, options, name, trained, writes)
    for pass_name, run in PASSES.items():
        start = perf_counter()
        fired = () if pass_name in off else tuple(run.apply(work, facts))
        took, after = perf_counter() - start, before
        if fired and record:
            after = fx_graph(copy_of(work), name, earlier=before)
        steps.append(Step(pass_name, before, after, fired, took))
        before = after
    work.recompile()
    return Rewrites(tuple(steps), work, tuple(facts.choices))


def _switched_off(options: Options) -> frozenset[str]:
    known = [*PASSES, *RULES, "batch_norm", "channels_last", "flash_attention", "masks"]
    BadOption.refuse_unknown("rewrites_off", options.rewrites_off, known)
    return switched_off(PASSES, options.passes_off) | frozenset(options.rewrites_off)


def constant_folding(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Compute at compile time what depends on no input."""
    aliases = Aliases(module.graph)
    with without_modes():
        pairs = list(folded(module, aliases))
    for node, new in pairs:
        if aliases.may_replace(node, new):
            yield replaced("constant_folding", node, new, facts.span_of)
        else:
            module.graph.erase_node(new)


def common_subexpressions(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Keep the first of several equal calls, unless they are random or outputs would alias."""
    aliases = Aliases(module.graph)
    first: dict[Any, Node] = {}
    for node in list(module.graph.nodes):
        may_repeat = is_pure(node) or node.target is operator.getitem
        if node.op != "call_function" or not may_repeat or aliases.written:
            continue
        survivor = first.setdefault(_key((node.target, node.args, node.kwargs)), node)
        if survivor is not node and aliases.may_replace(node, survivor):
            yield replaced("common_subexpressions", node, survivor, facts.span_of)


def _key(value: Any) -> Any:
    """A hashable key that distinguishes 1, 1.0 and True, and 0.0 and -0.0."""
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in sorted(value.items()))
    if isinstance(value, bool | int | float):
        return type(value), repr(value)
    return value if isinstance(value, Hashable) else repr(value)


def identities(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Apply the rules of `rewrite/aten/identities.py` to each node, operands first, until none
    applies.

    Graphs with in-place writes are skipped, because the value of a node then depends on when it is
    read.
    """
    aliases = Aliases(module.graph)
    if aliases.written:
        return
    for node in list(module.graph.nodes):
        while node.op == "call_function":
            with working_on((node.name,)):
                found = _first_match(node, facts.off, aliases)
            if found is None:
                break
            rule, new = found
            yield replaced(rule, node, new, facts.span_of)
            node = new


def _first_match(node: Node, off: frozenset[str], aliases: Aliases) -> tuple[str, Node] | None:
    """The first allowed rule that applies to a node, and the replacement of the node."""
    for name in BY_TARGET.get(node.target, ()):
        if name in off or name not in RULES:
            continue
        latest = node.prev
        new = RULES[name](node, Edit(node))
        if new is not None and aliases.may_replace(node, new):
            return name, new
        _erase_after(latest, node)
    return None


def attention(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Replace decomposed attention by a library call that needs no matrix of scores."""
    aliases = Aliases(module.graph)
    products = module.graph.find_nodes(op="call_function", target=aten.bmm.default)
    if aliases.written or len(products) < 2:
        return
    yield from dead_code(module, facts)
    for node in module.graph.find_nodes(op="call_function", target=aten.bmm.default):
        latest = node.prev
        with working_on((node.name,)):
            new = fused_attention(node)
        if new is not None and aliases.may_replace(node, new):
            yield replaced("attention", node, new, facts.span_of)
        else:
            _erase_after(latest, node)


def products(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Replace matrix products by forms for which libraries are fast."""
    if not Aliases(module.graph).written:
        for rule, node, new in better_products(module.graph, facts.off):
            yield replaced(rule, node, new, facts.span_of)


def _erase_after(latest: Node, node: Node) -> None:
    """Erase the nodes between `latest` and `node`, which a rejected rule added."""
    while node.prev is not latest:
        node.graph.erase_node(node.prev)


def dead_code(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Remove unused calls that have no effects."""
    for node in reversed(list(module.graph.nodes)):
        if node.op in ("call_function", "get_attr") and not node.users and not node.is_impure():
            yield Fired("dead_code", node.name, "", facts.span_of(node))
            module.graph.erase_node(node)


def replaced(rule: str, node: Node, new: Node, span_of: SpanOf) -> Fired:
    """Replace all uses of `node` by `new`, and remove `node`.

    The origins of `node` are added to `new`, or to the users of `node` if `new` is an input.
    """
    users = list(node.users)
    node.replace_all_uses_with(new)
    skipped = [n for n in node.all_input_nodes if n not in new.all_input_nodes and n is not new]
    consumed = [node, *(n for n in skipped if set(n.users) <= {node})]
    for heir in [new] if new.op == "call_function" else users:
        if heir.op == "call_function":
            stood_for = (name for n in (heir, *consumed) for name in n.meta.get("lab_from", ()))
            heir.meta["lab_from"] = tuple(dict.fromkeys(stood_for))
    fired = Fired(rule, node.name, new.name, span_of(node))
    node.graph.erase_node(node)
    return fired


def _span(node: Node) -> Span | None:
    return innermost(node.meta.get("stack_trace") or "")


def _not_asked(node: Node) -> None:
    """Skips spans: finding one parses the user's file, which takes longer than all passes."""


PASSES = table_of(
    Pass("collectives", "merge small collectives of the same kind, group and dtype", collectives),
    Pass("constant_folding", "compute values that depend on no input at compile time",
         constant_folding),
    Pass("common_subexpressions",
         "merge equal calls, except random ones and those whose outputs would alias",
         common_subexpressions),
    Pass("identities", "apply algebraic simplifications, such as x * 1 → x", identities),
    Pass("attention", "replace attention that is written out (matmul, softmax, matmul) with a call "
         "of flash attention", attention),
    Pass("products", "rewrite matrix products into forms for which libraries are fast", products),
    Pass("dead_code", "remove unused calls that have no side effects", dead_code),
)  # fmt: skip
"""Every pass by name, in the order they run.  Accelerators add theirs (`accelerators.py`)."""
