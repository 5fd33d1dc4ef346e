"""Is an error in a phase of the compiler ours, or one of a user's function (`lab.override`)?"""

from __future__ import annotations

import linecache
import sys
import traceback

LIBRARIES = frozenset(["", "inductor_lab", *sys.stdlib_module_names])
DEFECT = (
    "this is a bug of inductor_lab, please report it; until it is fixed, keep this line"
    " out of the compiled function, for instance with torch.compiler.disable"
)
YOURS = "the last line is in your function, which this phase calls: fix it there"


def where_and_todo(error: BaseException, where: str) -> tuple[str, str]:
    """The line in the user's code, with the line of their own function that raised; and what to
    do."""
    own = users_line(error)
    return "\n  ".join(filter(None, (where, own))), YOURS if own else DEFECT


def users_line(error: BaseException) -> str:
    """`return d["mine"]        line 3, in f`: the innermost line outside libraries."""
    for frame, number in reversed([*traceback.walk_tb(error.__traceback__)]):
        file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
        if module.split(".")[0] not in LIBRARIES and "-packages" not in file:
            code = linecache.getline(file, number).strip()
            return f"{code}        line {number}, in {frame.f_code.co_name}"
    return ""
