"""The optional packages are looked for in one way, and pinned in the file that their row names."""

import re
from pathlib import Path

import pytest

from ranklab import packages

ROOT = Path(__file__).parents[2]


@pytest.fixture
def only(monkeypatch):
    """Take all optional packages from this Python but those that are named."""

    def there(*names):
        monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: name if name in names else None)

    return there


def test_what_lacks_is_told_with_what_installs_it(only):
    only("lightning")
    assert packages.without("needs-frameworks") == (
        "accelerate and transformers are not installed here: make environment FRAMEWORKS=1."
    )
    only("lightning", "accelerate")
    assert packages.without("needs-frameworks").startswith("transformers is not installed here")
    only("lightning", "accelerate", "transformers")
    assert packages.without("needs-frameworks") == ""


def test_a_tag_of_no_package_is_a_mistake_of_the_author():
    with pytest.raises(KeyError, match="needs-framework"):
        packages.without("needs-framework")


def test_each_package_is_pinned_and_no_other():
    for file in {package.requirements for package in packages.OPTIONAL}:
        pinned = re.findall(r"^([\w-]+)==\S+", (ROOT / file).read_text(encoding="utf-8"), re.M)
        assert pinned == [package.name for package in packages.OPTIONAL if package.requirements == file]


def test_the_wish_is_one_that_make_knows():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for package in packages.OPTIONAL:
        variable = package.wish.partition("=")[0]
        assert f"$(if $(filter-out 0,$({variable})),--add {package.requirements})" in makefile
