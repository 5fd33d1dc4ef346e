"""The joint graph and its partition: what is saved for the backward, what is recomputed."""

from __future__ import annotations

from inductor_lab.compiler.autograd.graphs import JointGraph, Partition
from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.budget import budget_view
from inductor_lab.widgets.graphs import fx_picture
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.shapes import Pane, View
from inductor_lab.widgets.views import block, fx_lines, pane, row, table_view, text_view


def joint_panes(
    joint: JointGraph, partition: Partition | None, scope: str, earlier: str, links: Links
) -> dict[str, Pane]:
    """The joint graph of forward and backward, and the cut between them."""
    links.graph(joint.graph, scope, earlier)
    views: list[View] = [
        fx_picture(joint.graph, links, scope).view("graph"),
        text_view("text", [block(fx_lines(joint.graph, links, scope))]),
    ]
    calls = sum(node.op.startswith("call") for node in joint.graph.nodes)
    panes = {scope: pane("joint", views, count=calls)}
    if partition is not None:
        panes[f"{scope}.cut"] = cut_pane(partition, scope, links)
    return panes


def cut_pane(partition: Partition, scope: str, links: Links) -> Pane:
    """The values saved for the backward and those recomputed, each with the reason."""
    saved = [
        row((links.label("node", scope, v.name), bytes_text(v.nbytes), translate(v.why)),
            links.find("node", scope, [v.name]))
        for v in partition.saved
    ]
    again = [
        row((r.name, r.op, f"{r.flops:,}", translate(r.why)), links.find("node", scope, [r.name]))
        for r in partition.recomputed
    ]
    decided = [
        row(
            (links.label("node", scope, d.node), say(d.choice), bytes_text(d.nbytes),
             "; ".join(map(translate, d.reasons))),
            links.find("node", scope, [d.node]),
        )
        for d in partition.decisions
    ]
    kept = say(
        "{kept} saved for the backward, inputs excluded; eager mode saves {eager}; the minimum is "
        "{least} (memory_budget {budget:g})",
        kept=bytes_text(partition.cut_bytes), eager=bytes_text(partition.bytes_if_all_saved),
        least=bytes_text(partition.bytes_if_min), budget=partition.memory_budget,
    )  # fmt: skip
    views: list[View] = [
        table_view("saved", ("value", ">size", "reason"), saved, kept),
        table_view("recomputed", ("value", "op", ">flop", "reason"), again,
                   "" if again else "Nothing is recomputed."),
        table_view("decisions", ("value", "choice", ">size", "reasons"), decided),
    ]
    if len(partition.cuts) > 1:
        views.insert(1, budget_view(partition, scope, links))
    return pane("saved", views, count=len(saved))
