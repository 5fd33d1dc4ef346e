"""`why_not_fused`, against what stock's output code contains."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadArguments, NotReported, UnknownName
from inductor_lab.debug.explore.why_not_fused import WhyNotFused
from inductor_lab.saved.documents.outline import select
from inductor_lab.stock.fusion_rules import RULES, SILENT, UNKNOWN, explained, verdict_of
from inductor_lab.stock.stock_compilation import StockPart
from tests.saved.schemas import valid
from tests.stock.fusing import PROGRAMS, Program

KERNEL = re.compile(r"^(\w+) = async_compile\.\w+\(.*?r?'''(.*?)^'''\)", re.S | re.M)
CALL = re.compile(r"^ +(\w+)\((.*)\)$", re.M)
POINTER = r"(?:in_out|in|out)_ptr\d+"
STORE = re.compile(rf"\.store\(({POINTER})|^ *({POINTER})\[[^=]*\] = ", re.M)


def stored_in(part: StockPart) -> dict[str, tuple[str, int]]:
    """Buffer → the kernel and the loop nest that stores it, read from the C++ code by its
    indentation; without buffers that share their storage."""
    found: dict[str, tuple[str, int]] = {}
    calls = {name: given.split(", ") for name, given in CALL.findall(part.text)}
    for name, code in KERNEL.findall(part.text):
        head, _, body = code.partition(")\n{")
        parameters = re.findall(rf"\b({POINTER})\b", head)
        shared = set(re.findall(rf"auto \w+ = ({POINTER});", body))
        for number, nest in enumerate(nests_by_indentation(body)):
            stored = {a or b for a, b in STORE.findall(nest)} - shared
            for pointer in stored.intersection(parameters):
                buffer = calls[name][parameters.index(pointer)]
                found[buffer] = ("several", 0) if buffer in found else (name, number)
    return {buffer: place for buffer, place in found.items() if place[0] != "several"}


def nests_by_indentation(body: str) -> list[str]:
    """Blocks that are indented by 4, or by 8 in a parallel region that is indented by 4."""
    text = re.sub(r"^    #pragma omp parallel.*\n    \{\n(.*?)^    \}", lambda m: re.sub(
        "^    ", "", m[1], flags=re.M), body, flags=re.S | re.M)  # fmt: skip
    return re.findall(r"^    \{\n(.*?)^    \}", text, re.S | re.M)


def disagreements(part: StockPart, name: str, found: lab.Compilation) -> tuple[list[str], int]:
    """Pairs whose answer is not what the code says, and the number of pairs that were checked."""
    nodes = {node.writes[0]: node for node in part.ir_before if node.writes}
    stored = stored_in(part)
    generated = {b for b, node in nodes.items() if node.kind == "ComputedBuffer"}
    mentioned = set(re.findall(r"\bbuf\d+\b", part.text))
    wrong, checked = [], 0
    for first, second in combinations(nodes, 2):
        if not {first, second} <= generated:
            expected = False  # a library call
        elif first in stored and second in stored:
            expected = stored[first] == stored[second]
        elif first not in mentioned and first in nodes[second].reads:
            expected = True  # never in memory: its reader computes it
        else:
            continue
        checked += 1
        answer = found.why_not_fused(first, second, part=name, ours=False)
        if answer.fused != expected:
            wrong.append(f"{name}: {first}, {second}: code says {expected}: {answer}")
        assert answer.fused or answer.pairs[0].decision.verdicts, answer
    return wrong, checked


def renumbered(compilation, name: str) -> str:
    """The name of a buffer or node of torch 2.13 in this torch; "" if there is none.

    In 2.13 the result of a fallback is a node of its own, which later versions do not have.
    """
    at, _, short = name.rpartition(".")
    part = next(p for p in compilation.parts if p.name == (at.rpartition(".")[2] or "forward"))
    found, kinds = re.fullmatch(r"(buf|op)(\d+)", short), [n.kind for n in part.ir_before]
    if found is None or any("MultiOutput" in kind for kind in kinds):
        return name
    places = (number for number, kind in enumerate(kinds) if "Fallback" in kind)
    results = [place + 1 + number for number, place in enumerate(places)]
    number = int(found[2])
    if number in results:
        return ""
    return f"{at}{'.' * bool(at)}{found[1]}{number - sum(number > each for each in results)}"


def here(compilation, pairs) -> list[tuple[str, str, str | None]]:
    """The pairs that this torch has."""
    named = [(*(renumbered(compilation, name) for name in names), rule) for *names, rule in pairs]
    return [pair for pair in named if pair[0] and pair[1]]


def check(compilation, pairs, fewest: int) -> None:
    checked = 0
    for number, graph in enumerate(compilation.graphs):
        for part in graph.parts:
            wrong, count = disagreements(part, f"g{number}.{part.name}", compilation)
            assert not wrong, "\n".join(wrong)
            checked += count
    assert checked >= fewest, checked
    for first, second, rule in here(compilation, pairs):
        answer = compilation.why_not_fused(first, second, ours=False)
        rules = {v.rule for pair in answer.pairs for v in pair.decision.verdicts}
        assert answer.fused is (rule is None) and (rule is None or rule in rules), answer


ATTENDED = (
    ("op0", "op1", None), ("buf1", "buf2", None), ("buf5", "buf7", None), ("buf0", "buf8", None),
    ("buf3", "buf4", "library_call"), ("buf4", "buf5", "library_call"),
    ("buf8", "buf9", "library_call"), ("buf10", "buf11", "no_code"),
    ("buf3", "buf6", "same_iteration_space"), ("buf6", "buf7", "after_reduction"),
    ("op5", "op12", "no_shared_data"), ("buf0", "buf12", "no_shared_data"),
    ("g0.forward.buf0", "g0.backward.buf8", "one_graph"),
    ("g0.backward.buf9", "g0.backward.buf10", None),
    ("g0.backward.buf3", "g0.backward.buf6", "after_reduction"),
    ("g0.backward.buf3", "g0.backward.buf4", "no_shared_data"),
)  # fmt: skip


def test_answers_agree_with_the_output_code(attended):
    check(attended, ATTENDED, fewest=75)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_answers_agree_with_the_output_code_of_other_programs(program: Program):
    from torch._inductor import config  # noqa: TID251

    with config.patch(dict(program.settings)):
        found = lab.inspect(program.run, *program.arguments(), compiler="stock")
    check(found, program.pairs, fewest=0 if program.name == "broken" else 3)


def test_lines_mean_all_their_values(attended):
    first = next(n.span.line for n in attended.graphs[0].forward.graph.nodes if n.name == "exp")
    answer = attended.why_not_fused(first, f"functions.py:{first + 1}", ours=False)
    parts = {pair.part for pair in answer.pairs}
    assert parts == {"g0.forward", "g0.backward"} and not answer.fused
    assert len(answer.pairs) > 10 and str(answer).count(": not fused") == len(answer.pairs)


def test_several_pairs_are_short(attended):
    """The rules that refuse, the largest saving first, and each meaning once."""
    listed = attended.why_not_fused(ours=False)
    text = str(listed)
    assert text.count("\n\n") == len(listed.pairs) > 3 and " ok" not in text
    means = [line for line in text.splitlines() if line.startswith("            means: ")]
    assert means and len(means) == len(set(means))
    saved = [int(found) for found in re.findall(r"saves (\d+) B of memory traffic", text)]
    assert saved == sorted(saved, reverse=True)
    one = str(attended.why_not_fused(listed.pairs[0].decision.producer,
                                     listed.pairs[0].decision.consumer, ours=False))  # fmt: skip
    assert "means: " in one


def test_our_compiler_answers_the_same_pair(attended):
    answer = attended.why_not_fused("buf8", "buf9", measure=0.05)  # a product, and its cumsum
    (pair,) = answer.pairs
    assert not answer.fused and pair.ours.fused and len(pair.ours.pair) == 2
    assert pair.ours.seconds > 0 and pair.ours.seconds_apart > 0
    assert "inductor_lab: fuses them" in str(answer) and "without this fusion" in str(answer)
    found = answer.to_dict()
    assert found["ours"]["fused"] and found["compiler"] == "stock torch.compile"
    same = attended.why_not_fused("op0", "op1")
    assert same.fused and same.pairs[0].ours.fused


def test_the_answer_is_a_valid_document(attended, request):
    keep = request.config.getoption("--update-golden")
    last = renumbered(attended, "buf12")
    one = attended.why_not_fused("buf5", last, ours=False).to_dict()
    valid(one, keep=keep)
    assert one["verdicts"][0]["meaning"] and one["verdicts"][0]["cure"]
    listed = attended.why_not_fused(part="g0.forward", ours=False)
    found = listed.to_dict()
    valid(found, keep=keep)
    assert found["id"] == "g0.forward.decisions" and len(found["decisions"]) > 5
    assert not any(each["fused"] for each in found["decisions"])
    assert select(found, found["decisions"][0]["id"])["producer"]


def test_a_saved_compilation_answers_too(attended, tmp_path):
    loaded = lab.load(attended.save(tmp_path / "stock.json"))
    for first, second, _ in here(attended, ATTENDED):
        ours, saved = (c.why_not_fused(first, second, ours=False) for c in (attended, loaded))
        assert isinstance(saved, WhyNotFused) and str(ours) == str(saved)


def test_bad_input(attended):
    with pytest.raises(UnknownName, match="unknown value 'buf99'"):
        attended.why_not_fused("buf0", "buf99")
    with pytest.raises(UnknownName, match="unknown value 4711"):
        attended.why_not_fused(4711, "buf0")
    with pytest.raises(UnknownName, match=r"no part 'g7\.forward'"):
        attended.why_not_fused("buf0", "buf1", part="g7.forward")
    with pytest.raises(BadArguments, match="not a pair"):
        attended.why_not_fused("buf0")


def test_a_trace_without_decisions_says_how_to_record_them(attended):
    from dataclasses import replace

    graph = attended.graphs[0]
    bare = replace(graph.forward, ir_before=(), missing={})
    without = replace(attended, graphs=(replace(graph, forward=bare),))
    with pytest.raises(NotReported, match="compiler='stock'"):
        without.why_not_fused("buf0", "buf1")


def test_every_rule_is_explained():
    for rule in RULES:
        verdict = verdict_of(rule.says + " (64, 32)")
        assert verdict.rule == rule.name and verdict.kind == rule.kind
        assert explained(verdict) == (rule.meaning, rule.cure) and rule.meaning and rule.cure
    assert all(explained(verdict_of("x")) == ("", "") for _ in SILENT)
    unknown = verdict_of("a sentence that no version has")
    assert (unknown.rule, unknown.reason) == (UNKNOWN, "a sentence that no version has")


def test_every_sentence_of_this_torch_is_known():
    """The sentences in the source of stock's scheduler: a new one shows that a rule is missing."""
    from torch._inductor import choices, scheduler  # noqa: TID251
    from torch._inductor.codegen import simd  # noqa: TID251

    sentence = re.compile(r'(?:\bwhy|WhyNoFuse\(\w+, \w+\))\(\s*"((?:[^"])+)"')
    said = set()
    for module in (scheduler, choices, simd):
        with open(module.__file__, encoding="utf-8") as file:
            said |= set(sentence.findall(file.read()))
    assert len(said) > 30
    assert [each for each in sorted(said) if verdict_of(each).rule == UNKNOWN] == []
