#!/usr/bin/env python3
"""A function of PyTorch that does as it is told: a word a line on stdin, a line of JSON on stdout.

    product   a product of matrices against the CPU: {"error": largest difference}
    first     one small kernel and its result: {"ms"}
    infer     ResNet-152 with random weights: {"ms", "logits"}
"""

import json
import sys
import time

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity() if stride == 1 and channels == 4 * width else nn.Sequential(
            nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet152():
    """Of the paper's evaluation; torchvision need not be there."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, (count, width) in enumerate(((3, 64), (8, 128), (36, 256), (3, 512))):
        for index in range(count):
            layers.append(Bottleneck(channels, width, 2 if stage and index == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def milliseconds(work):
    begun = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begun), result


def main():
    edge = int(sys.argv[1])
    torch.manual_seed(152)
    model = resnet152().eval().to("cuda")
    image = torch.rand(1, 3, edge, edge)
    matrix = torch.rand(256, 256)
    one = torch.ones(1, device="cuda")

    def product():
        on_gpu = (matrix.to("cuda") @ matrix.to("cuda")).cpu()
        return {"error": float((on_gpu - matrix @ matrix).abs().max())}

    def first():
        ms, _ = milliseconds(lambda: (one + 1).cpu())
        return {"ms": ms}

    def infer():
        ms, logits = milliseconds(lambda: model(image.to("cuda")).cpu())
        return {"ms": ms, "logits": logits[0].tolist()}

    commands = {"product": product, "first": first, "infer": infer}
    print(json.dumps({"ready": torch.__version__, "cudnn": torch.backends.cudnn.version()}),
          flush=True)
    with torch.inference_mode():
        for line in sys.stdin:
            print(json.dumps(commands[line.strip()]()), flush=True)


if __name__ == "__main__":
    main()
