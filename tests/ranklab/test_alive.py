"""The count of the bytes that an answer keeps alive."""

import torch

from ranklab.rank.alive import Alive, bytes_of, peak


def test_the_curve_has_what_lives_after_each_operation():
    with Alive([]) as alive:
        first = torch.ones(10)
        second = first + 1
        del first
        second.mul_(2)
    assert alive.curve == [40, 80, 40]
    assert alive.left([]) == 40
    assert alive.left([second]) == 0


def test_what_was_there_before_and_its_views_are_not_counted():
    weights = torch.ones(10)
    with Alive({"weights": [weights]}) as alive:
        view = weights[:5]
        copy = view.clone()
    assert alive.curve == [0, 20]
    assert alive.left({"weights": (weights, view), "copy": copy}) == 0


def test_a_view_keeps_the_whole_memory():
    with Alive([]) as alive:
        part = torch.ones(100)[:1]
    assert alive.left([]) == bytes_of(part) == 400


def test_a_storage_that_was_emptied_has_no_bytes():
    with Alive([]) as alive:
        whole = torch.ones(10)
        whole.untyped_storage().resize_(0)
    assert alive.left([]) == 0


def test_bytes_of_counts_each_storage_once_and_looks_into_optimizers():
    weight = torch.nn.Parameter(torch.ones(10))
    adam = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    weight.grad = torch.ones(10)
    adam.step()
    whole = torch.ones(6)
    assert bytes_of({"adam": adam, "twice": [whole, whole[:2]], "weight": weight}, apart_from=[weight]) == 40 + 24


def test_the_peak_leaves_out_what_a_thread_let_go_of_too_late():
    assert peak([[4, 12, 8], [4, 8, 16], [20, 8, 8]]) == 8


def test_runs_of_different_length_give_the_least_of_their_peaks():
    assert peak([[4, 12], [4, 8, 16]]) == 12
    assert peak([[], []]) == 0
