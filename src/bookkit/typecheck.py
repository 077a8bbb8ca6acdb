"""mypy over the packages that pyproject.toml names."""

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path

from bookkit.errors import BookError
from bookkit.rulebook import Finding

FIX = "let the code and its types say the same"


def check_types(root):
    """Findings of mypy, where ``[tool.mypy]`` of pyproject.toml names what to read."""
    settings = Path(root, "pyproject.toml")
    if not settings.exists() or "mypy" not in tomllib.loads(settings.read_text(encoding="utf-8")).get("tool", {}):
        return []
    if importlib.util.find_spec("mypy") is None:
        raise BookError("mypy is not installed; `make check` without VENV= installs it")
    done = subprocess.run([sys.executable, "-m", "mypy", "-O", "json"], cwd=root, text=True, capture_output=True)
    if done.returncode > 1:
        raise BookError(f"mypy failed: {done.stderr.strip() or done.stdout.strip()}")
    complaints = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [
        Finding(f"{item['file']}:{item['line']}", item["code"] or "types", item["message"], item["hint"] or FIX)
        for item in complaints
        if item["severity"] == "error"
    ]
