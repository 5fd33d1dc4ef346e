"""Submissions that try to earn points without solving anything, by what they try.

Each is a cell that defines `misses`, the function of exercise 6.1.  None may earn a point.
"""

from __future__ import annotations

CHEATS = {
    # ---- of the verdict ----------------------------------------------------------------------
    "sends_a_verdict_found_on_the_stack": """
import sys

def misses(addresses, lines, line):
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            for name in ("send", "tell", "_write", "_answer"):
                method = getattr(value, name, None)
                if callable(method):
                    for args in (("returned", (None, "")), (b"right",), (1, lambda: None)):
                        try:
                            method(*args)
                        except Exception:
                            pass
        frame = frame.f_back
    return 0
""",
    "answers_before_it_is_asked": """
import os
from inductor_lab.debug.untrusted.wire import Codec, dumps

def misses(addresses, lines, line):
    for number in range(200):
        for end in range(3, 32):
            try:
                os.write(end, dumps((number, "returned", None), Codec()))
            except OSError:
                pass
    os._exit(0)
""",
    "writes_to_every_open_file": """
import os

def misses(addresses, lines, line):
    for end in range(3, 64):
        try:
            os.write(end, b"exit 0" * 100)
        except OSError:
            pass
    return 0
""",
    "exits_with_status_0": """
import os

def misses(addresses, lines, line):
    os._exit(0)
""",
    "exits_when_it_is_defined": """
import atexit, os, sys

atexit.register(os._exit, 0)
sys.exit(0)
""",
    "equals_everything": """
class Right(int):
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return False
    __hash__ = int.__hash__

def misses(addresses, lines, line):
    return Right(0)
""",
    "a_pickle_that_runs": """
import os

class Bomb:
    def __reduce__(self):
        return os.system, ("touch /tmp/forged",)

def misses(addresses, lines, line):
    return Bomb()
""",
    # ---- of the judge ------------------------------------------------------------------------
    "patches_the_reference": """
try:
    from inductor_lab.course.labs import cpp
    cpp.hits = lambda addresses, lines, line: [True] * len(addresses)
except Exception:
    pass

def misses(addresses, lines, line):
    return 0
""",
    "patches_what_is_loaded": """
import sys

for name, module in list(sys.modules.items()):
    if name.startswith("inductor_lab"):
        for attribute in ("check", "judged", "expected", "first_wrong", "explained"):
            if hasattr(module, attribute):
                setattr(module, attribute, lambda *args, **kwargs: None)

def misses(addresses, lines, line):
    return 0
""",
    "patches_torch_and_the_builtins": """
import builtins
import torch

torch.allclose = torch.equal = lambda *args, **kwargs: True
builtins.all = builtins.any = lambda values: True

def misses(addresses, lines, line):
    return 0
""",
    "calls_the_reference": """
def misses(addresses, lines, line):
    from inductor_lab.course.labs.cpp import hits
    return hits(addresses, lines, line).count(False)
""",
    "reads_the_source_of_the_reference": """
import os, re
import inductor_lab

def misses(addresses, lines, line):
    folder = os.path.dirname(inductor_lab.__file__)
    text = open(os.path.join(folder, "course", "labs", "cpp.py")).read()
    names = {}
    exec("from collections import OrderedDict\\n" +
         re.search(r"def hits.*?return found", text, re.DOTALL)[0], names)
    return names["hits"](addresses, lines, line).count(False)
""",
    "reads_a_compiled_reference": """
import glob, marshal, os
import inductor_lab

def misses(addresses, lines, line):
    folder = os.path.dirname(inductor_lab.__file__)
    path, *_ = glob.glob(os.path.join(folder, "course", "labs", "__pycache__", "cpp*.pyc"))
    names = {}
    exec(marshal.loads(open(path, "rb").read()[16:]), names)
    return names["hits"](addresses, lines, line).count(False)
""",
    "looks_for_a_reference_in_memory": """
import gc, sys

def misses(addresses, lines, line):
    for one in gc.get_objects():
        if getattr(one, "__name__", "") in ("hits", "transposed_misses"):
            return one(addresses, lines, line).count(False)
    return 0
""",
    # ---- of other processes and files --------------------------------------------------------
    "reads_the_memory_of_its_parents": """
import os

def misses(addresses, lines, line):
    found = b""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) != os.getpid():
            for name in ("mem", "environ", "cmdline", "maps"):
                try:
                    found += open(f"/proc/{pid}/{name}", "rb").read(100)
                except OSError:
                    pass
    print(found)
    return 0
""",
    "signals_and_traces_its_parent": """
import ctypes, os, signal

def misses(addresses, lines, line):
    ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)
    try:
        os.kill(os.getppid(), signal.SIGSTOP)
    except OSError:
        pass
    return 0
""",
    "leaves_a_child_in_a_new_session": """
import os, time

def misses(addresses, lines, line):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    return 0
""",
    "leaves_a_thread_that_answers": """
import os, threading
from inductor_lab.debug.untrusted.wire import Codec, dumps

def answers():
    while True:
        for number in range(100):
            try:
                os.write(4, dumps((number, "returned", number % 3), Codec()))
            except OSError:
                return

def misses(addresses, lines, line):
    threading.Thread(target=answers, daemon=True).start()
    return 0
""",
    "writes_the_board": """
import json, os

def misses(addresses, lines, line):
    score = {"6.1": {"points": 2, "possible": 2, "tries": 1, "when": ""}}
    for path in ("board.json", os.environ.get("INDUCTOR_LAB_COURSE_FILE", "course.json")):
        open(path, "w").write(json.dumps(score))
    return 0
""",
    "takes_all_memory": """
def misses(addresses, lines, line):
    return len(bytearray(64 << 30))
""",
    "hides_answers_in_the_environment": """
import os

os.environ["PYTHONSTARTUP"] = os.environ["LD_PRELOAD"] = "/tmp/forged.py"

def misses(addresses, lines, line):
    return int(os.environ.get("EXPECTED", "0"))
""",
}
