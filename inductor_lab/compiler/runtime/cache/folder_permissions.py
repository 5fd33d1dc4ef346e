"""Folders whose contents become code of this process: nobody but the user may write to them.

    /home/me/.cache/inductor_lab      mine, 0700
    /home/me/.cache -> /data/cache    a link of mine; /data belongs to root
    /tmp/mine                         /tmp is everybody's, but sticky: what is mine there stays mine
    /srv/class                        root's, read by everybody: shared, entry by entry
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

ROOT = 0
MOST_LINKS = 40


def distrust(folder: Path) -> str:
    """Why code from a folder must not become code of this process; "" if it may.

    A missing folder is made, and with it the parents that are missing, all 0700 whatever the umask.
    One that is the user's but open to others' eyes is closed to them.
    """
    try:
        _make(folder)
        if hasattr(os, "geteuid"):
            for step in _way_to(folder.absolute()):
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
        return f"the cache directory {folder} cannot be written"
    return ""


def distrust_entry(root: Path, entry: Path) -> str:
    """Why files of `entry`, below a folder that several users share, must not become code of this
    process; "" if they may: all of it is root's or the user's, and nobody else writes to it.
    """
    if not hasattr(os, "geteuid"):
        return "this system does not tell who may write to a file"
    try:
        for step in (*_way_to(entry), *entry.iterdir()):
            if problem := _open_to_others(step):
                return problem
            if step.is_relative_to(root) and step.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return f"others than its owner may write to {step}"
    except OSError as problem:
        return f"{entry} cannot be read: {problem}"
    return ""


def _make(folder: Path) -> None:
    missing = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
    for one in reversed(missing):
        try:
            one.mkdir(mode=0o700)
        except FileExistsError:  # by another process, just now
            continue
        one.chmod(0o700)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is no directory")


def _way_to(folder: Path) -> Iterator[Path]:
    """Every directory and link of the path to a folder, from the root on; links are followed."""
    at, links = Path(folder.anchor), 0
    rest = list(folder.parts[1:])
    yield at
    while rest:
        step = at / rest.pop(0)
        yield step
        if step.is_symlink():
            links += 1
            if links > MOST_LINKS:
                raise OSError(f"too many links on the way to {folder}")
            target = Path(os.readlink(step))
            at = Path(target.anchor) if target.is_absolute() else at
            rest = [*target.parts[target.is_absolute() :], *rest]
        else:
            at = step.parent.parent if step.name == ".." else step


def _open_to_others(step: Path) -> str:
    """Why others could put something else there, or into it."""
    facts = step.lstat()
    if facts.st_uid not in (ROOT, os.geteuid()):
        return _belongs(step, facts.st_uid)
    mode = facts.st_mode
    if stat.S_ISLNK(mode) or mode & stat.S_ISVTX:
        return ""
    if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_own_group(facts.st_gid)):
        who = "everybody" if mode & stat.S_IWOTH else f"group {facts.st_gid}"
        return f"{who} may write to {step}, on the way to what would be loaded"
    return ""


def _is_own_group(group: int) -> bool:
    """Is a group the user's private one, as many systems make for each user?"""
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
