"""A class cache: entries of the teacher are used if no other user can have written them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_lab.compiler.runtime.cache.kernel_cache import (
    CHECKSUM,
    SHARED,
    VARIABLE,
    Cache,
    UntrustedCache,
    open_cache,
)
from inductor_lab.notebook.warm import publish

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
root_only = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can chown"
)
PARTS = ("source", "flags")
SOMEBODY = 12345


def writes(text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "kernel.so").write_text(text) and None


@pytest.fixture
def teachers(tmp_path: Path) -> Path:
    """Return the only entry of a class cache."""
    own = open_cache({VARIABLE: str(tmp_path / "teacher")})
    own.entry(PARTS, writes("the teacher's"))
    assert publish(own.root, tmp_path / "class") == 1
    return next((tmp_path / "class").rglob(CHECKSUM)).parent


@pytest.fixture
def student(tmp_path: Path, teachers: Path) -> Cache:
    return open_cache({VARIABLE: str(tmp_path / "student"), SHARED: str(tmp_path / "class")})


def contents(cache: Cache) -> str:
    return (cache.entry(PARTS, writes("the student's")) / "kernel.so").read_text()


def test_entries_of_the_teacher_are_used_without_a_copy(student: Cache, teachers: Path) -> None:
    assert contents(student) == "the teacher's"
    assert student.entry(PARTS, writes("")) == teachers
    assert not list(student.root.rglob(CHECKSUM))


def test_published_entries_are_readable_but_not_writable(teachers: Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in teachers.iterdir()}
    assert modes == {"kernel.so": 0o444, CHECKSUM: 0o444}
    steps = [teachers, *teachers.parents[:2]]
    assert {step.stat().st_mode & 0o777 for step in steps} == {0o755}


def test_publishing_again_adds_nothing(tmp_path: Path, teachers: Path) -> None:
    assert publish(tmp_path / "teacher" / "inductor_lab", tmp_path / "class") == 0


@pytest.mark.parametrize("mode", [0o020, 0o002, 0o1002])
@pytest.mark.parametrize("step", range(5), ids=["file", "entry", "letters", "version", "folder"])
def test_entries_that_others_can_write_to_are_not_used(step, mode, student, teachers: Path) -> None:
    path = [teachers / "kernel.so", teachers, *teachers.parents][step]
    path.chmod(path.stat().st_mode | mode)
    with pytest.warns(UntrustedCache, match="may write to"):
        assert contents(student) == "the student's"


@root_only
@pytest.mark.parametrize("step", range(3), ids=["file", "entry", "letters"])
def test_entries_of_other_users_are_not_used(step, student, teachers: Path) -> None:
    path = [teachers / "kernel.so", teachers, *teachers.parents][step]
    os.chown(path, SOMEBODY, SOMEBODY)
    with pytest.warns(UntrustedCache, match=f"belongs to user {SOMEBODY}"):
        assert contents(student) == "the student's"


def test_the_target_of_a_link_is_checked_too(student, teachers) -> None:
    elsewhere = student.root.parent / "elsewhere"
    teachers.rename(elsewhere)
    elsewhere.chmod(0o777)
    teachers.symlink_to(elsewhere)
    with pytest.warns(UntrustedCache, match="may write to"):
        assert contents(student) == "the student's"


def test_a_damaged_entry_is_not_used(student: Cache, teachers: Path) -> None:
    (teachers / "kernel.so").chmod(0o644)
    (teachers / "kernel.so").write_text("half")
    assert contents(student) == "the student's"


def test_a_missing_class_cache_is_ignored(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lonely = open_cache({VARIABLE: str(tmp_path / "a"), SHARED: str(tmp_path / "none")})
        assert contents(lonely) == "the student's"
