"""Sixty questions about the programs.

Each has an answer from JSON alone, which a client of the MCP server reads, and an expected answer,
which comes from elsewhere: from Python objects of the library, from TorchDynamo, from a count of
the calls of a backend, from the sizes of tensors, or from a mark in the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

import inductor_lab as lab
from inductor_lab.debug.user_file import load_function
from tests.mcp.client import LabClient
from tests.mcp.programs import PROGRAMS, marked


@dataclass
class Asked:
    """What answers are read from: a client, and the document of the program."""

    client: LabClient
    name: str

    @property
    def function(self) -> str:
        return f"{self.name}.py:f"

    @cached_property
    def whole(self) -> dict[str, Any]:
        return self.client.document("explain", function=self.function)

    @property
    def parts(self) -> list[dict[str, Any]]:
        return [part for graph in self.whole["graphs"] for part in graph["parts"]]

    @property
    def kernels(self) -> list[dict[str, Any]]:
        return [kernel for part in self.parts for kernel in part["kernels"]]

    @property
    def steps(self) -> list[dict[str, Any]]:
        return [*self.kernels, *(c for part in self.parts for c in part["library_calls"])]

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.client.document(name, function=self.function, **arguments)


@dataclass
class Known:
    """What expected answers come from: the function and its inspected call, in this process."""

    name: str
    folder: Path

    @cached_property
    def program(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        torch._dynamo.reset()
        return load_function(f"{self.folder / self.name}.py:f", None)

    @cached_property
    def compilation(self) -> Any:
        fn, args = self.program
        return lab.inspect(fn, *args)

    @property
    def part(self) -> Any:
        return self.compilation.graphs[0].forward

    def compiles(self, *calls: str) -> list[int]:
        """The number of compiles that each call causes, as a backend of its own counts them."""
        count = 0

        def backend(graph: Any, inputs: Any) -> Any:
            nonlocal count
            count += 1
            return graph.forward

        fn, _ = self.program
        torch._dynamo.reset()
        fast, found = torch.compile(fn, backend=backend), []
        for call in calls:
            before = count
            args = eval(call, {"torch": torch})
            fast(*(args if isinstance(args, tuple) else (args,)))
            found.append(count - before)
        return found

    def dynamo(self) -> Any:
        """TorchDynamo's own report about the call."""
        fn, args = self.program
        torch._dynamo.reset()
        return torch._dynamo.explain(fn)(*args)


@dataclass(frozen=True)
class Question:
    program: str
    text: str
    answer: Callable[[Asked], Any]
    expected: Callable[[Known], Any]


ELEMENT = 4
"""Bytes of a float32."""


def busiest_line(asked: Asked) -> int:
    """The line whose kernels and library calls move most bytes."""
    moved: Counter[int] = Counter()
    for step in asked.steps:
        lines = {o["place"]["line"] for o in step["origins"] if o["place"]}
        for line in lines:
            moved[line] += step["cost"]["bytes_read"] + step["cost"]["bytes_written"]
    return moved.most_common(1)[0][0]


def refusing_rules(asked: Asked) -> dict[str, list[str]]:
    """By pair that was not fused: the rules against it."""
    found = asked.tool("why_not_fused")
    return {
        f"{each['producer']},{each['consumer']}": [
            verdict["rule"] for verdict in each["verdicts"] if verdict["reason"] is not None
        ]
        for each in found["decisions"]
    }


def known_refusals(known: Known) -> dict[str, list[str]]:
    pairs = known.part.schedule.decisions.by_pair.items()
    return {",".join(pair): [v.rule for v in decided[-1].verdicts if v.reason is not None]
            for pair, decided in pairs if not decided[-1].fused}  # fmt: skip


def first_refusal(asked: Asked) -> list[str]:
    """Which rules prevent the fusion of the first pair: with an answer of few bytes."""
    every = asked.tool("why_not_fused", max_bytes=20_000)
    first = every["decisions"][0]
    one = asked.tool("why_not_fused", buffers=[first["producer"], first["consumer"]])
    return [verdict["rule"] for verdict in one["verdicts"] if verdict["reason"] is not None]


def compiles(*calls: str) -> Callable[[Asked], list[int]]:
    """The number of compiles that each call causes: the recompiles of the first calls alone."""

    def answer(asked: Asked) -> list[int]:
        totals = [
            asked.tool("recompiles", args=[*calls[:count]])["compiles"]
            for count in range(1, len(calls) + 1)
        ]
        return [after - before for before, after in zip([0, *totals], totals, strict=False)]

    return answer


