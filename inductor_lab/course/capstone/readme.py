"""The pages of the student's repository: the overview, a page for each step, and `train.py`.

The text of a step is in `steps.toml`.  Its example is printed by the small compiler, and what the
full compiler does differently is read from the file of the small one, so neither is ever old.  The
Chinese of that section is in `full_compiler.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable

import torch

from inductor_lab.course.capstone import process, triton_printer
from inductor_lab.course.capstone.programs import trace
from inductor_lab.course.capstone.repository import (
    TABLE,
    Step,
    reference_path,
    step_named,
    steps,
    title,
)
from inductor_lab.course.language import language, one_of, say
from inductor_lab.mini import autograd, cpp, decompose, fuse, host, loops, lower, memory

FULL = "\n# What the full compiler does differently\n#\n"
TRAIN = '''\
import torch

import my

print("borrowed:", ", ".join(my.borrowed) or "nothing: this compiler is yours")
torch.manual_seed(0)
x, target = torch.randn(64, 16), torch.randint(0, 4, (64,))


def train(backend):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
    step = torch.optim.SGD(model.parameters(), lr=0.5)
    compiled = torch.compile(model, backend=backend)
    for _ in range(30):
        loss = torch.nn.functional.cross_entropy(compiled(x), target)
        step.zero_grad()
        loss.backward()
        step.step()
    return loss.item()


print(f"loss of eager mode:     {train('eager'):.6f}")
print(f"loss of your compiler:  {train(my.backend):.6f}")
'''


def pages() -> dict[str, str]:
    """File → text, in the current language."""
    texts = {f"steps/{step.number:02}_{step.name}.md": page(step) for step in steps()}
    return {"README.md": overview(), "train.py": TRAIN, **texts}


def overview() -> str:
    with TABLE.open("rb") as file:
        texts = tomllib.load(file)["readme"]
    head = [say("step"), say("file"), say("points"), say("hours")]
    rows = [f"| [{s.number} {title(s)}](steps/{s.number:02}_{s.name}.md) | "
            f"{f'`my/{s.file}.py`' if s.file else ''} | {s.points} | {s.hours:g} |"
            for s in steps()]  # fmt: skip
    table = "\n".join([f"| {' | '.join(head)} |", "|---|---|---|---|", *rows])
    text: str = texts[language()].strip()
    return text.replace("{table}", table).replace("{last}", str(step_named("train").number)) + "\n"


def page(step: Step) -> str:
    """What it does, an example, how to check it, and what the full compiler does."""
    comma, space = (", ", " ") if language() == "en" else ("、", "")
    about = [say("{p} points, about {h:g} hours.", p=step.points, h=step.hours)]
    bodies = comma.join(f"`{name}`" for name in step.bodies)
    if bodies:
        about.append(say("Write in `my/{f}.py`: {b}.", f=step.file, b=bodies))
    parts = [f"# {step.number} {title(step)}", space.join(about), one_of(step.text)]
    if step.name in EXAMPLES:
        before, after = EXAMPLES[step.name]()
        parts += [f"## {say('Example')}", say("In:"), f"```\n{before.strip()}\n```",
                  say("Out:"), f"```\n{after.strip()}\n```"]  # fmt: skip
    command = f"inductor-lab course check capstone {step.number}"
    parts += [f"## {say('Check')}", f"```\n{command}\n```"]
    if step.file:
        parts += [f"## {say('What the full compiler does differently')}", _differences(step.file)]
    return "\n\n".join(parts) + "\n"


def _differences(file: str) -> str:
    """The section at the end of a file of the small compiler, as a list in Markdown."""
    section = reference_path(file).read_text(encoding="utf-8").partition(FULL)[2]
    text = re.sub("^# ?", "", section.strip(), flags=re.MULTILINE)
    if language() == "en":
        return text
    return "\n".join(f"- {chinese_differences()[item]}" for item in items(text))


def items(text: str) -> list[str]:
    """The items of a list in Markdown, each as one line."""
    return [" ".join(item.split()) for item in re.split("^- ", text, flags=re.MULTILINE)[1:]]


def chinese_differences() -> dict[str, str]:
    """Item in English → in Chinese."""
    return tomllib.loads(TABLE.with_name("full_compiler.toml").read_text(encoding="utf-8"))


# ---- examples: one function through all stages -----------------------------------------------


def example(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).softmax(1)


def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Four layers with a residual connection, so that there are buffers between calls."""
    first = x = torch.tanh(x @ w)
    for _ in range(2):
        x = torch.tanh(x @ w)
    return x @ w + first


def _traced(function: Callable[..., torch.Tensor], table: object) -> torch.fx.GraphModule:
    size = 8 if function is layers else 6
    return trace(function, [torch.zeros(4, size), torch.zeros(size, 8)], table)


def _lowered(function: Callable[..., torch.Tensor] = example) -> loops.Program:
    return lower.Lowering(_traced(function, decompose.table())).program()


def _fused(function: Callable[..., torch.Tensor] = example) -> loops.Program:
    return fuse.substitute(_lowered(function))[0]


def _interpreted() -> tuple[str, str]:
    program = lower.Lowering(trace(lambda x: (x + 1).sum(1), [torch.zeros(2, 3)], {})).program()
    (name,) = program.inputs
    return f"{program}\n\n{name} = [[0, 1, 2], [3, 4, 5]]", \
        str(program.run(torch.arange(6.0).view(2, 3))[0])  # fmt: skip


def _joint() -> tuple[str, str]:
    function = process.joint_of(lambda x, y, w: [torch.relu(x @ w) * y], 1)
    leaves = process.leaves([torch.zeros(4, 6), torch.zeros(4, 8), torch.zeros(6, 8)])
    joint = trace(function, [*leaves, torch.zeros(4, 8)], decompose.table())
    split = autograd.partition(joint, 1)
    return str(split.joint.graph), f"{split.forward.graph}\n\n{split.backward.graph}"


def _plan() -> tuple[str, str]:
    schedule = fuse.group(_fused(layers))
    return str(schedule), str(memory.plan(schedule))


def _call() -> tuple[str, str]:
    """The host program of a graph with a call and a buffer of the plan."""
    schedule = fuse.group(_fused(layers))
    plan = memory.plan(schedule)
    made = host.host_program(plan, cpp.print_kernels(schedule))
    return f"{schedule}\n\n{plan}", made.source


EXAMPLES: dict[str, Callable[[], tuple[str, str]]] = {
    "loops": _interpreted,
    "lower": lambda: (str(_traced(example, decompose.table()).graph), str(_lowered())),
    "decompose": lambda: (str(_traced(example, {}).graph),
                          str(_traced(example, decompose.table()).graph)),
    "autograd": _joint,
    "substitute": lambda: (str(_lowered()), str(_fused())),
    "group": lambda: (str(_fused()), str(fuse.group(_fused()))),
    "memory": _plan,
    "cpp": lambda: (str(fuse.group(_fused())), str(cpp.print_kernels(fuse.group(_fused())))),
    "host": _call,
    "triton": lambda: (str(fuse.group(_fused())),
                       str(triton_printer.print_kernels(fuse.group(_fused())))),
}  # fmt: skip
"""Step → its input and its output, as text."""
