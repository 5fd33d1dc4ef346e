"""The tools: their parameters as JSON Schemas, and the command of `inductor-lab` that each runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.debug.mcp.documents import DEFAULT_BYTES, MOST_BYTES
from inductor_lab.debug.mcp.folder import Folder
from inductor_lab.debug.mcp.job import Request
from inductor_lab.saved.documents.outline import LEAST_BYTES

Schema = Mapping[str, Any]
Kind = Literal["value", "flag", "repeated", "rest", "path", "function", "run", "text"]
STRING: Schema = {"type": "string", "maxLength": 10_000}
NAME: Schema = {"type": "string", "pattern": r"^[A-Za-z_][\w.]*$", "maxLength": 500}
VALUE: Schema = {**NAME, "pattern": r"^(?:[A-Za-z_][\w.]*|(?:\w[\w./]*:)?\d+)$"}
"""A name, or a source line: `buf0`, `12`, `model.py:12`."""
SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 3600}
FLAG: Schema = {"type": "boolean"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a tool.

    option  the option of the command; "" for an argument without an option
    kind    how its value is written: once, as an option without a value, once for each element of a
            list, or as an option with all elements behind it; or what is checked first: a file,
            `FILE:FUNCTION`, or either (a run); a text becomes a file
    """

    name: str
    schema: Schema
    what: str
    option: str = ""
    kind: Kind = "value"
    required: bool = False

    def written(self, value: Any, folder: Folder) -> Iterator[str]:
        """The words of the command."""
        if self.kind == "flag":
            yield from [self.option] if value else []
        elif self.kind == "repeated":
            yield from (f"{self.option}={each}" if self.option else each for each in value)
        elif self.kind == "rest":
            yield from (self.option, *value)
        elif self.kind == "function" or (self.kind == "run" and ":" in value):
            yield f"./{_function(value, folder)}"
        elif self.kind in ("path", "run"):
            yield f"./{folder.inside(value)}"
        elif self.kind == "value":
            yield f"{self.option}={value}" if self.option else str(value)


def _function(value: str, folder: Folder) -> str:
    """`FILE:FUNCTION` or a saved compilation, whose file is inside the folder."""
    if value.endswith(".json"):
        return folder.inside(value)
    file, colon, name = value.rpartition(":")
    if not colon or not name.isidentifier():
        raise BadArguments(f"{value!r} does not name a function", todo="write path/to/file.py:name")
    return f"{folder.inside(file)}:{name}"

@dataclass(frozen=True)
class Tool:
    """A tool: `command` is the command of `inductor-lab` that it runs; "" for none."""

    name: str
    command: str
    what: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[tuple[str, str], ...] = ()

    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        every = (*self.parameters, *ANSWER)
        return {
            "type": "object",
            "properties": {p.name: {**p.schema, "description": p.what} for p in every},
            "required": [p.name for p in every if p.required],
            "additionalProperties": False,
        }

    def check(self, given: Mapping[str, Any]) -> None:
        """Raises BadArguments for arguments that do not follow the schema."""
        from jsonschema import Draft202012Validator  # slow to import with its optional parts

        for error in Draft202012Validator(self.input_schema()).iter_errors(dict(given)):
            where = "".join(f"{step}: " for step in error.absolute_path)
            raise BadArguments(f"{self.name}: {where}{error.message[:500]}",
                               todo="the schema of the tool lists its arguments")  # fmt: skip

    def request(self, given: Mapping[str, Any], folder: Folder) -> Request:
        """The command for checked arguments; raises OutsideFolder and BadArguments."""
        words = [self.command]
        for parameter in self.parameters:
            if parameter.name in given:
                words += parameter.written(given[parameter.name], folder)
        texts = [given[p.name] for p in self.parameters if p.kind == "text"]
        return Request(tuple(words), texts[0] if texts else None, dict(self.outputs))


