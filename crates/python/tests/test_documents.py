"""The Python code of the documents runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["README.md", "docs/python.md"])
def test_the_code_of_documents_runs(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
    assert blocks
    # The blocks of a page build on each other.
    exec(compile("\n".join(blocks), name, "exec"), {})