def all_compiles(*calls: str) -> Callable[[Asked], int]:
    return lambda asked: int(asked.tool("recompiles", args=[*calls])["compiles"])


def drilled_kernel(asked: Asked) -> str:
    """The name of the first kernel, from an outline and one part of it."""
    outline = asked.tool("explain", max_bytes=2000)
    kernel = next(item["id"] for item in outline["items"] if item["kind"] == "kernel")
    return str(asked.tool("explain", select=f"{kernel}/name")["value"])


def total(steps: list[dict[str, Any]], field: str) -> int:
    return sum(step["cost"][field] for step in steps)


def buffers(kernel: dict[str, Any], role: str) -> int:
    return sum(use["nbytes"] for use in kernel["buffers"] if use["role"] == role)


BATCHES = tuple(f"(torch.ones({n}, 8), torch.ones(8, 8))" for n in (1, 2, 3, 4))
SIZES = tuple(f"torch.ones({n})" for n in (5, 6, 7))
DTYPES = tuple(f"torch.ones(6, dtype=torch.{name})" for name in ("float32", "float64", "int64"))
FLAGS = tuple(f"(torch.ones(10), {value})" for value in (2.5, 2.5, 7.5))
ROWS = tuple(f"torch.ones({n}, 10)" for n in (4, 4, 9))


def edited(old: str, new: str) -> Callable[[Asked], bool]:
    """Is the first kernel right with this edit?"""

    def answer(asked: Asked) -> bool:
        kernel = asked.kernels[0]
        text = "\n".join(line["text"] for line in kernel["code"])
        assert old in text
        found = asked.tool("try_kernel", kernel=kernel["name"], text=text.replace(old, new),
                           seconds=0.05)  # fmt: skip
        return bool(found["right"])

    return answer


def saved_values(asked: Asked) -> list[str]:
    partition = asked.whole["graphs"][0]["partition"]
    return sorted(value["value"] for value in partition["saved"])


def first_fused(asked: Asked) -> tuple[str, str]:
    first = next(d for d in asked.parts[0]["decisions"] if d["fused"])
    return first["producer"], first["consumer"]


def known_first_fused(known: Known) -> tuple[str, str]:
    decisions = known.part.schedule.decisions.by_pair
    return next(pair for pair, decided in decisions.items() if decided[-1].fused)


def nests(known: Known, kind: str) -> int:
    """The number of loop nests of this class."""
    groups = known.part.schedule.groups
    return sum(type(nest).__name__ == kind for group in groups for nest in group.nests)


def last_shape(asked: Asked) -> list[int]:
    """The shape of the last buffer that a kernel writes."""
    written = [use["shape"] for use in asked.kernels[-1]["buffers"] if use["role"] == "out"]
    return list(written[-1])


