"""Stock's rules of fusion as data: what each reason in its log means, and what would change it.

Stock logs a sentence when it refuses to fuse two nodes.  `rule_of` finds the rule of a sentence; a
sentence that no rule knows is shown verbatim.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from inductor_lab.compiler.schedule.schedule import Kind, Verdict

UNKNOWN = "stock_log"
"""The name of the rule for sentences that are not in the table."""


@dataclass(frozen=True, slots=True)
class StockRule:
    """One rule of stock's scheduler.

    kind      "legality" if it must hold for a correct result, "profit" if it should hold
    says      how stock's log line begins; "" for rules that refuse without a log line
    meaning   the rule in plain words
    cure      what would have to change
    """

    name: str
    kind: Kind
    says: str
    meaning: str
    cure: str


_TEMPLATE = "It is a template: a generated kernel for a matrix product or convolution. "
_PROLOGUE = _TEMPLATE + "A node can be computed while a template loads its input, "
_EPILOGUE = _TEMPLATE + "A node can be computed before a template stores its result, "
_FOREACH = "A foreach kernel computes the same operation for lists of tensors. "
_FIXED = "Nothing: no setting of stock changes this."

RULES: tuple[StockRule, ...] = (
    StockRule(
        "intermediate_node", "legality", "intermediate nodes between node1 & node2",
        "A third node needs the first result, and the second node needs the third: the kernel "
        "would have to stop in between.",
        "Fuse the node between with one of the two first; stock tries again in the next round. "
        "If it is a library call or a reduction over other data, compute it before both."),
    StockRule(
        "memory_dependency", "legality", "memory deps did not match",
        "The second node reads other elements of the result than the first computes at this "
        "point of the loop (it is shifted, transposed, gathered, or the whole result).",
        "Read the result in the order in which it is computed: move the transpose, slice or "
        "gather before the first operation, or apply both to its input."),
    StockRule(
        "cycle", "legality", "will create cycle",
        "After earlier fusions, a kernel between the two depends on one and is needed by the "
        "other, so the fused kernel would have to run before and after it.",
        "Remove the dependency through the third kernel, or forbid the earlier fusion by computing "
        "that value in another function that is compiled by itself."),
    StockRule(
        "order", "legality", "node1 must go before node2",
        "The pair was tried in the wrong order: the first node needs the second one.",
        "Nothing: stock also tries the pair in the other order."),
    StockRule(
        "same_device", "legality", "device mismatch",
        "The nodes run on different devices; a kernel runs on one.",
        "Move both values to one device before the first operation."),
    StockRule(
        "library_call", "legality", "node1 is extern but not a triton kernel",
        "One is a library call (a matrix product, a convolution, a sort, an operator without a "
        "lowering). Its code is not generated, so nothing can be added to it.",
        'Let stock generate the matrix product: mode="max-autotune". Other library calls cannot '
        "be fused."),
    StockRule(
        "library_call", "legality", "node2 is extern or nop",
        "One is a library call, or only names memory (a concatenation): it has no loops.",
        'Let stock generate the matrix product: mode="max-autotune". Other library calls cannot '
        "be fused."),
    StockRule(
        "no_code", "legality", "node1 is nop",
        "One only names memory (a concatenation, a view): no kernel computes it.",
        "Nothing: it costs no memory traffic by itself."),
    StockRule(
        "user_kernel", "legality", "node1's triton kernel doesn't support epilogue fusion",
        "One is a Triton kernel of the user, of a form to which stock cannot add operations.",
        "Compute the operation inside the Triton kernel."),
    StockRule(
        "user_kernel", "legality", "node1 is extern but node2",
        "Only an elementwise node can be added to a Triton kernel of the user.",
        "Compute the operation inside the Triton kernel."),
    StockRule(
        "user_kernel", "legality", "epilogue",
        "A node that is added to a Triton kernel of the user may read only its result, at the "
        "same position.",
        "Compute the operation inside the Triton kernel."),
    StockRule(
        "same_layout", "legality", "node1 and node2 uses different buf layouts",
        "The result of the user's Triton kernel and the node's result have different strides.",
        "Give both the same layout, for example with .contiguous() before the kernel."),
    StockRule(
        "grouped", "legality", "grouped node must not be fused",
        "Stock keeps this group of nodes in a fixed order (communication between processes).",
        "Nothing: the group is fixed for correctness."),
    StockRule(
        "no_shared_data", "profit", "no shared data",
        "The nodes read and write no common elements, so that fusion saves no memory traffic. "
        "(A common buffer does not count if they visit it in different orders.)",
        "If both read one buffer, read it in the same order (no transpose between). Otherwise "
        "nothing is lost; combo kernels (combo_kernels=True) launch such nodes together on a GPU."),
    StockRule(
        "too_little_shared", "profit", "score_fusion_memory_threshold",
        "Two nodes without a dependency share fewer bytes than score_fusion_memory_threshold.",
        "options={'score_fusion_memory_threshold': 1} in torch.compile accepts every shared byte."),
    StockRule(
        "max_fusion_size", "profit", "exceeds max fusion",
        "The kernel would have more nodes than max_fusion_size (64 by default).",
        "options={'max_fusion_size': 256} in torch.compile."),
    StockRule(
        "peak_memory", "profit", "Fusion will increase peak memory",
        "The fused kernel would keep more values alive at the same time than the two kernels.",
        "Compute the two values next to each other in the program."),
    StockRule(
        "peak_memory", "profit", "Nodes are too far away",
        "Many nodes lie between the two; computing both early keeps a value alive for long.",
        "Compute the two values next to each other in the program."),
    StockRule(
        "too_many_buffers", "profit", "fusion_prevent_too_many_reads_and_writes",
        "The kernel would read and write more buffers than max_fusion_unique_io_buffers.",
        "options={'max_fusion_unique_io_buffers': None} in torch.compile."),
    StockRule(
        "same_iteration_space", "legality", "numel/rnumel mismatch (reduce)",
        "Both are reductions, over different numbers of elements.",
        "Reduce over the same axes of the same shape, or compute one from the other."),
    StockRule(
        "same_iteration_space", "legality", "numel/rnumel mismatch (non-reduce)",
        "The two loop over different numbers of elements.",
        "Give both the same number of elements: expand the smaller value first, or apply the "
        "operation before the shape changes."),
    StockRule(
        "same_iteration_space", "legality", "numel/rnumel mismatch prologue mismatch",
        _PROLOGUE + "if both loop over the same number of elements.",
        "Apply the operation to a value that has the shape of the template's input."),
    StockRule(
        "same_iteration_space", "legality", "nodes numel",
        "An elementwise node and a reduction fuse only if the node has the elements of the "
        "reduction's input, or of its result.",
        "Apply the elementwise operation before the shape changes."),
    StockRule(
        "same_tiling", "profit", "tiling mismatch",
        "The best tiles of the two nodes differ, because they visit memory in different orders.",
        "options={'triton.tiling_prevents_pointwise_fusion': False} in torch.compile, or make "
        "both contiguous in the same order."),
    StockRule(
        "same_tiling", "profit", "invalid tiling for reduction",
        "The tiles of the elementwise node do not fit the loops of the reduction.",
        "options={'triton.tiling_prevents_reduction_fusion': False} in torch.compile."),
    StockRule(
        "same_tiling", "legality", "invalid loop order and tiling",
        "The loops of a generated matrix product have a fixed order, which the other node lacks.",
        "Make the operand contiguous in the order of the product."),
    StockRule(
        "split_scan", "legality", "Split scan cannot fuse",
        "A long cumulative sum runs in parts that wait for each other; a reduction in the same "
        "kernel would run before all parts have ended.",
        _FIXED),
    StockRule(
        "sum_order", "legality", "reduction fusion does not preserve strict sum ordering",
        "The options ask for a fixed order of summation, which the fused kernel would change.",
        "Allow another order of summation in the options."),
    StockRule(
        "sum_order", "legality", "template fusion does not preserve strict sum ordering",
        "The options ask for a fixed order of summation, which the fused kernel would change.",
        "Allow another order of summation in the options."),
    StockRule(
        "registers", "profit", "register spilling",
        "Stock timed the kernels (benchmark_fusion): one needs more registers than there are.",
        "options={'benchmark_fusion': False} in torch.compile."),
    StockRule(
        "disabled_buffer", "legality", "fusion for buffer explicit disabled",
        "A pass of stock has excluded the buffer from fusion.",
        "Nothing: stock decided this for correctness."),
    StockRule(
        "foreach", "legality", "foreach do not have same length",
        _FOREACH + "The two lists have different lengths.",
        "Use lists of the same length."),
    StockRule(
        "foreach", "legality", "candidate ",
        _FOREACH + "The other node does not depend on one of its entries.",
        "Apply the operation to the whole list too."),
    StockRule(
        "template_prologue", "profit", "prologue fusion",
        _PROLOGUE + "if it is elementwise, used once, and reads no more bytes than it writes.",
        "options={'prologue_fusion': True} in torch.compile; the value must have no other user."),
    StockRule(
        "template_prologue", "legality", "template prologue",
        _PROLOGUE + "if it is elementwise, overwrites nothing, and only the template reads it.",
        "Remove other uses of the value."),
    StockRule(
        "template_prologue", "legality", "template has no allowed prologue inputs",
        _PROLOGUE + "but this template allows it for none of its inputs.",
        "Nothing: choose another template, or none."),
    StockRule(
        "template_epilogue", "legality", "template epilogue not satisfied",
        _EPILOGUE + "if it is elementwise and overwrites nothing (and epilogue_fusion is on).",
        "options={'epilogue_fusion': True} in torch.compile; move reductions after it."),
    StockRule(
        "template_epilogue", "legality", "multi-output template epilogue",
        _EPILOGUE + "but a template with several results takes only computed buffers.",
        _FIXED),
)  # fmt: skip
"""The first rule whose `says` begins a sentence of the log is its rule."""

SILENT: dict[str, StockRule] = {
    rule.name: rule
    for rule in (
        StockRule(
            "library_call", "legality", "",
            "One is a library call (a matrix product, a convolution, a sort, an operator without "
            "a lowering). Its code is not generated, so nothing can be added to it.",
            'Let stock generate the matrix product: mode="max-autotune". Other library calls '
            "cannot be fused."),
        StockRule(
            "no_code", "legality", "",
            "One only names memory (a concatenation, a view): no kernel computes it.",
            "Nothing: it costs no memory traffic by itself."),
        StockRule(
            "no_shared_data", "profit", "",
            "Only pairs that use a common buffer are tried. These two do not.",
            "Nothing is lost: there is no memory traffic to save. Combo kernels "
            "(combo_kernels=True) launch such nodes together on a GPU."),
        StockRule(
            "same_iteration_space", "legality", "",
            "Stock's C++ backend fuses two nodes if they loop over the same sizes, or if the "
            "second reduces a part of the sizes of the first.",
            "Give both the same sizes: apply the operation before the shape changes, or expand "
            "the smaller value first."),
        StockRule(
            "after_reduction", "legality", "",
            "The second node needs the complete result of the first one's reduction, and the two "
            "have no outer loop in common.",
            "Reduce over fewer axes, so that an outer loop remains."),
        StockRule(
            "outer_loops", "profit", "",
            "Stock fused the outer loops of the two, but their generated loops differ in how they "
            "are vectorized or made parallel. So it wrote separate loops.",
            "Give both the same inner sizes and data types, so that they are vectorized alike."),
        StockRule(
            "max_horizontal_fusion_size", "profit", "",
            "Without a dependency, stock's C++ backend puts at most "
            "cpp.max_horizontal_fusion_size nodes (16 by default) into one kernel.",
            "options={'cpp.max_horizontal_fusion_size': 64} in torch.compile."),
        StockRule(
            "no_reason", "legality", "",
            "The pair was refused, or not tried, without a reason.",
            ""),
        StockRule(
            "one_graph", "legality", "",
            "A kernel belongs to one direction of one captured graph.",
            "Remove the graph break between them. Forward and backward are always separate."),
    )
}  # fmt: skip
"""Rules that refuse without a log line, by name; `decide.py` finds them from the nodes."""


def verdict_of(says: str) -> Verdict:
    """The rule of a sentence of stock's log, with the sentence as its reason."""
    found = _matching(says)
    if found is None:
        return Verdict(UNKNOWN, "legality", says)
    return Verdict(found.name, found.kind, says)


def silent(rule: str, reason: str) -> Verdict:
    """The verdict of a rule that refuses without a log line."""
    return Verdict(rule, SILENT[rule].kind, reason)


def explained(verdict: Verdict) -> tuple[str, str]:
    """What a verdict means, and what would change it; two empty texts for an unknown sentence."""
    known = [rule for rule in RULES if rule.name == verdict.rule]
    rule = _matching(verdict.reason or "") if known else None
    rule = rule or SILENT.get(verdict.rule)
    return (rule.meaning, rule.cure) if rule is not None else ("", "")


def _matching(says: str) -> StockRule | None:
    text = re.sub(r"\s+", " ", says).strip()
    return next((rule for rule in RULES if text.startswith(rule.says)), None)
