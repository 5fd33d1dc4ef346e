"""The core: the files that a minimal compile loads, in the order in which it reaches them.

    python -m tests.project.core            lists them
    python -m tests.project.core --write    writes them to docs/reading.md

A softmax, a training step of an MLP and a convolution are compiled with every optional pass and
every accelerator off, in a process that refuses to import what they do not need.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import FrameType

from tests.project.deleted import Refuses
from tests.project.test_sizes import lines_of_code

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reading.md"
TABLE = "## The files"
HEAD = "| file | lines | what it does |\n|---|---:|---|"
COMPILER = "inductor_lab.compiler"
REFUSED = (
    *(f"inductor_lab.{tool}" for tool in (
        "bench", "cli", "course", "debug", "distributed", "mini", "notebook", "saved", "stock",
        "widgets",
    )),
    f"{COMPILER}.accelerate", f"{COMPILER}.codegen.attention", f"{COMPILER}.codegen.triton",
    f"{COMPILER}.runtime.triton", "triton",
)  # fmt: skip
OPTIONS = {"passes_off": "all", "accelerators_off": "all", "cache": False}


def compile_programs() -> None:
    """Compile and check the three programs."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    mlp = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    convolution = nn.Conv2d(3, 8, 3).eval()
    x, labels = torch.randn(32, 64), torch.randint(0, 10, (32,))
    rows, images = torch.randn(64, 1000), torch.randn(2, 3, 16, 16)

    def training_step() -> list[torch.Tensor]:
        loss = F.cross_entropy(mlp(x), labels)
        return [loss, *torch.autograd.grad(loss, list(mlp.parameters()))]

    for program in (lambda: [rows.softmax(-1)], training_step, lambda: [convolution(images)]):
        fast = torch.compile(program, backend="inductor_lab", options=OPTIONS)
        for ours, eager in zip(fast(), program(), strict=True):
            torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)


def reached() -> list[Path]:
    """The files of ours that the programs load: first those that run, in the order in which they
    are reached, then those that only define types and tables."""
    import inductor_lab.api.backend

    order: dict[str, None] = {}

    def called(frame: FrameType, event: str, value: object) -> None:
        if event == "call":
            order.setdefault(frame.f_code.co_filename)

    sys.setprofile(called)
    try:
        compile_programs()
    finally:
        sys.setprofile(None)
    names = [name for name in sys.modules if name.split(".")[0] == "inductor_lab"]
    files = [Path(sys.modules[name].__file__ or "") for name in names]
    assert Path(inductor_lab.api.backend.__file__) in files
    run = [path for path in map(Path, order) if path in files]
    return [*run, *(path for path in files if path not in run)]


def first_sentence(path: Path) -> str:
    """Of the docstring of a file."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.?!])  ?(?=[A-Z])", paragraph)[0].replace("|", "\\|")


def listed() -> list[str]:
    """The files that docs/reading.md lists."""
    return re.findall(r"^\| \[[^]]+\]\(\.\./([^)]+)\)", PAGE.read_text(encoding="utf-8"), re.M)


def row(name: str) -> str:
    path = ROOT / name
    shown = name.removeprefix("inductor_lab/").removeprefix("compiler/")
    return f"| [{shown}](../{name}) | {lines_of_code(path)} | {first_sentence(path)} |"


def page(names: list[str]) -> str:
    """docs/reading.md: what stands before the table, and the table."""
    head = PAGE.read_text(encoding="utf-8").partition(TABLE)[0]
    total = sum(lines_of_code(ROOT / name) for name in names)
    lines = [f"{len(names)} files, {total:,} lines of code.", "", HEAD, *map(row, names)]
    return head + TABLE + "\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    sys.meta_path.insert(0, Refuses(REFUSED))
    names = [path.relative_to(ROOT).as_posix() for path in reached()]
    names = [name for name in names if lines_of_code(ROOT / name)]
    if "--write" in sys.argv:
        PAGE.write_text(page(names), encoding="utf-8")
    print("\n".join(names))


if __name__ == "__main__":
    main()