ANSWER = (
    Parameter("select", STRING, "Answer with one part of the document, by its id, such as "
              "g0.forward.kernel:3, or one field of it: g0.forward.kernel:3/code."),
    Parameter("max_bytes", {"type": "integer", "minimum": LEAST_BYTES, "maximum": MOST_BYTES},
              f"The size of the answer (default {DEFAULT_BYTES}). A larger document is answered "
              "with an outline: its small fields and the ids of its parts."),
    Parameter("skip", {"type": "integer", "minimum": 0},
              "Go on where an outline or a field stopped: its `next`."),
)  # fmt: skip
"""Parameters of every tool: which part of the document is the answer."""

FUNCTION = Parameter(
    "function", STRING, "FILE:FUNCTION, a file of the folder and a function in it.",
    kind="function", required=True,
)  # fmt: skip
SAVED = Parameter(
    "function", STRING, "FILE:FUNCTION, or a file that `inductor-lab explain --save` wrote.",
    kind="function", required=True,
)  # fmt: skip
ARGS = Parameter(
    "args", STRING, "A Python expression: the tuple of arguments, such as (torch.randn(8),). "
    "Without it, example_inputs() of the file returns them.", "--args",
)  # fmt: skip
PART = Parameter(
    "part", NAME, "The graph and the direction: g0.forward (the default), g0.backward.", "--part"
)
RUN = "FILE:FUNCTION, a file that `inductor-lab explain --save` wrote, or a trace log."
STOCK = Parameter("stock", FLAG, "Check stock torch.compile.", "--stock", "flag")
LIMIT = Parameter("limit", SECONDS, "Seconds for compiled code (default 60).", "--limit")
PAIRS: Schema = {"type": "array", "items": {"type": "string", "pattern": r"^[\w.]+(,[\w.]+){1,2}$"},
                 "maxItems": 100}  # fmt: skip
NAMES: Schema = {"type": "array", "items": NAME, "maxItems": 100}


def _names_off(name: str, what: str) -> Parameter:
    return Parameter(f"{name}_off", NAMES, f"Disable {what}, by name.", f"--{name}-off", "repeated")


