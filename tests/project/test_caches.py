"""Tests have caches of their own."""

from __future__ import annotations

import os
from pathlib import Path

from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache
from inductor_lab.compiler.torch_door.torch_aot import cache_folder
from tests.fresh import CACHES, FOLDER


def test_caches_of_the_user_are_not_used() -> None:
    assert open_cache().root.is_relative_to(FOLDER)
    assert Path(cache_folder()).is_relative_to(FOLDER)
    assert all(Path(os.environ[name]).is_relative_to(FOLDER) for name in CACHES)
