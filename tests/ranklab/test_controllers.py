"""The first word of ipyparallel's controller: a busy machine may make it late, and one that has ended says nothing."""

import os
import socket
import sys
from types import SimpleNamespace

import pytest
import zmq

from ranklab.engines import controller, controllers


class Cluster:
    """Answers when it has been asked so many times."""

    def __init__(self, answers_after):
        self.controller = SimpleNamespace(pid=os.getpid())
        self.left = answers_after

    def connect_client_sync(self, ipython_dir):
        if self.left:
            self.left -= 1
            raise TimeoutError("Hub connection request timed out")
        return f"a client that keeps its files in {ipython_dir}"


def test_a_controller_that_runs_is_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(controllers, "controller_runs", lambda cluster, thorough: True)
    assert controllers.connect(Cluster(3), tmp_path) == f"a client that keeps its files in {tmp_path}"


def test_one_that_has_ended_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(controllers, "controller_runs", lambda cluster, thorough: False)
    cluster = Cluster(3)
    with pytest.raises(TimeoutError):
        controllers.connect(cluster, tmp_path)
    assert cluster.left == 2


def test_one_that_runs_and_never_answers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(controllers, "controller_runs", lambda cluster, thorough: True)
    monkeypatch.setattr(controllers, "FIRST_WORD", 0.0)
    with pytest.raises(TimeoutError):
        controllers.connect(Cluster(10**6), tmp_path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems give away what is bound")
def test_a_port_that_was_chosen_is_kept_for_the_controllers_own_sockets():
    ports = controller.hold_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as another, pytest.raises(OSError, match="in use"):
            another.bind(("", port))
        with zmq.Context() as context, context.socket(zmq.ROUTER) as scheduler:
            scheduler.linger = 0
            scheduler.bind(f"tcp://127.0.0.1:{port}")
            socket.create_connection(("127.0.0.1", port)).close()
