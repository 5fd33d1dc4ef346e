"""A line whose indices may be out of range: then eager mode raises, and so must what is compiled.

The indices are a tensor that the program makes.  Most are in range, some count from the other end.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.fuzz.lines import dim_of, pick, whole
from tests.fuzz.values import Values

RARELY = 10
"""One of so many programs has such a line."""

READS = [
    "{0}.index_select({d},{i})", "{0}.gather({d},{full})", "{0}.take_along_dim({full},{d})",
    "F.embedding({i},{0})", "F.embedding({i},{0},padding_idx=0)", "{0}[{i}]", "{0}[...,{last}]",
    "{0}[{i},{i}%{0}.shape[1]]", "{0}[:,{last},None]", "{0}.take({any})", "{0}[{i}.view(-1,1)]*2",
    "{0}[{i},...,0]", "F.one_hot({i},{0}.shape[0])", "torch.where({0}[{i}]>0,{0}[{i}],1)",
    "F.embedding_bag({i}[None],{0},mode='sum')", "{0}.index_select({d},{i}).sum(0)",
    "torch.cat([{0},{0}[{i}]])", "F.pad({0}[{i}],(1,1))", "{0}[{i}.to(torch.int32)]",
    "F.nll_loss({0}[:{last}.shape[0]],{last})", "F.cross_entropy({0}[:{last}.shape[0]],{last})",
    "{0}.index_put(({i},),{0}[0])", "{0}.index_put(({i},),{0}[:1],accumulate=True)",
    "{0}.index_add({d},{i},{0}.index_select({d},torch.zeros_like({i})))",
    "{0}.index_copy({d},{i},{0}.index_select({d},torch.zeros_like({i})))",
    "{0}.index_fill({d},{i},2)", "{0}.scatter({d},{full},2)",
    "{0}.put({any},{0}.reshape(-1)[:1].expand({any}.shape))",
    "{0}.scatter({d},{full},{0}.narrow({d},0,1).expand({full}.shape))",
    "{0}.scatter_add({d},{full},{0}.narrow({d},0,1).expand({full}.shape))",
    "{0}.scatter_reduce({d},{full},{0}.narrow({d},0,1).expand({full}.shape),'amax')",
    "{0}.index_reduce({d},{i},{0}.index_select({d},torch.zeros_like({i})),'amin')",
]  # fmt: skip
WRITES = [
    "{0}[{i}]=1", "{0}[{i}]+=1", "{0}.index_add_(0,{i},{0}[torch.zeros_like({i})])",
    "{0}.index_fill_({d},{i},3)", "{0}.scatter_({d},{full},3)", "{0}[...,{last}]=2",
    "{0}.index_put_(({i},),{0}[0],accumulate=True)",
]  # fmt: skip
SHIFTS = ["", "", "", "", "", "", "-{n}", "-{n}", "-1", "+1", "-{n}-1"]
"""Of indices below n: the last three go one too far, if the first or last index is among them."""


def reach(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dim() > 0 and t.numel() > 0)
    if name is None:
        return False
    known = pick(values, draw, lambda t: whole(t) and values.exact(t) and 0 < t.numel() < 50)
    shift, text = draw(st.sampled_from(SHIFTS)), draw(st.sampled_from(READS + WRITES))
    made = f"{known}.reshape(-1).to(torch.int64)" if known else "torch.arange(3)"

    def below(length: str) -> str:
        return f"({made}%{length}{shift.format(n=length)})"

    d = dim_of(values, draw, name) if "{d}" in text else 0
    rank, at = values[name].dim(), d % values[name].dim()
    i = below(f"{name}.shape[{d}]")
    here = ",".join("-1" if n == at else "1" for n in range(rank))
    sizes = ",".join("-1" if n == at else f"{name}.shape[{n}]" for n in range(rank))
    places = {"i": i, "any": below(f"{name}.numel()"), "last": below(f"{name}.shape[-1]")}
    line = text.format(name, d=d, full=f"{i}.view({here}).expand({sizes})", **places)
    sources = (name, known) if known else (name,)
    if text in WRITES:
        return values.write(line, name, sources, may_raise=True)
    return values.add(line, sources, not line.startswith(("F.nll", "F.cross")), may_raise=True)
