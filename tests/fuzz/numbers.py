"""Lines with numbers from Python: ints and floats that torch makes symbolic once they change.

They are drawn for the numbers of a program's first call; at the others a line may raise, and then
the compiled program has to raise too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from hypothesis import strategies as st

from tests.fuzz.lines import Kind, dim_of, floating, partner, pick
from tests.fuzz.values import Values

NUMBER_KINDS: dict[str, Kind] = {}
VALUES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "int": ((3, -2, 5, 0, 1, 7), (2, 4, -1, 0, -3, 1), (1, 3, 2, -2, 9, 0), (-1, -4, 2, 3, 0, 12)),
    "float": ((1.5, -2.25, 0.0, 3.75, -0.5, 0.25), (2.0, 0.5, -1.25, 4.5, 0.0, -3.0)),
    "bool": ((True, False, True, True, False, True), (False, True, True, False, False, True)),
}
"""What a number may be in the calls of a program, one after the other."""
CALLS = 6


@dataclass(frozen=True)
class Number:
    """An argument of a program: a number, or a tensor whose `.item()` is one."""

    kind: Literal["int", "float", "bool"]
    row: int
    item: bool = False

    def value(self, turn: int) -> Any:
        return VALUES[self.kind][self.row][turn]

    def make(self, turn: int) -> Any:
        value = self.value(turn)
        wide = torch.float64 if self.kind == "float" else None
        return torch.tensor(value, dtype=wide) if self.item else value


def drawn(draw: st.DrawFn) -> tuple[Number, ...]:
    """The numbers of a program, an int among them."""
    some = draw(st.lists(st.sampled_from(["int", "int", "float", "bool"]), max_size=2))
    kinds: list[Any] = ["int", *some]
    rows = [draw(st.integers(0, len(VALUES[kind]) - 1)) for kind in kinds]
    items = [draw(st.integers(0, 3)) == 3 for _ in kinds]
    return tuple(map(Number, kinds, rows, items))


def kind(function: Kind) -> Kind:
    if function.__name__ in NUMBER_KINDS:
        raise ValueError(f"two kinds are called {function.__name__}")
    NUMBER_KINDS[function.__name__] = function
    return function


# ---- numbers made of numbers ----

INTS = (
    """{n} {n} {n} {n} -{n} {n}+1 {n}-2 {n}*2 {n}//2 {n}//-3 {n}%3 {n}%-2 {n}&3 {n}|4 {n}^1
    {n}<<1 {n}>>1 abs({n}) min({n},3) max({n},1) ~{n} -(-{n}//2) {n}**2 divmod({n},3)[1]
    {n}*{n}*{m} 2**abs({n})
    min({n},{m}) max({m},{n},0) {n}+{m} {n}-{m} {n}*{m} {n}//(abs({m})+1) int({n}>1) {n}%4
    abs({n})%3 int({f}) round({f}) math.floor({f}) math.ceil({f}) bool({n})+1
    {n}+({m}==2)
    """.split()
    + ["({n} if {n}>1 else 2)"]
)
FLOATS = (
    """{f} {f} {f} -{f} {f}*2 {f}+1 {n}/2 float({n}) round({f},1) round({f}/3,2) abs({f}) {f}%1
    min(float({f}),1.0) max(float({f}),0.5) math.sqrt(abs({f})) {f}*{n} 1/(abs({f})+1)
    {f}//0.5 {n}/3+{f} ({f}+4)**2 ({f}+4)**0.5 float(int({f})) round({f}*10,-1)
    """.split()
    + ["({f} if {f}>0 else 0.5)"]
)


def whole_number(values: Values, draw: st.DrawFn) -> str:
    return _filled(values, draw, draw(st.sampled_from(INTS)))


def fraction(values: Values, draw: st.DrawFn) -> str:
    return _filled(values, draw, draw(st.sampled_from(FLOATS)))


def _filled(values: Values, draw: st.DrawFn, text: str) -> str:
    def one(kinds: tuple[type, ...]) -> str:
        known = [n for n in values.env if n[0] == "n" and type(values.env[n]) in kinds]
        return draw(st.sampled_from(known)) if known else "2"

    found = text.format(n=one((int, bool)), m=one((int, bool)), f=one((float, int)))
    return found if found.isidentifier() else f"({found})"


# ---- lines ----

PLACES = [
    "{0}[{i}]", "{0}[{i}]*2", "{0}[{i}:]", "{0}[{i}:]+1", "{0}[-{i}:]", "{0}[:{i}]", "{0}[:-{i}]",
    "{0}[{i}:{j}]", "{0}[{i}::2]", "{0}[:{i}:2]", "{0}[...,{i}]", "{0}[...,{i}:]",
    "{0}[{i}:][{j}:]", "{0}[...,:{i}].sum(-1)", "{0}.select({d},{i})", "{0}.narrow({d},{i},1)",
    "{0}.narrow({d},0,{i})", "{0}.roll({i},{d})", "{0}.roll({i})", "{0}.flip({d})[{i}:]",
    "torch.cat([{0}[{i}:],{0}[:{i}]])", "{0}.tril({i})", "{0}.triu({i})", "{0}.diagonal({i})",
    "{0}.split(max({i},1),{d})[0]", "{0}.chunk(max({i},1),{d})[-1]",
    "{0}.tensor_split([{i}],{d})[1]", "{0}.unfold({d},abs({i})%3+1,1)",
    "{0}.repeat(abs({i})%4,*[1]*({0}.dim()-1))", "{0}.repeat_interleave(abs({i})%4,{d})",
    "{0}[:1].expand(abs({i})%5,*{0}.shape[1:])", "F.pad({0},({i},1))",
    "F.pad({0},(1,{i}),value={j})", "{0}.reshape(-1)[{i}:]", "{0}.unsqueeze(0)[:{i}]",
    "{0}.view(-1)[{i}]", "{0}.T[...,{i}:]", "{0}.index_select(0,torch.tensor([{i}]))",
    "{0}[torch.tensor([{i},0])]", "{0}[[{i}]]", "{0}.slice_scatter({0}[{i}:]*2,0,{i})",
    "{0}.select_scatter({0}[0],0,{i})", "{0}.index_fill(0,torch.tensor([{i}]),2)",
    "{0}.as_strided((2,),(1,),abs({i})%3)", "{0}.split_with_sizes([{i},{0}.shape[0]-{i}])[1]",
    "{0}[{i}:].sum(0)", "{0}[:{i}].cumsum(0)", "{0}[{i}:].flip(0)", "{0}[{i}:{i}+2]",
    "{0}[{i}].sum()",
]  # fmt: skip
SIZES = [
    "torch.arange({i})", "torch.arange({i},{j})", "torch.arange({i},{j}+9,2)",
    "torch.full((3,),{i})", "torch.arange(abs({i}))*{j}", "torch.zeros(abs({i}),2)",
    "torch.full((abs({i})%5,),{j})", "torch.ones(2,{i})", "torch.tensor([{i},{j}])",
    "torch.tensor({i})", "torch.eye(abs({i})%6)", "torch.arange(12).view(abs({i})%3+1,-1)",
    "torch.arange(8)<<({i}&3)", "torch.arange(9)>>abs({i})", "torch.arange(9)//{i}",
    "torch.arange(9)%{i}", "torch.arange(6)<{i}", "torch.full((2,),{f})",
]  # fmt: skip
SUMS = [
    "{0}+{i}", "{0}*{i}", "{i}-{0}", "{0}-{i}", "torch.add({0},{1},alpha={i})",
    "{0}.clamp(min={i})", "{0}.clamp({i},{i}+3)", "{0}.clamp(max={i})",
    "torch.where({0}>{i},{0},{1})", "{0}+{i}*{j}", "torch.where({0}>0,{0},{i})",
    "{0}.masked_fill({0}<{i},{j})", "torch.maximum({0},{1})+{i}", "{0} if {i}>1 else {0}*2",
    "{0} if {i}==0 else {0}-1",
]  # fmt: skip
SCALES = [
    "{0}*{f}", "{0}+{f}", "{0}/({f}*{f}+1)", "{f}-{0}", "torch.add({0},{1},alpha={f})",
    "{0}.clamp(min={f})", "{0}.lerp({1},{f})", "({0}.abs()+1)**({f}%2)", "{0}*{f}+{i}",
    "{0}/(abs({i})+1)", "F.leaky_relu({0},{f})", "F.pad({0},(1,1),value={f})",
    "{0} if {f}>0 else {0}*2", "{0}*round({f})", "F.elu({0},abs({f})+0.5)",
    "{0}.masked_fill({0}>1,{f})", "torch.full_like({0},{f})+{0}",
]  # fmt: skip
WRITES = [
    "{0}[{i}]=1", "{0}[{i}:]=2", "{0}[:{i}].mul_(2)", "{0}[-{i}:]+=1", "{0}.add_({i})",
    "{0}[{i}::2]=3", "{0}[...,{i}]=0", "{0}[{i}].copy_({0}[0])", "{0}[{i}:{j}].neg_()",
    "{0}.fill_({i})", "{0}.select(0,{i}).add_(1)", "{0}[{i}:].zero_()", "{0}.clamp_(max={i})",
    "{0}[...,:{i}]+=1",
]  # fmt: skip
CHECKS = [
    "torch._check({i}<20)", "torch._check({i}>=-20)", "torch._check({i}<=6)",
    "torch._check({i}>-3)", "torch._check({i}!=9)", "assert {i}<15",
]  # fmt: skip


@kind
def place(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dim() > 0)
    if name is None:
        return False
    i, j = whole_number(values, draw), whole_number(values, draw)
    text = draw(st.sampled_from(PLACES)).format(name, i=i, j=j, d=dim_of(values, draw, name))
    return values.add(text, (name,), True)


@kind
def sized(values: Values, draw: st.DrawFn) -> bool:
    i, j, f = whole_number(values, draw), whole_number(values, draw), fraction(values, draw)
    text = draw(st.sampled_from(SIZES))
    return values.add(text.format(i=i, j=j, f=f), (), "{f}" not in text)


@kind
def added(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dtype != torch.bool and values.exact(t))
    if name is None:
        return False
    i, j, other = (
        whole_number(values, draw),
        whole_number(values, draw),
        partner(values, draw, name),
    )
    text = draw(st.sampled_from(SUMS)).format(name, other, i=i, j=j)
    return values.add(text, (name, other), True)


@kind
def scaled(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, floating)
    if name is None:
        return False
    i, f, other = whole_number(values, draw), fraction(values, draw), partner(values, draw, name)
    text = draw(st.sampled_from(SCALES)).format(name, other, i=i, f=f)
    return values.add(text, (name, other), False)


@kind
def written(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dim() > 0 and t.dtype != torch.bool)
    if name is None:
        return False
    i, j = whole_number(values, draw), whole_number(values, draw)
    return values.write(draw(st.sampled_from(WRITES)).format(name, i=i, j=j), name, (name,))


@kind
def checked(values: Values, draw: st.DrawFn) -> bool:
    text = draw(st.sampled_from(CHECKS)).format(i=whole_number(values, draw))
    return values.require(text)
