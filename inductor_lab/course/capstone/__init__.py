"""The capstone: a student builds a compiler, file by file, in a repository of their own.

    inductor-lab course start capstone FOLDER      starters, and a page for each step
    inductor-lab course check capstone 5 FOLDER    points, or a counterexample

Read `repository.py` first: starters are the files of `inductor_lab/mini` without some bodies, and
what is not written yet is borrowed from there.

    steps.toml      the steps: files, functions to write, texts
    repository.py   starters, borrowed functions
    command.py      writes a repository, and checks one
    readme.py       the pages of the repository
    check.py        a confined process for the student's files, and a judge for each step
    judges.py       what is checked: properties, on hidden programs; judge.py: what judges share
    generated.py    the judges of generated code; kernel_text.py: what a Triton kernel may have
    triton_printer.py  the reference of the optional step, which is not part of the small compiler
    programs.py     hidden programs; values.py: programs as data
    process.py      the side of the student's code
"""

from inductor_lab.course.capstone.repository import borrow

__all__ = ["borrow"]
