"""Lines about memory that several tensors share: overlapping views, partial writes, `.data`, hooks,
operators of the user's that write, and conversions at the bounds of integers."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from tests.fuzz import operators  # noqa: F401  (defines torch.ops.lab_fuzz)
from tests.fuzz.lines import Kind, dim_of, floating, partner, pick, whole
from tests.fuzz.values import Values, overlaps

ALIAS_KINDS: dict[str, Kind] = {}


def kind(function: Kind) -> Kind:
    if function.__name__ in ALIAS_KINDS:
        raise ValueError(f"two kinds are called {function.__name__}")
    ALIAS_KINDS[function.__name__] = function
    return function


OVERLAPPING = [
    "{0}.expand(3,*{0}.shape)", "{0}.unfold({d},2,1)", "{0}.as_strided((2,2),(1,1))",
    "{0}[...,None].expand(*{0}.shape,2)", "{0}[:1].expand(3,*{0}.shape[1:])",
    "{0}.as_strided((3,),(0,))", "{0}.unfold(0,3,2)", "{0}.mT.unfold(0,2,1)",
    "{0}.view(-1).as_strided((3,2),(2,1),1)", "{0}.detach().expand(2,*{0}.shape)",
    "{0}.view(-1).as_strided((2,3),(1,2))",
]  # fmt: skip
WRITES = [
    "{0}[0]=1", "{0}[0].mul_(2)", "{0}[...,0]=1", "{0}[:,0]+=1", "{0}.index_fill_(0,I,4)",
    "{0}.index_put_((I,),{0}[0]+1)", "{0}.index_put_((I,),{0}.new_tensor(2))", "{0}.copy_({1})",
    "{0}.masked_fill_({0}>0,1)", "{0}.select(0,1).add_(1)", "{0}.index_copy_(0,I,{0}[:1]*2)",
    "{0}.scatter_(0,I.view([1]*{0}.dim()),3)", "{0}.index_add_(0,I,{0}[:1])", "{0}.data[0]=2",
    "{0}.fill_(2)", "{0}.zero_()", "{0}.masked_scatter_({0}>0,torch.ones_like({0}))", "{0}[I]=5",
    "{0}[0,0]=7", "{0}.view(-1)[1:].fill_(2)", "{0}[-1].copy_({1}[0])", "{0}.add_(1)", "{0}[I]+=1",
    "{0}.index_put_((I,),{0}[:1],accumulate=True)", "{0}[{0}>1]=0", "{0}.unbind(0)[1].neg_()",
]  # fmt: skip
AT = "torch.tensor([0])"


def made_line(values: Values) -> str:
    """The variable of the last line."""
    return values.names[-1]


@kind
def overlap(values: Values, draw: st.DrawFn) -> bool:
    """A view whose elements share memory, a write through it, and a read of its base."""
    name = pick(values, draw, lambda t: t.dim() > 0 and t.dtype != torch.bool)
    if name is None:
        return False
    text = draw(st.sampled_from(OVERLAPPING)).format(name, d=dim_of(values, draw, name))
    if not values.add(text, (name,), True):
        return False
    view = made_line(values)
    other = partner(values, draw, view)
    text = draw(st.sampled_from(WRITES)).replace("I", AT)
    sources = (view, *((other,) if "{1}" in text else ()))
    return values.write(text.format(view, other), view, sources, overlapping=True) and (
        values.add(f"{name}+1", (name,), True) or True
    )


@kind
def write_again(values: Values, draw: st.DrawFn) -> bool:
    """A write through an overlapping view that is there already."""
    view = pick(values, draw, lambda t: t.dtype != torch.bool and t.dim() > 0 and overlaps(t))
    if view is None:
        return False
    other = partner(values, draw, view)
    text = draw(st.sampled_from(WRITES)).replace("I", AT)
    sources = (view, *((other,) if "{1}" in text else ()))
    return values.write(text.format(view, other), view, sources, overlapping=True)


DATA = [
    "{0}.data.fill_(2)", "{0}.data[0]=1", "{0}.data.copy_({1})", "{0}.detach().mul_(2)",
    "{0}.data.clamp_(-1,1)", "{0}.data[...,I]=2", "{0}.data.view(-1)[1:].add_(1)",
    "{0}.data=({0}*2).data", "{0}.data=torch.zeros_like({0}).data", "{0}.data.mT.neg_()",
    "{0}.data[1:]+={0}.data[:-1].clone()", "{0}.detach()[0].zero_()",
]  # fmt: skip


@kind
def data(values: Values, draw: st.DrawFn) -> bool:
    """A write that autograd does not see."""
    name = pick(values, draw, lambda t: t.dim() > 0 and t.dtype != torch.bool)
    if name is None:
        return False
    other = partner(values, draw, name)
    text = draw(st.sampled_from(DATA)).replace("I", AT)
    sources = (name, *((other,) if "{1}" in text else ()))
    return values.write(text.format(name, other), name, sources)


PARTIAL = [
    "{0}[1:]+=1", "{0}[I]=3", "{0}[I]+=1", "{0}[...,I]*=2", "{0}[::2]={1}[::2]", "{0}[0,...]=2",
    "{0}[...,-1]=1", "{0}[1:].copy_({0}[:-1].clone())", "{0}[I,...].add_(1)", "{0}[0].neg_()",
    "{0}.narrow({d},0,1).fill_(4)", "{0}.select({d},-1).mul_(2)", "{0}[:,I]=0",
    "{0}[...,::2].neg_()", "{0}.index_copy_({d},I,{0}.narrow({d},0,1)*2)",
    "{0}.index_add_({d},I,{0}.narrow({d},0,1))", "{0}.diagonal()[:1].fill_(9)",
    "{0}.chunk(2,{d})[0].add_(1)", "{0}.unflatten(0,(-1,1))[0]+=1", "{0}+=1", "{0}-={1}",
    "{0}.view(-1)[I]=3", "{0}.movedim(0,-1)[0]=1", "{0}[I[0]]+=1", "{0}[(I+1)%{0}.shape[0]]-=1",
    "{0}[torch.arange({0}.shape[0])%2==0]=1", "{0}[-1:]={1}[:1]",
]  # fmt: skip


@kind
def part_of_argument(values: Values, draw: st.DrawFn) -> bool:
    """A write to a part of an argument, of a parameter or of a buffer."""
    given = [n for n in values.names if n.startswith("x")]
    fits = [n for n in given if values[n].dim() > 0 and values[n].dtype != torch.bool]
    if not fits:
        return False
    name = draw(st.sampled_from(fits))
    other = partner(values, draw, name)
    text = draw(st.sampled_from(PARTIAL)).replace("I", AT)
    text = text.format(name, other, d=dim_of(values, draw, name))
    return values.write(text, name, (name, *((other,) if other in text else ())))


HOOKS = [
    "{0}.requires_grad and {0}.register_hook(lambda g: g*2)",
    "{0}.requires_grad and {0}.register_hook(lambda g: g+1)",
    "{0}.requires_grad and {0}.register_hook(lambda g: None)",
    "{0}.requires_grad and {0}.retain_grad()",
]


@kind
def hook(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, floating)
    return name is not None and values.require(draw(st.sampled_from(HOOKS)).format(name))


OPERATORS = [
    "torch.ops.lab_fuzz.double_({0})", "torch.ops.lab_fuzz.double_({0}[1:])",
    "torch.ops.lab_fuzz.double_({0}.mT)", "torch.ops.lab_fuzz.add_rows_({0},{1})",
    "torch.ops.lab_fuzz.fill_two_({0}[:1],{0}[1:])",
    "torch.ops.lab_fuzz.double_({0}.view(-1)[::2])",
    "torch.ops.lab_fuzz.fill_two_({0},{0}.clone())", "torch.ops.lab_fuzz.double_({0}.detach())",
]  # fmt: skip


@kind
def operator(values: Values, draw: st.DrawFn) -> bool:
    """An operator of the user's, without a gradient."""
    name = pick(values, draw, lambda t: t.dim() > 0 and t.dtype != torch.bool)
    if name is None:
        return False
    if draw(st.integers(0, 3)) == 3:
        return values.add(f"torch.ops.lab_fuzz.plus_one({name}.detach())", (name,), True)
    other = partner(values, draw, name)
    text = draw(st.sampled_from(OPERATORS)).format(f"{name}.detach()", other)
    return values.write(text, name, (name, *((other,) if other in text else ())))


