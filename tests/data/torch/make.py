#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the .pt2 files of this folder, with PyTorch of any version from 2.8 on: tests/data/torch/make.py"""
import json
import pathlib
import zipfile

import torch
from torch import nn
from torch.export import Dim, export, save

FOLDER = pathlib.Path(__file__).parent


class Picture(nn.Module):
    """Weights, statistics, a constant; the batch is free."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.linear = nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.Linear(2, 3)
        for p in self.parameters():
            nn.init.constant_(p, 0.5)
        self.offset = torch.arange(3).float()

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        return self.linear(y) + self.offset


class Cache(nn.Module):
    """A buffer that is written in place, and a view of a result."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 3))

    def forward(self, x):
        self.cache[0] = x
        y = self.cache * 2
        y.view(-1)[1] = 7
        return y.sum(0)


class Choice(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a * 2, (x,))


class Grown(nn.Module):
    """Sizes computed from a free one."""

    def forward(self, x):
        return torch.cat([x, x.new_zeros(x.shape[0], 2)], 1).reshape(x.shape[0] * 5, 1)


def write(name, module, inputs, **options):
    path = FOLDER / f"{name}.pt2"
    save(export(module.eval(), inputs, strict=False, **options), path)
    # What names this machine's folders is no part of the model.
    with zipfile.ZipFile(path) as archive:
        members = [(i, archive.read(i)) for i in archive.infolist() if "sample_inputs" not in i.filename]
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in members:
            if info.filename.endswith("models/model.json"):
                graph = json.loads(data)
                strip(graph)
                data = json.dumps(graph).encode()
                (FOLDER / "graphs").mkdir(exist_ok=True)
                (FOLDER / "graphs" / f"{name}.json").write_bytes(data)
            archive.writestr(zipfile.ZipInfo(info.filename), data)


def strip(value):
    if isinstance(value, dict):
        for key in ("stack_trace", "nn_module_stack", "torch_fn", "source_fn_stack", "from_node"):
            if isinstance(value.get(key), str):
                del value[key]
        for item in value.values():
            strip(item)
    elif isinstance(value, list):
        for item in value:
            strip(item)


if __name__ == "__main__":
    batch = Dim("batch", min=2, max=16)
    write("picture", Picture(), (torch.ones(2, 1, 4, 4),), dynamic_shapes=({0: batch},))
    write("cache", Cache(), (torch.ones(3),))
    write("choice", Choice(), (torch.ones(3),))
    write("grown", Grown(), (torch.ones(2, 3),), dynamic_shapes=({0: batch},))
