"""Compiles all Triton kernels of models with realistic widths for a GPU that is not present.

    python -m tests.gpu.ahead

Each model has few layers and runs one training step.  This finds, without a GPU, kernels that
Triton or the assembler refuses, and kernels that spill registers: the stack size is reported (some
bytes are for the slow path of `sin`).  Equal kernels are compiled once.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers as hf

import inductor_lab as lab
from inductor_lab.compiler.base.errors import CompileFailed
from inductor_lab.compiler.codegen.kernel import Kernel

Built = tuple[torch.nn.Module, Mapping[str, torch.Tensor]]
TARGET = "cuda:90"
DTYPES = ("bfloat16", "float32")
NAMES = re.compile(r"triton_\w+")
USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")
MODELS: dict[str, Callable[[], Built]] = {}


def tokens(rows: int, columns: int, labels: bool = True) -> Mapping[str, torch.Tensor]:
    given = torch.randint(2, 3000, (rows, columns))
    return {"input_ids": given, "labels": given} if labels else {"input_ids": given}


def images(count: int, side: int) -> Mapping[str, torch.Tensor]:
    labels = torch.zeros(count, dtype=torch.long)
    return {"pixel_values": torch.randn(count, 3, side, side), "labels": labels}


def model(build: Callable[[], Built]) -> Callable[[], Built]:
    MODELS[build.__name__] = build
    return build


@model
def bert() -> Built:
    mask = {"attention_mask": torch.ones(8, 128, dtype=torch.long)}
    return hf.BertForMaskedLM(hf.BertConfig(num_hidden_layers=2)), {**tokens(8, 128), **mask}


@model
def gpt2() -> Built:
    return hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=2, use_cache=False)), tokens(4, 256)


@model
def llama() -> Built:
    config = hf.LlamaConfig(
        num_hidden_layers=2, hidden_size=1024, intermediate_size=2816, num_attention_heads=16,
        num_key_value_heads=4, use_cache=False,
    )  # fmt: skip
    return hf.LlamaForCausalLM(config), tokens(4, 256)


@model
def t5() -> Built:
    config = hf.T5Config(num_layers=2, decoder_start_token_id=0, pad_token_id=0)
    return hf.T5ForConditionalGeneration(config), tokens(4, 128)


@model
def mixtral() -> Built:
    config = hf.MixtralConfig(
        num_hidden_layers=1, hidden_size=512, intermediate_size=1024, num_attention_heads=8,
        num_key_value_heads=4, num_local_experts=4, vocab_size=8000, use_cache=False,
    )  # fmt: skip
    return hf.MixtralForCausalLM(config), tokens(2, 128)


@model
def mamba() -> Built:
    config = hf.MambaConfig(
        num_hidden_layers=1, hidden_size=256, vocab_size=5000, use_cache=False
    )  # fmt: skip
    return hf.MambaForCausalLM(config), tokens(2, 64)


@model
def whisper() -> Built:
    config = hf.WhisperConfig(encoder_layers=1, decoder_layers=1, max_source_positions=300)
    inputs = {"input_features": torch.randn(2, 80, 600)}
    inputs["decoder_input_ids"] = torch.randint(2, 3000, (2, 32))
    return hf.WhisperForConditionalGeneration(config), inputs


@model
def vit() -> Built:
    return hf.ViTForImageClassification(hf.ViTConfig(num_hidden_layers=2)), images(8, 224)


@model
def swin() -> Built:
    return hf.SwinForImageClassification(hf.SwinConfig(depths=[1, 1, 2, 1])), images(2, 224)


@model
def convnext() -> Built:
    return hf.ConvNextForImageClassification(hf.ConvNextConfig(depths=[1] * 4)), images(4, 128)


@model
def resnet() -> Built:
    config = hf.ResNetConfig(layer_type="basic", depths=[1] * 4, hidden_sizes=[64, 128, 256, 512])
    return hf.ResNetForImageClassification(config), images(16, 224)


@model
def segformer() -> Built:
    config = hf.SegformerConfig(depths=[1] * 4, num_labels=19)
    labels = torch.zeros(2, 256, 256, dtype=torch.long)
    return hf.SegformerForSemanticSegmentation(config), {**images(2, 256), "labels": labels}


@dataclass(frozen=True)
class Row:
    """The results for the kernels of one compilation.

    refused    name → error of the compiler
    stacks     name → bytes of a thread's stack, for kernels with a stack
    """

    kernels: int
    different: int
    registers: int
    refused: Mapping[str, str]
    stacks: Mapping[str, int]


def kernels_of(build: Callable[[], Built], dtype: torch.dtype, dynamic: bool) -> list[Kernel]:
    torch.manual_seed(0)
    torch.compiler.reset()
    module, given = build()
    inputs = {n: v.to(dtype) if v.is_floating_point() else v for n, v in given.items()}
    options = {"dynamic": True} if dynamic else None
    c = lab.inspect(module.to(dtype).train(), target=TARGET, options=options, **inputs)
    return [kernel for part in c.parts for kernel in part.all_kernels]


def compiled(kernels: Iterable[Kernel], known: set[str]) -> Row:
    """Compile all kernels whose text is not in `known`, and add their texts to it."""
    kernels = [kernel for kernel in kernels if kernel.language == "triton"]
    different = {NAMES.sub("", str(kernel)) + str(kernel.launch): kernel for kernel in kernels}
    registers, refused, stacks = 0, {}, {}
    new = {text: kernel for text, kernel in different.items() if text not in known}
    known.update(new)
    for kernel in new.values():
        try:
            used, stack = usage(kernel.ladder(TARGET)["cubin"])
        except CompileFailed as failed:
            refused[kernel.name] = str(failed)
            continue
        registers = max(registers, used)
        stacks.update({kernel.name: stack} if stack else {})
    return Row(len(kernels), len(new), registers, refused, stacks)


def usage(cubin: Any) -> tuple[int, int]:
    """Return the number of registers of a thread, and the bytes of its stack."""
    import triton

    reader = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        asked = [reader, "--dump-resource-usage", file.name]
        told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    found = [tuple(map(int, numbers)) for numbers in USAGE.findall(told)]
    assert found, f"cuobjdump reports no registers: {told}"
    return max(used for used, _ in found), max(stack for _, stack in found)


def rows(names: Sequence[str], dtypes: Sequence[str], dynamic: bool) -> Iterator[tuple[str, Row]]:
    known: set[str] = set()
    for name in names:
        for dtype in dtypes:
            kernels = kernels_of(MODELS[name], getattr(torch, dtype), dynamic)
            yield f"{name} {dtype}{' dynamic' * dynamic}", compiled(kernels, known)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.gpu.ahead", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"only these models of {', '.join(MODELS)}")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--dynamic", action="store_true", help="with symbolic sizes")
    arguments = parser.parse_args(given)
    failed, start = 0, time.perf_counter()
    for what, row in rows(arguments.names or list(MODELS), arguments.dtypes, arguments.dynamic):
        print(f"{time.perf_counter() - start:6.0f} s  {what}: {row.kernels} kernels, "
              f"{row.different} new, at most {row.registers} registers, {len(row.refused)} refused",
              flush=True)  # fmt: skip
        for name, nbytes in row.stacks.items():
            print(f"          {name}: {nbytes} bytes of stack", flush=True)
        for name, said in row.refused.items():
            print(f"          {name}: {said}", flush=True)
        failed += len(row.refused)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