@kind
def result_in_argument(values: Values, draw: st.DrawFn) -> bool:
    """An operator of the user's whose result is memory of its argument."""
    name = pick(values, draw, lambda t: t.dim() > 0)
    texts = ["torch.ops.lab_fuzz.rest({0})", "torch.ops.lab_fuzz.rest({0}).clone()"]
    text = draw(st.sampled_from(texts)).format(f"{name}.detach()")
    return name is not None and values.add(text, (name,), True)


BOUNDS = [
    "({0}.to(torch.int64)+(2**31-1)).to(torch.int32)",
    "({0}.to(torch.int64)*2**30).to(torch.int16)", "({0}.double()+(2**31-2100)).to(torch.int32)",
    "({0}.double()-(2**31-2100)).to(torch.int32)",
    "({0}.double().abs().clamp(max=2e3)+2**31).to(torch.uint32).to(torch.int64)",
    "({0}.double().abs().clamp(max=2e3)+(2**32-2100)).to(torch.uint32).to(torch.int64)",
    "(({0}.double().abs().clamp(max=2e3)+2**11)*2.0**52).to(torch.uint64).to(torch.int64)",
    "({0}.float().abs().clamp(max=2e3)*128+3e9).to(torch.uint32).to(torch.int64)",
    "({0}.abs()%28+100).to(torch.int8)", "(-({0}.abs()%29)-100).to(torch.int8)",
    "({0}.abs()%56+200).to(torch.uint8)", "({0}.double()*0-2.0**63).to(torch.int64)",
    "({0}.to(torch.int64)+(2**63-3000)).to(torch.float64)/2.0**63",
    "({0}.to(torch.int64)-(2**63-3000)).to(torch.int32)",
    "{0}.to(torch.int64).to(torch.uint16)*1.0",
    "({0}.double().clamp(-8,8)*2.0**60).to(torch.int64)>>32", "{0}.to(torch.int32).to(torch.uint8)",
    "({0}.to(torch.int64)+(2**31-9)).to(torch.int32)+9", "{0}.to(torch.int64).to(torch.int8).abs()",
    "torch.full_like({0},2**31-1,dtype=torch.int32)+{0}.to(torch.int32)",
    "({0}.to(torch.int64)|(-2**63)).sign()",
    "torch.iinfo(torch.int64).max-{0}.to(torch.int64).abs()",
    "({0}.to(torch.int16)*2**15).to(torch.int16)",
    "({0}*0.0+65000).to(torch.uint16).to(torch.int32)",
]  # fmt: skip


@kind
def bound(values: Values, draw: st.DrawFn) -> bool:
    """A conversion whose result is near the bounds of its dtype; floats are within them."""
    name = pick(values, draw, lambda t: (whole(t) or floating(t)) and values.exact(t))
    if name is None:
        return False
    text = draw(st.sampled_from(BOUNDS))
    return values.add(text.format(name), (name,), "/" not in text)


@kind
def counted(values: Values, draw: st.DrawFn) -> bool:
    """A module that counts its calls in an attribute."""
    name = pick(values, draw, lambda t: t.dtype != torch.bool)
    if "m" not in values.env or name is None:
        return False
    return values.require("m.calls += 1") and values.add(f"{name}+m.calls", (name,), True)
