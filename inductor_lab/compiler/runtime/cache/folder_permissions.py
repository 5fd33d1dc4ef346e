"""Checks the permissions of folders from which code is loaded: only the user may write to them.

    /home/me/.cache/inductor_lab      owned by the user, mode 0700
    /home/me/.cache -> /data/cache    a link owned by the user; /data is owned by root
    /tmp/mine                         /tmp is writable by everybody, but sticky, so this is safe
    /srv/class                        owned by root, readable by everybody: each entry is checked
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

ROOT = 0
MOST_LINKS = 40


def trust_problem(folder: Path) -> str:
    """Return why code from a folder must not be loaded, or "" if it can be.

    Creates the folder and its parents if they are missing, with mode 0700 whatever the umask.
    Changes the mode of a folder that others can read to 0700, if the user owns it.
    """
    try:
        _make(folder)
        if hasattr(os, "geteuid"):
            for step in _path_components(folder.absolute()):
                if problem := _open_to_others(step):
                    return problem
            facts = folder.stat()
            if facts.st_uid != os.geteuid():
                return _belongs(folder, facts.st_uid)
            if stat.S_IMODE(facts.st_mode) != 0o700:
                folder.chmod(0o700)
    except OSError as problem:
        return f"no cache directory at {folder}: {problem}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"the cache directory {folder} is not writable"
    return ""


def entry_trust_problem(root: Path, entry: Path) -> str:
    """Return why files of `entry`, in a folder shared by several users, must not be loaded, or "".

    They can be loaded if root or the user owns all of them, and no other user can write to them.
    """
    if not hasattr(os, "geteuid"):
        return "this system does not report file permissions"
    try:
        for step in (*_path_components(entry), *entry.iterdir()):
            if problem := _open_to_others(step):
                return problem
            if step.is_relative_to(root) and step.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return f"users other than the owner may write to {step}"
    except OSError as problem:
        return f"{entry} cannot be read: {problem}"
    return ""


def _make(folder: Path) -> None:
    missing = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
    for one in reversed(missing):
        try:
            one.mkdir(mode=0o700)
        except FileExistsError:  # another process has just created it
            continue
        one.chmod(0o700)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a directory")


def _path_components(folder: Path) -> Iterator[Path]:
    """Yield every directory and link of the path to a folder, starting at the root."""
    at, links = Path(folder.anchor), 0
    rest = list(folder.parts[1:])
    yield at
    while rest:
        step = at / rest.pop(0)
        yield step
        if step.is_symlink():
            links += 1
            if links > MOST_LINKS:
                raise OSError(f"too many links in the path of {folder}")
            target = Path(os.readlink(step))
            at = Path(target.anchor) if target.is_absolute() else at
            rest = [*target.parts[target.is_absolute() :], *rest]
        else:
            at = step.parent.parent if step.name == ".." else step


def _open_to_others(step: Path) -> str:
    """Return why other users could replace `step` or write to it, or ""."""
    facts = step.lstat()
    if facts.st_uid not in (ROOT, os.geteuid()):
        return _belongs(step, facts.st_uid)
    mode = facts.st_mode
    if stat.S_ISLNK(mode) or mode & stat.S_ISVTX:
        return ""
    if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_own_group(facts.st_gid)):
        who = "everybody" if mode & stat.S_IWOTH else f"group {facts.st_gid}"
        return f"{who} may write to {step}, which is in the path of code to load"
    return ""


def _is_own_group(group: int) -> bool:
    """Is this the user's private group, which many systems create for each user?"""
    import grp
    import pwd

    try:
        user, facts = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    alone = user.pw_uid != ROOT and facts.gr_gid == user.pw_gid and facts.gr_name == user.pw_name
    return alone and set(facts.gr_mem) <= {user.pw_name}


def _belongs(step: Path, owner: int) -> str:
    return f"the cache directory {step} belongs to user {owner}, and you are user {os.geteuid()}"