TOOLS: tuple[Tool, ...] = (
    Tool("explain", "explain",
         "Compile a function and run it once: kernels with their code, bytes, flops and source "
         "lines; fusion decisions; memory; graph breaks, guards and recompiles.",
         (SAVED, ARGS,
          Parameter("target", STRING, "Write code for a GPU without it: cuda:90, hip:gfx942.",
                    "--target"),
          Parameter("measure", SECONDS, "Time each kernel for so many seconds.", "--measure"))),
    Tool("why_not_fused", "why-not-fused",
         "Which rules prevent fusing two loop nests, what they mean and what would have to change. "
         "Without buffers: every pair of the part that was not fused.",
         (SAVED,
          Parameter("buffers", {**NAMES, "items": VALUE, "minItems": 2, "maxItems": 2},
                    "Two buffers, FX nodes or source lines, such as [\"buf0\", \"buf3\"].", "",
                    "repeated"),
          ARGS, PART,
          Parameter("stock", FLAG, "The decisions of stock torch.compile.", "--stock", "flag"))),
    Tool("what_if", "what-if",
         "Compile again with other options, and compare kernels, bytes and code.",
         (FUNCTION, ARGS,
          Parameter("forbid", PAIRS, "Pairs of buffers not to fuse: [\"buf0,buf3\"].", "--forbid",
                    "repeated"),
          Parameter("force", PAIRS, "Pairs of buffers to fuse, if it is legal.", "--force",
                    "repeated"),
          _names_off("fusion", "profit rules of fusion"),
          _names_off("rewrites", "rewrite passes"), _names_off("passes", "passes"),
          Parameter("no_fusion", FLAG, "Make each loop nest a kernel.", "--no-fusion", "flag"),
          Parameter("memory_budget", {"type": "number", "minimum": 0, "maximum": 1},
                    "How much may be kept for the backward.", "--memory-budget"))),
    Tool("blame", "blame",
         "Compare every stage of a compile with eager mode and float64: the first wrong stage, "
         "value, generated line and source line.",
         (FUNCTION, ARGS, STOCK, LIMIT)),
    Tool("minify", "minify",
         "Shrink the graph of a failing call to a few nodes; the document contains a script that "
         "fails in the same way.",
         (FUNCTION, ARGS, STOCK, LIMIT), (("--folder", "minified"),)),
    Tool("try_kernel", "try-kernel",
         "Run the call with an edited kernel: does it compile, is it correct, and how fast is it? "
         "The text is the code of the kernel, as explain shows it, with your changes.",
         (FUNCTION, Parameter("kernel", NAME, "The name of the kernel.", required=True), ARGS, PART,
          Parameter("seconds", SECONDS, "Seconds for timing (default 0.5).", "--seconds"), LIMIT,
          Parameter("text", {"type": "string", "maxLength": 1_000_000},
                    "The text of the complete function.", kind="text", required=True))),
    Tool("judge", "judge",
         "Judge a candidate for a function: is it correct in all cases that the judge derives from "
         "the arguments, how fast is it, and does it cheat? The candidate is a .py file with a "
         "function, also one that launches Triton kernels, or a .cpp file with an extern \"C\" "
         "function.",
         (Parameter("candidate", STRING, "The file of the candidate, inside of the folder.",
                    kind="path", required=True),
          FUNCTION, ARGS,
          Parameter("name", NAME, "The candidate's function (default candidate).", "--name"),
          Parameter("seconds", SECONDS, "Seconds for timing (default 1).", "--seconds"),
          Parameter("gradients", FLAG, "Judge the gradients of the arguments too.", "--gradients",
                    "flag"),
          Parameter("no_timing", FLAG, "Check only the results.", "--no-timing", "flag"),
          Parameter("limit", SECONDS, "Seconds for the candidate (default 120).", "--limit"))),
    Tool("recompiles", "recompiles",
         "Make several calls: which were compiled again, which guard failed, and why.",
         (FUNCTION,
          Parameter("args", {"type": "array", "items": STRING, "minItems": 1, "maxItems": 100},
                    "The tuple of arguments of each call, as Python expressions.", "--args",
                    "repeated", required=True))),
    Tool("diff", "diff",
         "Compare two compilations, or two TORCH_TRACE logs: the first stage that differs in each "
         "compile, with its lines; kernels, bytes and memory before and after.",
         (Parameter("before", STRING, RUN, kind="run", required=True),
          Parameter("after", STRING, RUN, kind="run", required=True), ARGS,
          Parameter("stock", FLAG, "Compile with stock torch.compile.", "--stock", "flag"))),
    Tool("memory", "memory",
         "The memory of a call and its backward, in eager mode and compiled: the curve, the peak, "
         "who keeps each byte at the peak with its source line, and changes that were tried and "
         "lower the peak. Of a saved file: the memory plans.",
         (SAVED, ARGS,
          Parameter("stock", FLAG, "Measure stock torch.compile too.", "--stock", "flag"),
          Parameter("no_suggestions", FLAG, "Do not try any change.", "--no-suggestions", "flag"),
          LIMIT)),
    Tool("read_trace", "trace",
         "Read a TORCH_TRACE log: every compile, graph breaks, recompiles, cache answers.",
         (Parameter("log", STRING, "A folder of logs, or one .log file.", kind="path",
                    required=True),), (("--output", "trace.html"),)),
    Tool("bench", "bench",
         "Compare eager mode, stock torch.compile and inductor_lab: times with intervals, compile "
         "times, memory.",
         (FUNCTION, ARGS,
          Parameter("seconds", SECONDS, "Seconds for timing (default 2).", "--seconds"),
          Parameter("against", {**NAMES, "minItems": 1}, "What to compare with: eager, inductor.",
                    "--against", "rest"))),
    Tool("show", "",
         "Read more of the document of an earlier answer, without another compile.",
         (Parameter("document", NAME, "The id of the document, such as d1: the link of the answer "
                    "ends with it.", required=True),)),
)  # fmt: skip
BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}
