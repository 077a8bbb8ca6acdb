import pytest

from bookkit.leaks import PATH

PLACES = ["/home/ada/sync", "/tmp/meeting", "/private/var/folders/x"]  # bookkit: planted


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("before", ["", "see '", "=", "file://"])
def test_a_path_of_a_machine(path, before):
    assert PATH.find(before + path) == [path]


@pytest.mark.parametrize("text", ["https://example.org/home/ada", "book/home/x", "../tmp/x", "file://{folder}/x"])
def test_what_is_no_path_of_a_machine(text):
    assert PATH.find(text) == []
