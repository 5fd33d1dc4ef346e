"""Code is loaded only from folders that no other user can write to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_lab.compiler.accelerate.warm_graphs import warm_key
from inductor_lab.compiler.base.errors import CacheRefused
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.runtime.cache.folder_permissions import trust_problem
from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
root_only = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can chown"
)
SOMEBODY = 12345


def group_writable(folder: Path) -> Path:
    folder.chmod(0o770)
    return folder


def writable_by_all(folder: Path) -> Path:
    folder.chmod(0o707)
    return folder


def sticky_itself(folder: Path) -> Path:
    """Other users can add files to it, but cannot replace existing ones."""
    parent = folder / "below"
    parent.mkdir()
    parent.chmod(0o1777)
    return parent


def below_group_writable(folder: Path) -> Path:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a").chmod(0o775)
    return folder / "a" / "b"


def to_be_made_below_it(folder: Path) -> Path:
    return below_group_writable(folder) / "c"


def link_to_an_open_one(folder: Path) -> Path:
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    (folder / "link").symlink_to("open")
    return folder / "link"


def link_that_others_can_replace(folder: Path) -> Path:
    for name in ("own", "open"):
        (folder / name).mkdir()
    (folder / "open" / "link").symlink_to(folder / "own")
    (folder / "open").chmod(0o777)
    return folder / "open" / "link"


def links_in_a_circle(folder: Path) -> Path:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    return folder / "one"


REFUSED: dict[Callable[[Path], Path], str] = {
    group_writable: "may write to",
    writable_by_all: "everybody may write to",
    below_group_writable: "may write to",
    to_be_made_below_it: "may write to",
    link_to_an_open_one: "everybody may write to",
    link_that_others_can_replace: "everybody may write to",
    links_in_a_circle: "no cache directory",
}


@pytest.mark.parametrize("made", REFUSED, ids=lambda made: made.__name__)
def test_folders_that_others_can_write_to_are_refused(
    made: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path)
    assert REFUSED[made] in trust_problem(folder)
    with pytest.raises(CacheRefused, match=REFUSED[made]):
        open_cache({"INDUCTOR_LAB_CACHE_DIR": str(folder)})
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
    assert warm_key(Options(), ()) == "", "graphs are not stored either"


@root_only
@pytest.mark.parametrize("which", ["it", "its parent", "a link", "what a link leads to"])
def test_folders_of_other_users_are_refused(which: str, tmp_path: Path) -> None:
    for name in ("parent", "own"):
        (tmp_path / name / "it").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to("parent")
    match which:
        case "it":
            os.chown(tmp_path / "parent" / "it", SOMEBODY, SOMEBODY)
        case "its parent" | "what a link leads to":
            os.chown(tmp_path / "parent", SOMEBODY, SOMEBODY)
        case "a link":
            os.chown(link, SOMEBODY, SOMEBODY, follow_symlinks=False)
    through = link if "link" in which else tmp_path / "parent"
    assert f"belongs to user {SOMEBODY}" in trust_problem(through / "it")
    assert trust_problem(tmp_path / "own" / "it") == ""


def test_folders_of_the_user_are_accepted(tmp_path: Path) -> None:
    """This includes folders below a sticky one such as /tmp, links of the user, and new folders."""
    sticky = tmp_path / "everybodys"
    sticky.mkdir()
    sticky.chmod(0o1777)
    (tmp_path / "link").symlink_to(sticky)
    assert trust_problem(tmp_path / "link" / ".." / "everybodys" / "mine" / "deep") == ""
    assert trust_problem(sticky) == ""
    assert sticky.stat().st_mode & 0o7777 == 0o700, "the folder itself is private"


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o777])
def test_new_folders_are_private_whatever_the_umask(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        assert trust_problem(tmp_path / "a" / "b") == ""
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700] * 2
