"""ResNet-50 of the part *model-parallel*: its numbers, torchvision's outputs, and every place where it can be cut."""

import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

SCRIPTS = Path(__file__).parents[2] / "book" / "model-parallel" / "scripts"


@pytest.fixture(scope="module")
def resnet():
    """The file, imported as a rank imports it."""
    sys.path.insert(0, str(SCRIPTS))
    import resnet

    yield resnet
    sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def batch():
    draw = torch.Generator().manual_seed(0)
    return torch.randn(4, 3, 32, 32, generator=draw), torch.randint(0, 1000, (4,), generator=draw)


def state(*stages):
    """Gradients and buffers of stages, by the names that they have in the whole model."""
    found = {}
    for stage in stages:
        found |= {name: parameter.grad for name, parameter in stage.named_parameters()} | dict(stage.named_buffers())
    return found


@pytest.fixture(scope="module")
def uncut(resnet, batch):
    model = resnet.resnet50()
    loss = cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    return loss.detach(), state(model)


def test_it_has_the_parameters_of_resnet_50(resnet):
    model = resnet.resnet50()
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_557_032
    assert (len(list(model.parameters())), len(list(model.buffers())), len(model)) == (161, 159, 18)


def test_a_stage_has_the_weights_that_it_has_in_the_whole_model(resnet):
    whole = resnet.resnet50().state_dict()
    for first, last in ((0, 1), (4, 9), (17, 18)):
        stage = resnet.resnet50(first, last).state_dict()
        assert all(torch.equal(whole[name], tensor) for name, tensor in stage.items())


def test_cut_everywhere_it_has_the_gradients_of_the_uncut_model(resnet, batch, uncut):
    stages = [resnet.resnet50(first, first + 1) for first in range(18)]
    received, sent = [batch[0]], []
    for stage in stages:
        sent.append(stage(received[-1]))
        received.append(sent[-1].detach().clone().requires_grad_())
    loss = cross_entropy(received[-1], batch[1])
    loss.backward()
    for activation, copy in zip(reversed(sent), reversed(received[1:]), strict=True):
        activation.backward(copy.grad)
    found = state(*stages)
    assert torch.allclose(loss.detach(), uncut[0])
    assert found.keys() == uncut[1].keys()
    for name, tensor in uncut[1].items():
        assert torch.allclose(found[name], tensor, rtol=1e-3, atol=1e-4), name


def test_torchvision_computes_the_same(resnet):
    models = pytest.importorskip("torchvision.models", exc_type=Exception)
    torch.manual_seed(0)
    theirs, ours = models.resnet50(), resnet.resnet50()
    weights = theirs.state_dict()
    assert len(weights) == len(ours.state_dict())
    ours.load_state_dict({name: weights[resnet.torchvision_name(name)] for name in ours.state_dict()})
    images = torch.randn(2, 3, 64, 64)
    assert torch.allclose(theirs(images), ours(images), rtol=1e-4, atol=1e-5)


def test_the_file_is_small_and_needs_nothing_of_ours():
    text = (SCRIPTS / "resnet.py").read_text()
    assert len(text.splitlines()) < 150
    assert "ranklab" not in text
    assert "import torchvision" not in text
