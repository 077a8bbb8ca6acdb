"""The hub as it is: a learner logs in, is refused elsewhere, lends the server, logs out; nothing is left."""

import importlib.util
import shutil
import subprocess

import pytest
import requests
from bs4 import BeautifulSoup
from support import eventually

from bookkit.hub import proxy
from tests.benchmarks.hub import ROOT, Hub

LONG = 300  # seconds: a hub on a busy machine
PROXY = ROOT / "_build" / "hub" / proxy.PROGRAM


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub for two learners; skipped where `make hub` has not installed what it needs."""
    for package in ("jupyterhub", "jupyterhub_idle_culler"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: `make hub` brings it.")
    if not shutil.which("node") or not PROXY.exists():
        pytest.skip("JupyterHub's proxy is not installed: `make hub` brings it.")
    folder = tmp_path_factory.mktemp("room")
    hub = Hub(folder, ["ada", "grace"])
    try:
        hub.wait(LONG)
        yield hub
    finally:
        hub.stop()
    assert hub.running() == []


def log_in(hub, name, password):
    """Fill in the form; return the session and the answer."""
    session = requests.Session()
    session.get(f"{hub.address}/hub/login", timeout=LONG)
    form = {"username": name, "password": password, "_xsrf": session.cookies.get("_xsrf", path="/hub/")}
    return session, session.post(f"{hub.address}/hub/login?next=%2Fhub%2Fhome", data=form, timeout=LONG)


@pytest.fixture(scope="module")
def ada(hub):
    """Ada, whose server runs."""
    session, answer = log_in(hub, "ada", hub.passwords()["room"])
    assert answer.status_code == 200
    session.get(f"{hub.address}/hub/spawn", timeout=LONG)
    assert eventually(lambda: "/user/ada/lab" in session.get(f"{hub.address}/user/ada/lab", timeout=LONG).url, LONG)
    assert session.get(f"{hub.address}/user/ada/api/status", timeout=LONG).status_code == 200
    return session


def test_a_wrong_password_and_an_unknown_name_are_refused(hub):
    assert log_in(hub, "ada", "not this one")[1].status_code == 403
    assert log_in(hub, "mallory", hub.passwords()["room"])[1].status_code == 403
    assert log_in(hub, "instructor", hub.passwords()["room"])[1].status_code == 403


def test_a_learner_has_a_copy_and_the_limits(hub, ada):
    home = hub.folder / "learners" / "ada"
    assert (home / "book" / "index.md").read_bytes() == (ROOT / "book" / "index.md").read_bytes()
    (server,) = (each for each in hub.running("ada") if "jupyterhub.singleuser" in each.cmdline())
    assert server.environ()["RANKLAB_ROOM"] == str(home / "for-the-instructor")
    assert server.nice() >= 5
    listed = ada.get(f"{hub.address}/user/ada/api/contents/book", timeout=LONG).json()
    assert "index.md" in {entry["name"] for entry in listed["content"]}


def test_the_page_is_the_instructors(hub, ada):
    assert ada.get(f"{hub.address}/services/board/", timeout=LONG).status_code == 403
    session, _ = log_in(hub, "instructor", hub.passwords()["instructor"])
    answer = session.get(f"{hub.address}/services/board/", timeout=LONG)
    assert answer.status_code == 200 and "shows nothing" in answer.text and "ada" in answer.text


def test_a_server_is_lent_by_its_learner_alone(hub, ada):
    grace, _ = log_in(hub, "grace", hub.passwords()["room"])
    status = f"{hub.address}/user/ada/api/contents"
    assert grace.get(status, timeout=LONG).status_code == 403
    (server,) = (each for each in hub.running("ada") if "jupyterhub.singleuser" in each.cmdline())
    variables = server.environ()
    # As the page of the hub has it, for a terminal.
    lend = f"{variables['JUPYTERHUB_API_URL']}/shares/{variables['JUPYTERHUB_USER']}/"
    token = {"Authorization": f"token {variables['JUPYTERHUB_API_TOKEN']}"}
    assert requests.post(lend, headers=token, data='{"user": "grace"}', timeout=LONG).status_code == 200
    grace, _ = log_in(hub, "grace", hub.passwords()["room"])
    # At somebody else's server JupyterHub asks once.
    asked = grace.get(f"{hub.address}/user/ada/lab", timeout=LONG)
    inputs = BeautifulSoup(asked.text, "html.parser").select("form input[name]")
    grace.post(asked.url, data=[(one["name"], one.get("value", "")) for one in inputs], timeout=LONG)
    assert grace.get(status, timeout=LONG).status_code == 200
    assert requests.delete(lend, headers=token, timeout=LONG).status_code in (200, 204)
    other = lend.replace("/ada/", "/grace/")
    assert requests.post(other, headers=token, data='{"user": "ada"}', timeout=LONG).status_code in (403, 404)


def test_after_log_out_nothing_runs_in_the_background_either(hub, ada):
    (server,) = (each for each in hub.running("ada") if "jupyterhub.singleuser" in each.cmdline())
    started = subprocess.Popen(["sleep", "1000"], env=server.environ(), start_new_session=True)
    ada.get(f"{hub.address}/hub/logout", timeout=LONG)
    assert eventually(lambda: not hub.running("ada"), LONG)
    assert started.wait(LONG)
