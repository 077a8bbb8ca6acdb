import importlib.util

import pytest

from bookkit.errors import BookError
from bookkit.typecheck import check_types

SETTINGS = '[tool.mypy]\nmypy_path = "src"\npackages = ["small"]\ncheck_untyped_defs = true\n'


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What mypy knows of Python's own modules, read once for all tests."""
    return f'cache_dir = "{tmp_path_factory.mktemp("mypy")}"\n'


@pytest.fixture
def package(tmp_path, cache):
    """Write the one module of a package that mypy is told to read; returns the top."""
    (tmp_path / "pyproject.toml").write_text(SETTINGS + cache)
    (tmp_path / "src" / "small").mkdir(parents=True)

    def write(code):
        (tmp_path / "src" / "small" / "__init__.py").write_text(code)
        return tmp_path

    return write


def test_a_wrong_type_is_found_with_its_place(package):
    (finding,) = check_types(package("def length(name: str) -> int:\n    return name\n"))
    assert finding.place == "src/small/__init__.py:2"
    assert finding.rule == "return-value"
    assert "expected" in finding.found


def test_what_is_right_has_no_finding(package):
    assert check_types(package("def length(name: str) -> int:\n    return len(name)\n")) == []


def test_without_settings_nothing_is_read(tmp_path):
    assert check_types(tmp_path) == []


def test_settings_that_mypy_refuses_are_told(package):
    top = package("")
    (top / "pyproject.toml").write_text(SETTINGS.replace("small", "no_such_package"))
    with pytest.raises(BookError, match=r"mypy failed: .*no_such_package"):
        check_types(top)


def test_a_missing_mypy_gets_a_sentence(package, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BookError, match="mypy is not installed; `make check` without VENV= installs it"):
        check_types(package(""))
