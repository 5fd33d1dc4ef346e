"""Imported once by the server process: each rank is a forked process that begins warm."""

from __future__ import annotations

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a process that was forked cannot use a GPU

import torch

import inductor_lab as lab
from tests.distributed import programs

torch.set_num_threads(1)
_x = torch.ones(7, requires_grad=True)
lab.inspect(lambda x: x.exp().sum(), _x, options={"cache": False})

__all__ = ["programs"]