QUESTIONS = (
    Question("softmax", "How many kernels does it become?", lambda a: a.whole["kernels"],
             lambda k: len(k.part.kernels)),
    Question("softmax", "How many bytes does it read and write?",
             lambda a: total(a.steps, "bytes_read") + total(a.steps, "bytes_written"),
             lambda k: 2 * 64 * 128 * ELEMENT),
    Question("softmax", "How many kernels are there without fusion?",
             lambda a: a.tool("what_if", no_fusion=True)["after"]["kernels"],
             lambda k: k.compilation.what_if(fusion=False).after.kernels),
    Question("attend", "Which rules prevent fusing which two?", refusing_rules, known_refusals),
    Question("attend", "Which operator is a library call?",
             lambda a: [call["operator"] for call in a.parts[0]["library_calls"]],
             lambda k: ["aten.mm.default"]),
    Question("attend", "Which kernel runs first?", drilled_kernel,
             lambda k: k.part.kernels[0].name),
    Question("big_line", "Which line causes most memory traffic?", busiest_line,
             lambda k: marked("big_line", "most traffic")),
    Question("big_line", "How many bytes does the largest output have?",
             lambda a: max(use["nbytes"] for n in a.kernels for use in n["buffers"]),
             lambda k: 512 * 128 * ELEMENT),
    Question("big_line", "How many scans are there?",
             lambda a: sum(op["nest"] == "scan" for n in a.kernels for op in n["operations"]),
             lambda k: nests(k, "Scan")),
    Question("big_product", "Which line causes most memory traffic?", busiest_line,
             lambda k: marked("big_product", "most traffic")),
    Question("big_product", "How many flops has the matrix product?",
             lambda a: total(a.parts[0]["library_calls"], "flops"), lambda k: 2 * 256**3),
    Question("big_product", "How many bytes does the peak of memory have?",
             lambda a: a.tool("memory")["peak_bytes"],
             lambda k: k.part.schedule.memory.peak_after),
    Question("two_sizes", "How many bytes do the kernels read?",
             lambda a: total(a.kernels, "bytes_read"), lambda k: (128 + 77 * 3) * ELEMENT),
    Question("two_sizes", "How many bytes do the inputs of kernels have?",
             lambda a: sum(buffers(kernel, "in") for kernel in a.kernels),
             lambda k: sum(x.nbytes for x in k.program[1])),
    Question("two_sizes", "Which operators are compiled?",
             lambda a: sorted({o["operator"].split(".")[-2]
                               for step in a.steps for o in step["origins"]}),
             lambda k: ["add", "exp", "tanh"]),
    Question("break_print", "How many graphs are there?", lambda a: len(a.whole["graphs"]),
             lambda k: k.dynamo().graph_count),
    Question("break_print", "Which line breaks the graph?",
             lambda a: [each["place"]["line"] for each in a.whole["capture"]["breaks"]],
             lambda k: [marked("break_print", "breaks")]),
    Question("break_print", "How many kernels are there?", lambda a: a.whole["kernels"],
             lambda k: sum(len(part.kernels) for part in k.compilation.parts)),
    Question("break_item", "Which line breaks the graph?",
             lambda a: [each["place"]["line"] for each in a.whole["capture"]["breaks"]],
             lambda k: [marked("break_item", "breaks")]),
    Question("break_item", "How many graph breaks are there?",
             lambda a: len(a.whole["capture"]["breaks"]), lambda k: k.dynamo().graph_break_count),
    Question("break_item", "Is the result right?", lambda a: a.tool("blame")["right"],
             lambda k: lab.blame(k.program[0], *k.program[1]).right),
    Question("scale", "How many compiles does each number of rows cause?", compiles(*ROWS),
             lambda k: k.compiles(*ROWS)),
    Question("scale", "How many bytes does fusion save?",
             lambda a: sum(a.whole[w][f] * s for w, s in (("before", 1), ("after", -1))
                           for f in ("bytes_read", "bytes_written")),
             lambda k: 2 * 4 * 10 * ELEMENT),
    Question("scale", "Is a kernel right that adds 2 and not 1?", edited("1.0f", "2.0f"),
             lambda k: False),
    Question("batch", "How many compiles does batch 3 cause?",
             lambda a: compiles(*BATCHES[:3])(a)[-1], lambda k: k.compiles(*BATCHES[:3])[-1]),
    Question("batch", "How many compiles do batches 1 to 4 cause?", all_compiles(*BATCHES),
             lambda k: sum(k.compiles(*BATCHES))),
    Question("batch", "How many flops has its matrix product?",
             lambda a: total(a.parts[0]["library_calls"], "flops")
            or max(n["cost"]["flops"] for n in a.kernels) - 2 * 16, lambda k: 2 * 2 * 8 * 8),
    Question("flag", "How many compiles does another number cause?", all_compiles(*FLAGS),
             lambda k: sum(k.compiles(*FLAGS))),
    Question("flag", "How many kernels does it become?", lambda a: len(a.kernels),
             lambda k: len(k.part.kernels)),
    Question("flag", "How many guards are there about the tensor?",
             lambda a: sum(g["type"] == "TENSOR_MATCH" for g in a.whole["capture"]["guards"]),
             lambda k: sum(isinstance(x, torch.Tensor) for x in k.program[1])),
    Question("dtype", "How many compiles do three dtypes cause?", all_compiles(*DTYPES),
             lambda k: sum(k.compiles(*DTYPES))),
    Question("dtype", "How many compiles do three sizes cause?", all_compiles(*SIZES),
             lambda k: sum(k.compiles(*SIZES))),
    Question("dtype", "Which dtypes do its buffers have?",
             lambda a: sorted({use["dtype"] for n in a.kernels for use in n["buffers"]}),
             lambda k: [str(k.program[1][0].dtype).removeprefix("torch.")]),
    Question("train", "Which values does the forward save?", saved_values,
             lambda k: sorted(d.node for d in k.compilation.graphs[0].partition.decisions
                             if d.choice in ("saved", "input"))),
    Question("train", "How many bytes are kept for the backward?",
             lambda a: a.tool("memory")["kept_bytes"],
             lambda k: k.compilation.graphs[0].partition.cut_bytes),
    Question("train", "Which directions are compiled?", lambda a: [p["name"] for p in a.parts],
             lambda k: [part.name for part in k.compilation.parts]),
    Question("gelu", "How many bytes are kept with a budget of 0?",
             lambda a: a.whole["graphs"][0]["partition"]["minimum_bytes"],
             lambda k: k.compilation.graphs[0].partition.bytes_if_min),
    Question("gelu", "How many values does the backward recompute?",
             lambda a: len(a.whole["graphs"][0]["partition"]["recomputed"]),
             lambda k: sum(d.choice == "recomputed"
                           for d in k.compilation.graphs[0].partition.decisions)),
    Question("gelu", "How many kernels are there in both directions?", lambda a: len(a.kernels),
             lambda k: sum(len(part.kernels) for part in k.compilation.parts)),
    Question("layer_norm", "How many kernels does it become?", lambda a: len(a.kernels),
             lambda k: len(k.part.kernels)),
    Question("layer_norm", "How many inputs of the user do the kernels read?",
             lambda a: len({use["buffer"] for n in a.kernels for use in n["buffers"]
                           if use["filled_by"] == "input"}),
             lambda k: len(k.program[1])),
    Question("layer_norm", "How many elements has each reduction?",
             lambda a: sorted({axis["size"] for n in a.kernels for op in n["operations"]
                              for axis in op["reduce_axes"]}),
             lambda k: [k.program[1][0].shape[-1]]),
    Question("sort", "Which operator is a library call?",
             lambda a: [call["operator"] for call in a.parts[0]["library_calls"]],
             lambda k: ["aten.sort.default"]),
    Question("sort", "How many library calls and kernels are there?",
             lambda a: [a.whole["library_calls"], a.whole["kernels"]],
             lambda k: [len(k.part.schedule.steps) - len(k.part.kernels), len(k.part.kernels)]),
    Question("sort", "Which buffers does the sort write?",
             lambda a: len(a.parts[0]["library_calls"][0]["writes"]), lambda k: 2),
    Question("write", "Is the result right?", lambda a: a.tool("blame")["right"],
             lambda k: lab.blame(k.program[0], *k.program[1]).right),
    Question("write", "How many bytes do the kernels write?",
             lambda a: total(a.kernels, "bytes_written"),
             lambda k: k.compilation.after.bytes_written),
    Question("write", "Does a kernel with a wrong name compile?", edited("return 0;", "return no;"),
             lambda k: False),
    Question("columns", "Which rules prevent fusing which two?", refusing_rules, known_refusals),
    Question("columns", "How many bytes are read without fusion?",
             lambda a: a.whole["before"]["bytes_read"], lambda k: k.compilation.before.bytes_read),
    Question("columns", "How many reductions are there?",
             lambda a: sum(op["nest"] == "reduction" for n in a.kernels for op in n["operations"]),
             lambda k: nests(k, "Reduction")),
    Question("concat", "Which shape has the result?",
            last_shape,
             lambda k: [*k.program[0](*k.program[1]).shape]),
    Question("concat", "How many pairs were fused?",
             lambda a: sum(d["fused"] for p in a.parts for d in p["decisions"]),
             lambda k: sum(d[-1].fused for d in k.part.schedule.decisions.by_pair.values())),
    Question("concat", "What does forbidding the first fused pair change?",
             lambda a: a.tool("what_if", forbid=[",".join(first_fused(a))])["after"]["passes"],
             lambda k: k.compilation.what_if(forbid=[known_first_fused(k)]).after.passes),
    Question("wrong_neg", "Which line is wrong?",
             lambda a: a.tool("blame")["fault"]["place"]["line"],
             lambda k: marked("wrong_neg", "wrong")),
    Question("wrong_neg", "Which operator is wrong?",
             lambda a: a.tool("blame")["fault"]["operator"].split(".")[-2], lambda k: "neg"),
    Question("wrong_neg", "How many nodes has the smallest failing graph?",
             lambda a: a.tool("minify", limit=100)["nodes"],
             lambda k: len(torch.fx.symbolic_trace(lambda x: torch.neg(x)).graph.nodes)),
    Question("mean_of_squares", "How many bytes does it move?",
             lambda a: total(a.steps, "bytes_read") + total(a.steps, "bytes_written"),
             lambda k: (24 * 50 + 24) * ELEMENT),
    Question("mean_of_squares", "Does a difference to itself change anything?",
             lambda a: a.client.document("diff", before=a.function, after=a.function)["changes"],
             lambda k: []),
    Question("mean_of_squares", "Which contenders does a benchmark compare, and do they agree?",
             lambda a: [(c["name"], c["agrees"]) for c in
                       a.tool("bench", seconds=0.05, against=["eager"])["contenders"]],
             lambda k: [("eager", True), ("inductor_lab", True)]),
)  # fmt: skip
assert len(PROGRAMS) == 20 and len(QUESTIONS) == 60
