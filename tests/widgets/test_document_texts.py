"""The explorer's document: in Chinese every word that it shows is Chinese, or code, or a term; in
English one is singular."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.accelerators import LISTS
from inductor_lab.compiler.schedule.fusion.rules import LEGALITY, PROFIT
from inductor_lab.notebook.language import say
from inductor_lab.widgets.model import document
from inductor_lab.widgets.views import tree_of

TERMS = set("kernel pass flop eager Dynamo TorchDynamo Python NaN".split())
"""Words that a Chinese engineer says in English."""
UNITS = {"ms", "µs", "ns", "kB", "MB", "GB"}
WORD = re.compile(r"(?<![\w.@/'])[A-Za-zµ]{2,}(?![\w.(@/'])")
"""Alone: no part of a name with underscores or dots, and no call."""
NOT_SHOWN = {"texts", "words", "links", "format", "open", "switches", "language", "kind", "id",
             "mark", "files", "data", "kernel", "pane"}  # fmt: skip
"""Keys whose values the page computes with."""


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.project = torch.nn.LayerNorm(16), torch.nn.Linear(16, 48)
        self.widen, self.back = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(self.norm(x)).chunk(3, -1)
        x = x + F.scaled_dot_product_attention(query, key, value)
        return x + self.back(F.gelu(self.widen(x)))


def softmax() -> Any:
    return lab.inspect(lambda x, w: torch.softmax(x @ w, -1), *torch.randn(2, 64, 64))


def layer_norm() -> Any:
    return lab.inspect(lambda x: F.layer_norm(x, (64,)), torch.randn(32, 64))


def attention() -> Any:
    return lab.inspect(Attention(), torch.randn(2, 8, 16))


def training_step() -> Any:
    def loss(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.dropout(torch.softmax(x @ w, -1), 0.5).sum()

    return lab.inspect(loss, torch.randn(64, 32), torch.randn(32, 64, requires_grad=True))


def convolution() -> Any:
    layers = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()
    return lab.inspect(torch.nn.Sequential(*layers).eval(), torch.randn(1, 3, 16, 16))


PROGRAMS = (softmax, layer_norm, attention, training_step, convolution)


@pytest.fixture
def chinese() -> Iterator[None]:
    """With nothing compiled before: TorchDynamo wraps modules of torch's in one function, so other
    tests make a compile here a recompile, whose reason is in torch's words."""
    torch.compiler.reset()
    lab.language("zh")
    yield
    lab.language("en")


def walk(shown: Any) -> Iterator[tuple[str, bool]]:
    """Every text of a document, and whether it is code."""
    match shown:
        case str():
            yield shown, False
        case {"kind": "steps"} | {"title": "guards"}:
            yield from ((text, True) for text in strings(shown))
        case {"kind": "table"}:
            yield from walk(tree_of(shown))
        case {"items": items, "frames": frames, "title": title}:
            yield from walk([title, *([label, sub, tip] for _, label, sub, _, tip, *_ in items)])
            yield from walk([[label, sub, tip] for _, label, sub, tip, *_ in frames])
        case {"lines": lines, "language": language, **head}:
            yield from walk(head)
            yield from ((line[0], bool(language)) for line in lines)
        case dict():
            for key, value in shown.items():
                if key not in NOT_SHOWN:
                    yield from walk(value)
        case [str(), {**attributes}, *children]:
            names = ("title", "aria-label")
            yield from walk([attributes[name] for name in names if name in attributes])
            yield from (found for child in children for found in walk(child))
        case list() | tuple():
            yield from (found for each in shown for found in walk(each))


def strings(shown: Any) -> Iterator[str]:
    if isinstance(shown, str):
        yield shown
    elif isinstance(shown, dict | list | tuple):
        for each in shown.values() if isinstance(shown, dict) else shown:
            yield from strings(each)


def english(compilation: Any) -> set[str]:
    """Texts that have a word which is neither Chinese nor code of this program nor a name nor a
    term."""
    texts = list(walk(document(compilation)))
    code = {word for text, is_code in texts if is_code for word in re.findall("[A-Za-z]+", text)}
    phases = {word for phase in compilation.phases for word in re.findall(r"\w+", phase.name)}
    passes = {word for table in LISTS.values() for name in table for word in WORD.findall(name)}
    named = {*LEGALITY, *PROFIT, *passes, "output"}
    known = code | phases | named | TERMS | UNITS
    said = {say(text) for text, is_code in texts if not is_code}
    return {text for text in said if set(WORD.findall(text)) - known}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_word_is_chinese_or_code(chinese: None, program: Callable[[], Any]) -> None:
    assert english(program()) == set()


ONE_OF_MANY = re.compile(r"(?<![\w.,:/=-])1 (?:[a-z]+ )?(?!keeps|is|has)[a-z]+[a-rt-z]s\b")


@pytest.mark.parametrize("program", PROGRAMS)
def test_one_is_singular(program: Callable[[], Any]) -> None:
    found = program()
    values = [found, found.coverage]
    for part in found.parts:
        values += [part, part.graph, part.rewrites, *part.rewrites.steps, part.loops, part.schedule,
                   *part.schedule.groups, *part.schedule.decisions, *part.kernels, part.host,
                   *part.trees]  # fmt: skip
    texts = {*strings(document(found)), *map(repr, values), *map(str, values)}
    assert [text for text in texts if ONE_OF_MANY.search(text)] == []
