"""Lines that stand for layers of a network: products, convolutions, norms, losses."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from tests.fuzz.lines import kind, partner, pick, whole
from tests.fuzz.values import Values

PRODUCTS = [
    "{0}@{0}.mT", "{0}.mT@{0}", "F.linear({0},{0}.reshape(-1,{0}.shape[-1])[:3])",
    "torch.einsum('...ij,...kj->...ik',{0},{0})", "torch.matmul({0},{0}[...,0,:])",
    "F.linear({0},{0}.reshape(-1,{0}.shape[-1])[:2],{0}.flatten()[:2])*2",
    "torch.tensordot({0},{0},1)",
    "F.scaled_dot_product_attention({0},{0},{0})", "F.relu({0}@{0}.mT+1)", "({0}@{0}.mT).sum(-1)",
    "torch.addmm({0}[:,:1],{0},{0}.mT,beta=2)",
    "torch.cdist({0},{0}+1,2,'donot_use_mm_for_euclid_dist')",  # near rows cancel in a product
    "{0}.mv({0}[0])", "(({0}@{0}.mT)/3).softmax(-1)@{0}", "torch.bmm({0},{0}.mT)",
    "F.cosine_similarity({0},{0}+1,-1)",
]  # fmt: skip
CONVOLUTIONS = {
    3: ["F.conv1d({0},{0}[:1,:,:1].expand(2,-1,-1),padding=1)", "F.unfold({0}[None],2)",
        "F.conv1d({0},{0}[:1].mT.reshape(-1,{0}.shape[1],1))", "F.glu({0}[...,:2])",
        "F.conv_transpose1d({0},{0}[0][:,None,:2],stride=2)"],
    4: ["F.conv2d({0},{0}[:2,:,:2,:2])", "F.conv2d({0},{0}[:,:1,:1,:1],groups={0}.shape[1])",
        "F.conv2d({0}.contiguous(memory_format=torch.channels_last),{0}[:2,:,:1,:2])",
        "F.unfold({0},2)", "F.grid_sample({0},{0}[:,:2].movedim(1,-1).tanh(),align_corners=False)",
        "F.channel_shuffle({0},2)", "F.pixel_unshuffle({0},2)"],
}  # fmt: skip
NORMS = [
    "F.layer_norm({0},{0}.shape[-1:])", "F.rms_norm({0},{0}.shape[-1:])", "F.normalize({0},dim=-1)",
    "({0}-{0}.mean(-1,keepdim=True)).square().mean(-1)",
    "F.layer_norm({0},{0}.shape[-1:],{0}.flatten(0,-2)[0])",
    "F.layer_norm({0},{0}.shape[-2:])", "F.group_norm({0},1)", "({0}.softmax(-1)*{0}).sum(-1)",
    "F.batch_norm({0},None,None,training=True)", "{0}/{0}.norm(dim=-1,keepdim=True).clamp(min=1)",
    "F.instance_norm({0})", "F.local_response_norm({0},2)",
    "F.layer_norm({0}+1,{0}.shape[-1:]).mT+{0}.mT",
    "{0}.mean(0,keepdim=True)+{0}.std(0)", "{0}-{0}.logsumexp(0)", "{0}.softmax(0).mT.softmax(0)",
]  # fmt: skip
LOSSES = [
    "F.mse_loss({0},{1})", "F.l1_loss({0},{1},reduction='sum')", "F.huber_loss({0},{1})",
    "F.binary_cross_entropy_with_logits({0},{1}.sigmoid())",
    "F.kl_div({0}.log_softmax(-1),{1}.softmax(-1))",
    "F.poisson_nll_loss({0}.tanh(),{1}.abs())", "F.smooth_l1_loss({0},{1},reduction='none')",
    "F.cross_entropy({0},{1}.softmax(-1))", "F.gaussian_nll_loss({0},{1},{1}.square()+1)",
]  # fmt: skip


def spread(tensor: torch.Tensor) -> bool:
    """Do the rows differ by more than rounding?  To normalize what does not amplifies rounding."""
    if tensor.numel() == 0:
        return True
    room = (tensor.double().abs().amax(-1) / 8).clamp(min=1 / 64)
    return bool((tensor.double().std(-1, correction=0) > room).all())


@kind
def normalize(values: Values, draw: st.DrawFn) -> bool:
    def fits(tensor: torch.Tensor) -> bool:
        known = values.exact(tensor) or (tensor.dim() > 0 and spread(tensor))
        return tensor.is_floating_point() and tensor.dim() > 0 and known

    name = pick(values, draw, fits)
    text = draw(st.sampled_from(NORMS))
    return name is not None and values.add(text.format(name), (name,), False)


@kind
def product(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dtype == torch.float32 and t.dim() in (2, 3, 4))
    text = draw(st.sampled_from(PRODUCTS))
    return name is not None and values.add(text.format(name), (name,), False)


@kind
def convolve(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.dtype == torch.float32 and t.dim() in CONVOLUTIONS)
    if name is None:
        return False
    text = draw(st.sampled_from(CONVOLUTIONS[values[name].dim()]))
    return values.add(text.format(name), (name,), False)


@kind
def loss(values: Values, draw: st.DrawFn) -> bool:
    name = pick(values, draw, lambda t: t.is_floating_point() and t.dim() > 0)
    if name is None:
        return False
    other = partner(values, draw, name)
    text = draw(st.sampled_from(LOSSES))
    return values.add(text.format(name, other), (name, other), False)


@kind
def classify(values: Values, draw: st.DrawFn) -> bool:
    """A loss between rows and numbers of classes."""
    name = pick(values, draw, lambda t: t.is_floating_point() and t.dim() == 2)
    at = pick(values, draw, lambda t: whole(t) and values.exact(t) and t.dim() == 1)
    if name is None or at is None:
        return False
    rows, classes = values[name].shape
    target = f"({at}.to(torch.int64)%{max(classes, 1)})[:{rows}]"
    texts = ["F.cross_entropy({0}[:{1}.shape[0]],{1})", "F.nll_loss({0}[:{1}.shape[0]],{1})"]
    texts += ["F.cross_entropy({0}[:{1}.shape[0]],{1},ignore_index=0,label_smoothing=0.1)"]
    return values.add(draw(st.sampled_from(texts)).format(name, target), (name, at), False)
