"""ResNet-50 as eighteen pieces in a row, to be cut anywhere between two. The chapter *splitting-layers* builds it.

    model = resnet50()          # all of it
    stage = resnet50(8, 18)     # pieces 8 to 17, with the weights that they have in the whole model

The architecture is that of He and others, *Deep residual learning* (2015), with the stride in the 3 × 3 convolution,
as torchvision has it; with :func:`torchvision_name`, weights can come from there.
"""

import re
from collections import OrderedDict

import torch
from torch import nn


class Bottleneck(nn.Module):
    """1 × 1 narrows, 3 × 3 looks around, 1 × 1 widens; x is added."""

    def __init__(self, wide, narrow, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(wide, narrow, 1, bias=False)
        self.conv2 = nn.Conv2d(narrow, narrow, 3, stride, 1, bias=False)
        self.conv3 = nn.Conv2d(narrow, 4 * narrow, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(narrow), nn.BatchNorm2d(narrow)
        self.bn3, self.downsample = nn.BatchNorm2d(4 * narrow), nn.Sequential()
        if wide != 4 * narrow:
            fit = nn.Conv2d(wide, 4 * narrow, 1, stride, bias=False)
            self.downsample = nn.Sequential(fit, nn.BatchNorm2d(4 * narrow))

    def forward(self, x):
        """Return what the three convolutions make of x, plus x."""
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        y = self.bn3(self.conv3(y))
        return (y + self.downsample(x)).relu()


def piece(name):
    """The stem, one of the sixteen blocks, or the head."""
    if name == "stem":
        parts = OrderedDict(conv1=nn.Conv2d(3, 64, 7, 2, 3, bias=False))
        parts.update(bn1=nn.BatchNorm2d(64), relu=nn.ReLU())
        parts.update(pool=nn.MaxPool2d(3, 2, 1))
        return nn.Sequential(parts)
    if name == "head":
        parts = OrderedDict(pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten())
        parts.update(fc=nn.Linear(2048, 1000))
        return nn.Sequential(parts)
    layer, block = int(name[5]), int(name[7])
    narrow = 32 * 2**layer
    if block > 0:
        return Bottleneck(4 * narrow, narrow)
    if layer > 1:
        return Bottleneck(2 * narrow, narrow, stride=2)
    return Bottleneck(64, narrow)


BLOCKS = [3, 4, 6, 3]
PIECES = [f"layer{i + 1}_{j}" for i in range(4) for j in range(BLOCKS[i])]
PIECES = ["stem", *PIECES, "head"]


def resnet50(first=0, last=18):
    """The pieces from first to before last, each drawn from its own seed."""
    made = OrderedDict()
    for number in range(first, last):
        torch.manual_seed(number)
        made[PIECES[number]] = piece(PIECES[number])
        for module in made[PIECES[number]].modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
    return nn.Sequential(made)


def torchvision_name(name):
    """What torchvision calls a parameter or buffer: ``layer1_0.conv1.weight`` is ``layer1.0.conv1.weight`` there."""
    return re.sub(r"^(stem|head)\.", "", re.sub(r"^(layer\d)_", r"\1.", name))
