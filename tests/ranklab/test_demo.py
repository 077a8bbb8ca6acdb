"""``python -m ranklab demo`` says so when the ranks do not do what was announced; test_wheel.py runs the real one."""

from ranklab import demo


def test_what_goes_wrong_is_said(monkeypatch):
    monkeypatch.setattr(demo, "SCENES", (("A cell that fails.", "1 / 0"),))
    said = []
    assert demo.demo(said.append) == 1
    assert "doctor" in said[-1]
