"""The commands for coding agents: `inductor-lab mcp` and `inductor-lab skill`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.errors import MissingPackage
from inductor_lab.debug.command_line import Answer, seconds
from inductor_lab.debug.untrusted.confine import Limits

START = 120.0
"""Seconds for a process to load torch, before the limit of a command begins."""


def add_commands(commands: Any, json: list[argparse.ArgumentParser]) -> None:
    """Add both commands to the parser of `inductor-lab`."""
    server = commands.add_parser("mcp", help="serve tools to a coding agent over stdio (MCP)")
    server.add_argument("folder", type=Path, nargs="?", default=Path(),
                        help="the only folder whose files it reads")  # fmt: skip
    server.add_argument("--limit", type=seconds, default=300.0, help="seconds for one command")
    server.add_argument("--memory", type=seconds, default=4.0, metavar="GB", help="of one command")
    server.set_defaults(run=_mcp, json=False)

    skill = commands.add_parser(
        "skill", parents=json, help="write a SKILL.md: how an agent uses this command"
    )
    skill.add_argument("folder", type=Path, metavar="DIR", help="the folder of the skill")
    skill.set_defaults(run=_skill)


def _mcp(given: argparse.Namespace) -> Answer:
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise MissingPackage("mcp", "mcp") from None
    from inductor_lab.debug.mcp.server import serve

    memory = int(given.memory * (1 << 30))
    serve(given.folder, Limits(given.limit, START, memory))
    return Answer("the client has closed the connection")


def _skill(given: argparse.Namespace) -> Answer:
    from inductor_lab.debug.mcp.skill import write_skill

    return Answer(f"written to {write_skill(given.folder)}")
