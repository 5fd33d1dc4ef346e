"""The lines that a random program is made of, by kind: each draws its operands and appends itself.

A kind returns False where the program has nothing that fits; then another is drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import strategies as st

from tests.fuzz.values import Values

Kind = Callable[[Values, st.DrawFn], bool]
KINDS: dict[str, Kind] = {}


def kind(function: Kind) -> Kind:
    if function.__name__ in KINDS:
        raise ValueError(f"two kinds are called {function.__name__}")
    KINDS[function.__name__] = function
    return function


def floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()


def whole(tensor: torch.Tensor) -> bool:
    return tensor.dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def pick(values: Values, draw: st.DrawFn, fits: Callable[[torch.Tensor], bool]) -> str | None:
    found = values.where(fits)
    return draw(st.sampled_from(found)) if found else None


def partner(values: Values, draw: st.DrawFn, name: str, same_kind: bool = True) -> str:
    """Something that broadcasts with `name` (itself, if nothing else does)."""

    def fits(other: torch.Tensor) -> bool:
        one = values[name]
        if same_kind and (floating(one), one.dtype == torch.bool) != (
            floating(other),
            other.dtype == torch.bool,
        ):
            return False
        pairs = zip(reversed(one.shape), reversed(other.shape), strict=False)
        return all(a == b or 1 in (a, b) for a, b in pairs)

    return pick(values, draw, fits) or name


def dim_of(values: Values, draw: st.DrawFn, name: str) -> int:
    rank = values[name].dim()
    return draw(st.integers(-rank, rank - 1)) if rank else 0


# ---- element by element ----

SMOOTH = """{0}.sin() {0}.cos() {0}.tanh() {0}.sigmoid() {0}.clamp(max=4).exp() {0}.abs().sqrt()
    {0}.abs().log1p() F.gelu({0}) F.silu({0}) {0}.erf() {0}.square().add(1).rsqrt() F.softplus({0})
    {0}.abs().add(1).reciprocal() F.elu({0}) {0}.atan() {0}*0.3 {0}/3 F.hardswish({0}) F.mish({0})
    {0}.abs().add(1).log() {0}.clamp(max=4).expm1() {0}.clamp(max=8).exp2() {0}.sinc() {0}.asinh()
    {0}.abs().add(1).lgamma() {0}.erfc() {0}.clamp(-2,2).cosh() F.logsigmoid({0}) F.tanhshrink({0})
    F.gelu({0},approximate='tanh') F.selu({0}) F.celu({0},2) {0}.abs().add(1).pow(1.5)
    3/({0}.abs()+1)
    {0}.sigmoid().logit() {0}.tanh().mul(0.9).erfinv() {0}.tanh().asin() {0}.abs().add(1).digamma()
    {0}.deg2rad() 2**{0}.clamp(max=4) torch.special.i0e({0}) {0}.abs().add(1).log2()
    {0}.tan().atan()
    """.split()
EXACT = """-{0} {0}.abs() {0}.relu() {0}+1 {0}*2 2-{0} {0}.clamp(-1,2) {0}.square() {0}.clamp(min=1)
    torch.rsub({0},1,alpha=2) {0}.add(2,alpha=3) {0}.pow(2) {0}.pow(3) {0}.positive()
    {0}.nan_to_num()""".split()
JUMPS = """{0}.isnan() {0}.floor() {0}.ceil() {0}.round() {0}.trunc() {0}.sign() {0}//2 {0}%3
    {0}%-2.5
    {0}.frac() torch.fmod({0},3) F.hardshrink({0},0.5) F.threshold({0},0.25,7) {0}.heaviside({0})
    torch.div({0},4,rounding_mode='trunc') torch.div({0},-3,rounding_mode='floor')
    {0}.signbit() {0}.round(decimals=1) torch.copysign({0},-{0}) F.relu6({0}) F.hardtanh({0})
    torch.float_power({0},2)""".split()
WHOLE = """~{0} {0}&6 {0}|1 {0}^3 {0}>>1 {0}<<2 {0}//3 {0}%5 {0}//-2 torch.fmod({0},-3) {0}.sign()
    torch.div({0},3,rounding_mode='trunc') {0}%-4 {0}.logical_not() {0}/2 {0}.sqrt().nan_to_num()
    {0}.sigmoid() {0}.gcd({0}+2) {0}*0.5 {0}+0.25""".split()
INEXACT = (*SMOOTH, "{0}.sigmoid()", "{0}.sqrt().nan_to_num()", "{0}.round(decimals=1)")


@kind
def unary(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dtype != torch.bool)
    if name is None:
        return False
    tensor = values[name]
    choices = EXACT + (SMOOTH if floating(tensor) else WHOLE)
    if floating(tensor) and values.exact(tensor):
        choices = choices + JUMPS
    text = draw(st.sampled_from(choices))
    return values.add(text.format(name), (name,), text not in INEXACT)


@kind
def binary(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: True)
    if name is None:
        return False
    other = partner(values, draw, name)
    texts = ["{0}|{1}", "{0}&{1}", "{0}^{1}"]
    if values[name].dtype != torch.bool:
        texts = "{0}+{1} {0}-{1} {0}*{1} torch.maximum({0},{1}) torch.minimum({0},{1})".split()
        texts += ["torch.add({0},{1},alpha=2)", "torch.lerp({0},{1},0.25)"]
        texts += ["{0}/({1}.abs()+1)", "torch.hypot({0},{1})", "torch.atan2({0},{1}.abs()+1)"]
        texts += ["torch.fmax({0},{1})", "torch.fmin({1},{0})", "{0}.clamp(min={1})"]
        texts += ["torch.addcmul({0},{1},{1},value=3)", "F.smooth_l1_loss({0}+0.,{1}+0.)"]
        texts += [
            "torch.logaddexp({0},{1})",
            "torch.xlogy({0},{1}.abs()+1)",
            "{0}.sub({1},alpha=3)",
        ]
        texts += ["torch.addcdiv({0},{1},{1}.abs()+1)", "{0}.logical_xor({1})"]
        texts += ["torch.outer({0}.reshape(-1)[:9],{1}.reshape(-1)[:9])", "{0}.expand_as({1})"]
        if values.exact(values[name]) and values.exact(values[other]):
            texts += ["{0}//({1}.abs()+1)", "{0}%({1}.abs()+1)", "torch.fmod({0},-{1}.abs()-1)"]
            texts += ["torch.div({0},{1}.square()+1,rounding_mode='trunc')", "{0}.copysign({1})"]
            texts += ["torch.isin({0},{1})", "torch.isclose({0},{1})"]
    text = draw(st.sampled_from(texts))
    rounding = ("/", "hypot", "atan2", "lerp", "log", "addcdiv", "_loss")
    exactly = "//" in text or not any(word in text for word in rounding)
    return values.add(text.format(name, other), (name, other), exactly)


@kind
def compare(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dtype != torch.bool and values.exact(t))
    if name is None:
        return False
    other = partner(values, draw, name)
    if not values.exact(values[other]):
        other = "0"
    sign = draw(st.sampled_from(["<", ">=", "==", "!=", ">"]))
    sources = (name,) if other == "0" else (name, other)
    return values.add(f"{name}{sign}{other}", sources, True)


@kind
def choose(values: Values, draw: st.DrawFn) -> bool:
    mask = pick(values, draw, lambda t: t.dtype == torch.bool)
    name = pick(values, draw, lambda t: t.dtype != torch.bool)
    if mask is None or name is None:
        return False
    other = partner(values, draw, name)
    texts = [
        "torch.where({2},{0},{1})",
        "{0}.masked_fill({2},0)",
        "{0}*{2}",
        "{1}-{2}.to({0}.dtype)",
    ]
    texts += [
        "{0}[{2}]",
        "{0}.masked_select({2})",
        "torch.where({2},{0},1)",
        "torch.where({2},0.5,{0})",
    ]
    texts += ["{0}.masked_scatter({2},{0})", "{2}.nonzero()", "{0}.masked_fill(~{2},{0}.max())"]
    text = draw(st.sampled_from(texts))
    return values.add(text.format(name, other, mask), (name, other), True)


@kind
def convert(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: True)
    if name is None:
        return False
    choices = ["float32", "float64", "bfloat16", "float16"]
    tensor = values[name]
    if values.exact(tensor):
        fits_byte = tensor.numel() == 0 or (float(tensor.min()) >= 0 and float(tensor.max()) < 256)
        choices += ["int64", "int32", "int16", "int8", "bool", *(["uint8"] if fits_byte else [])]
    dtype = draw(st.sampled_from([c for c in choices if getattr(torch, c) != tensor.dtype]))
    narrow = dtype in ("bfloat16", "float16")
    return values.add(f"{name}.to(torch.{dtype})", (name,), not narrow)


# ---- views and shapes ----

VIEWS = [
    "{0}.transpose({d},{e})", "{0}.flip({d})", "{0}.roll(1,{d})", "{0}.reshape(-1)",
    "{0}.unsqueeze({d})", "{0}.squeeze({d})", "{0}[..., 1:]", "{0}[::2]", "{0}[..., :1]",
    "{0}.select({d},0)", "{0}.narrow({d},0,1)", "{0}.diagonal()", "{0}.chunk(2,{d})[0]",
    "{0}.movedim(0,-1)", "{0}.unfold({d},2,1)", "{0}.contiguous()", "{0}.clone()", "{0}.mT",
    "{0}.expand(2,*{0}.shape)", "{0}.flatten(-2)", "{0}.split(2,{d})[-1]", "{0}.detach()",
    "{0}.as_strided((2,2),(1,1))", "{0}.view({0}.numel()//2,2)", "{0}[None,:,None]",
    "{0}.permute(*reversed(range({0}.dim())))", "{0}.expand({0}.shape)",
    "{0}[...,None].expand(*{0}.shape,3)",
    "{0}[1::3]", "{0}[...,-2:]", "{0}.tensor_split(3,{d})[1]", "{0}.unbind({d})[-1]",
    "{0}.view_as({0})",
    "{0}.unfold({d},3,2)", "{0}.reshape(*{0}.shape,1).swapaxes({d},-1)",
    "{0}.transpose(0,-1).flatten()",
    "{0}[:0]", "{0}.reshape(-1).unflatten(0,(-1,1))", "{0}.contiguous().view(-1)[3:]",
]  # fmt: skip
COPIES = [
    "{0}.repeat(2,*[1]*({0}.dim()-1))", "F.pad({0},(1,2))", "F.pad({0},(-1,1),value=3)",
    "{0}.tril()", "{0}.triu(1)", "{0}.rot90()", "{0}.tile(2)", "{0}.repeat_interleave(2,{d})",
    "F.pad({0},(2,-1),value=1)", "{0}.diag_embed()", "{0}.roll((1,-1),(0,-1))", "{0}.fliplr()",
    "torch.constant_pad_nd({0},(0,2,1,0))", "{0}.flip((0,-1))", "{0}.new_full({0}.shape,2)+{0}",
    "torch.arange({0}.shape[0])", "torch.eye({0}.shape[-1])",
    "torch.ones_like({0},dtype=torch.int64)",
    "torch.linspace(0,1,{0}.shape[0])", "{0}.new_zeros(2,3)", "torch.kron({0}[:2],{0}[:2])",
    "{0}.diagonal_scatter({0}.diagonal()+1)", "{0}.select_scatter({0}[0],0,-1)",
    "torch.block_diag({0})",
    "{0}.slice_scatter({0}[1:]*2,0,1)", "{0}.clone(memory_format=torch.preserve_format)",
]  # fmt: skip


@kind
def view(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dim() > 0)
    if name is None:
        return False
    text = draw(st.sampled_from(VIEWS + COPIES))
    d, e = dim_of(values, draw, name), dim_of(values, draw, name)
    return values.add(text.format(name, d=d, e=e), (name,), True)


@kind
def join(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dim() > 0)
    if name is None:
        return False
    tensor, d = values[name], dim_of(values, draw, name)
    other = pick(values, draw, lambda t: t.shape == tensor.shape and t.dtype == tensor.dtype)
    texts = [
        "torch.cat([{0},{1}],{d})",
        "torch.stack([{1},{0}],{d})",
        "torch.cat([{1}[:1],{0},{1}[1:]])",
    ]
    texts += ["torch.cat([{0},{0}.new_zeros(0)],{d})", "torch.cat([{0},{1}.to(torch.float64)],{d})"]
    texts += ["torch.hstack([{0},{1}])", "torch.cat([{0}.flip({d}),{1}*2,{0}],{d})"]
    texts += [
        "torch.cat([{0}[1:],{0}.to(torch.int32)])",
        "torch.stack([{0},{0}+1,{1}],{d}).sum({d})",
    ]
    text = draw(st.sampled_from(texts))
    return values.add(text.format(name, other, d=d), (name, other or name), True)


# ---- along dimensions ----

SUMS = ["sum({d})", "mean({d})", "sum()", "sum({d},keepdim=True)", "cumsum({d})", "mean()"]
REDUCTIONS = [
    *SUMS, "amax({d})", "amin({d},keepdim=True)", "softmax({d})", "logsumexp({d})", "std({d})",
    "var({d},keepdim=True)", "log_softmax({d})", "norm(dim={d})", "max({d}).values", "prod({d})",
    "cummax({d}).values", "logcumsumexp({d})", "max()", "min()", "cummin({d}).values",
    "cumprod({d})", "diff(dim={d})", "count_nonzero({d})", "nansum({d})", "sum((0,-1))",
    "mean((0,-1),True)",
    "aminmax(dim={d}).max", "std()", "var((0,-1),correction=0)", "norm()", "norm(1,{d})", "amax()",
    "prod()",
    "logsumexp((0,-1))", "cov()", "renorm(2,0,3)", "sum({d},dtype=torch.float64)",
    "flip({d}).cumsum({d})", "cumsum({d}).cumsum(0)", "sum_to_size(1)", "nanmean({d})", "dist({n})",
    "norm(float('inf'),{d})", "softmax({d},dtype=torch.float32)", "trace()",
]  # fmt: skip
ORDERS = ["argmax({d})", "argmin({d})", "max({d}).indices", "sort({d}).values", "argmax()",
          "cummax({d}).indices", "cummin({d}).indices", "topk(1,{d}).values",
          "argsort({d},stable=True)", "flip({d}).cummax({d}).indices.flip({d})", "argmin()",
          "median()", "contiguous().median({d}).values", "mode({d}).values", "unique()",
          "kthvalue(1,{d}).values", "sort({d},descending=True,stable=True).indices",
          "max({d},keepdim=True).indices"]  # fmt: skip
KEEP = ("sum", "amax", "amin", "max", "min", "cummax", "cummin", "nansum", "diff", "count")


@kind
def reduce(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dim() > 0)
    if name is None:
        return False
    tensor = values[name]
    texts = ["any({d})", "all({d})", "sum({d})", "any()", "all(-1,keepdim=True)"]
    if floating(tensor):
        texts = REDUCTIONS + (ORDERS if values.exact(tensor) else [])
    elif whole(tensor):
        texts = ["sum({d})", "amax({d})", "prod({d})", "cumsum({d})", "sum()", "any({d})", *ORDERS]
        texts += ["sum({d},dtype=torch.float32)", "cumprod({d})", "count_nonzero()", "amin((0,-1))"]
        texts += ["sum((0,-1),keepdim=True)", "aminmax(dim={d}).min", "prod()", "max()", "all()"]
        texts += ["reshape(-1).abs().clamp(max=9).bincount()", "diff(dim={d})"]
    text = draw(st.sampled_from(texts))
    exactly = not floating(tensor) or text in ORDERS or text.startswith(KEEP)
    text = text.format(d=dim_of(values, draw, name), n=name)
    return values.add(f"{name}.{text}", (name,), exactly)


@kind
def search(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dtype != torch.bool and values.exact(t))
    if name is None:
        return False
    kept = values[name].dtype
    among = pick(values, draw, lambda t: t.dtype == kept and t.dim() > 0 and values.exact(t))
    texts = ["torch.bucketize({0},{1}.reshape(-1).sort().values)"]
    texts += ["torch.searchsorted({1}.reshape(-1).sort().values,{0},right=True)"]
    texts += ["torch.searchsorted({1}.sort().values,{0})"]
    text = draw(st.sampled_from(texts)).format(name, among)
    return among is not None and values.add(text, (name, among), True)


@kind
def window(values: Values, draw: st.DrawFn) -> bool:
    """Something of several neighbours along the last dimensions."""
    name = pick(values, draw, lambda t: t.dtype == torch.float32 and t.dim() in (3, 4))
    if name is None:
        return False
    texts = PADS + (WINDOWS_1D if values[name].dim() == 3 else WINDOWS_2D)
    text = draw(st.sampled_from(texts))
    return values.add(text.format(name), (name,), "max_" in text or "pad(" in text)


PADS = ["F.pad({0},(1,1),mode='reflect')", "F.pad({0},(2,1),mode='replicate')",
        "F.pad({0},(1,0),mode='circular')", "F.interpolate({0},scale_factor=2)"]  # fmt: skip
WINDOWS_1D = [
    "F.max_pool1d({0},2)", "F.max_pool1d({0},2,1,1)", "F.avg_pool1d({0},3,1,1)",
    "F.adaptive_avg_pool1d({0},3)", "F.interpolate({0},size=5,mode='linear')",
    "F.adaptive_max_pool1d({0},2)", "F.lp_pool1d({0},2,2)",
]  # fmt: skip
WINDOWS_2D = [
    "F.max_pool2d({0},2,1)", "F.max_pool2d({0},3,2,1)", "F.avg_pool2d({0},2,1)",
    "F.avg_pool2d({0},2,1,1,count_include_pad=False)", "F.adaptive_avg_pool2d({0},2)",
    "F.interpolate({0},size=(5,3),mode='bilinear')", "F.pixel_shuffle({0},2)",
    "F.interpolate({0},size=(4,6),mode='bicubic')", "F.max_pool2d({0},2,1,return_indices=True)[1]",
]  # fmt: skip


# ---- indices ----

MODES = ("sum", "amax", "amin", "mean")


@kind
def index(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dim() > 0 and t.shape[0] > 0)
    at = pick(values, draw, lambda t: whole(t) and values.exact(t) and t.dim() == 1)
    if name is None or at is None:
        return False
    length = values[name].shape[0]
    where = f"({at}.to(torch.int64)%{length})"
    full = f"{where}.reshape(-1,*[1]*({name}.dim()-1)).expand(-1,*{name}.shape[1:])"
    zeros = f"torch.zeros_like({name})"
    texts = [f"{name}[{where}]", f"{name}.index_select(0,{where})", f"{name}.gather(0,{full})"]
    texts += [f"{zeros}.index_add(0,{where},{name}[{where}])", f"F.one_hot({where},{length})"]
    texts += [f"{zeros}.scatter_add(0,{full},{name}[{where}])", f"{name}[{where},None,...]"]
    texts += [f"{zeros}.scatter_reduce(0,{full},{name}[{where}],'{kind}')" for kind in MODES]
    texts += [f"{name}.scatter_reduce(0,{full},{name}[{where}],'amin',include_self=False)"]
    texts += [f"{name}.take_along_dim({full},0)", f"{name}.index_fill(0,{where},2)"]
    texts += [f"torch.bucketize({at},torch.arange(5))"]
    texts += [f"{zeros}.index_put(({where},),{name}[{where}],accumulate=True)"]
    texts += [f"{name}.index_copy(0,{where},{name}[{where}])"]
    texts += [f"{name}.index_put(({where}-{length},),{name}[0])"]
    texts += [f"{name}.scatter(0,{full},{name}[{where}])", f"{name}.put({where},{name}[0])"]
    texts += [f"{name}[{where}-{length}]", f"{name}[{where}][...,{where}%{name}.shape[-1]]"]
    texts += [f"{name}[{where},{where}%{name}.shape[1]]", f"{name}[...,{where}%{name}.shape[-1]]"]
    texts += [f"{name}[{where}[:,None],{where}%{name}.shape[1]]", f"{name}.take({where})"]
    texts += [f"{zeros}.index_put(({where},),{name}[0],accumulate=True)", f"{name}.T[...,{where}]"]
    texts += [f"F.embedding({where},{name})", f"{name}[{where}.flip(0)].cumsum(0)"]
    texts += [
        f"{name}.scatter_add(0,{full},{name}[{where}]).sum(0)",
        f"{name}.index_add(0,{where},{name}[{where}],alpha=2)",
    ]
    texts += [f"{name}.scatter_reduce(0,{full},{name}[{where}].sign(),'prod')"]
    texts += [
        f"{name}.index_reduce(0,{where},{name}[{where}],'amax')",
        f"{name}[:,{where}%{name}.shape[1],None]",
    ]
    return values.add(draw(st.sampled_from(texts)), (name, at), True)


# ---- writing ----

WRITES = [
    "{0}.add_(1)", "{0}.mul_(2)", "{0}.neg_()", "{0}.zero_()", "{0}[..., 0]=1", "{0}[1:].mul_(2)",
    "{0}.add_({1})", "{0}.copy_({1})", "{0}.sub_({1})", "{0}[0]={1}[0]", "{0}.clamp_(-2,2)",
    "{0}[..., ::2]+=1", "{0}.t_()", "{0}.unsqueeze_(0)", "{0}.fill_(3)", "{0}.diagonal().add_(1)",
    "{0}.masked_fill_({2},0)", "{0}[{2}]=2", "torch.add({1},1,out={0})", "{0}.relu_()",
    "{0}[-1].copy_({0}[0])", "{0}.view(-1)[1:]=0", "{0}.sin_()", "{0}.index_fill_(0,I,4)",
    "{0}.index_copy_(0,I,{0}[-1:])", "{0}[I]+=1", "{0}.index_add_(0,I,{0}[:1])", "{0}[...,I]=2",
    "{0}.cumsum_(0)", "{0}.addcmul_({1},{1},value=2)", "torch._foreach_add_([{0}[:1],{0}[1:]],1)",
    "torch._foreach_mul_([{0}],2)", "{0}.index_put_((I,),{0}[-1])",
    "{0}.scatter_(0,I.view([1]*{0}.dim()),3)", "{0}.swapaxes_(0,-1)", "{0}.squeeze_()",
    "{0}[1:]+={0}[:-1].clone()", "{0}.mT.add_(1)", "{0}[...,1:].copy_({0}[...,:-1].clone())",
    "{0}.view(-1)[::2].mul_(2)", "{0}.select(-1,0).sub_({0}.select(-1,-1))",
    "{0}.flatten()[:2].zero_()",
    "{0}[:,0],{0}[:,-1]={0}[:,-1].clone(),{0}[:,0].clone()", "{0}.as_strided((2,),(1,)).add_(1)",
    "{0}.index_put_((I,),{0}[-1],accumulate=True)", "{0}.masked_fill_({0}>0,-1)", "{0}[{0}<0]=0",
    "torch.maximum({0},{1},out={0})", "{0}.copy_({1}.flip(0))", "{0}.abs_().clamp_(max=5)", 
    "{0}.transpose(0,-1)[0]=1", "{0}.scatter_add_(0,I.view([1]*{0}.dim()),{0}[:1])", "{0}[:0]=1",
    "{0}.expand(2,*{0}.shape)[0].add_(1)", "{0}.chunk(2)[-1].fill_(2)",
    "{0}.unfold(-1,2,2).mul_(3)", "{0}.detach().add_(1)", "{0}.data.mul_(2)",
    "{0}.swapaxes_(0,-1).add_(1)",
    "torch._dynamo.graph_break()", "{0}.add_({0}.flatten()[0].item())", "{0}.add_({1}.sum(0))",
    "{0}.cumprod_(-1)", "{0}.tril_()", "{0}.t().copy_({0}.clone())", "{0}.bitwise_and_(3)",
]  # fmt: skip


@kind
def write(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dim() > 0 and t.dtype != torch.bool)
    if name is None:
        return False
    shape = values[name].shape
    other = partner(values, draw, name)
    text = draw(st.sampled_from(WRITES)).replace("I", "torch.tensor([0])")
    mask = pick(values, draw, lambda t: t.dtype == torch.bool and t.shape == shape)
    if "{2}" in text and mask is None:
        return False
    if "sin_" in text:
        if not floating(values[name]):
            return False
        values.inexact.add(values[name].untyped_storage().data_ptr())
    sources = (name, *((other,) if "{1}" in text else ()))
    return values.write(text.format(name, other, mask), name, sources)
