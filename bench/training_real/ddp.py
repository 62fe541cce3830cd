#!/usr/bin/env python3
"""One rank's part of training by PyTorch's DistributedDataParallel over gloo, on random samples.

ddp.py MODEL SETTING BATCH STEPS: torch.distributed's environment says which rank. SETTING is plain, views (gradients as
bucket views, a static graph), flat (one all-reduce of all gradients) or alone (no communication). Rank 0 prints samples
a second of all ranks, from the median step."""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

torch.set_num_threads(1)
torch.set_num_interop_threads(1)


class Residual(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.inner = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.inner(x)


def conv(inputs, outputs, kernel, stride):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2), nn.BatchNorm2d(outputs), nn.ReLU())


def model_of(name):
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), (784,)
    if name == "lenet":
        return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
                             nn.ReLU(), nn.Linear(84, 10)), (1, 28, 28)
    return nn.Sequential(conv(3, 16, 7, 4), conv(16, 32, 3, 2), Residual(conv(32, 32, 3, 1), conv(32, 32, 3, 1)),
                         conv(32, 64, 3, 2), conv(64, 128, 3, 2), Residual(conv(128, 128, 3, 1), conv(128, 128, 3, 1)),
                         nn.Flatten(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)), (3, 32, 32)


def main():
    name, setting, batch, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    inner, shape = model_of(name)
    net = inner
    if setting == "plain":
        net = nn.parallel.DistributedDataParallel(inner)
    elif setting == "views":
        net = nn.parallel.DistributedDataParallel(inner, gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.Adam(inner.parameters(), 1e-3)
    loss_of = nn.CrossEntropyLoss()
    inputs, labels = torch.rand(batch, *shape), torch.randint(0, 10, (batch,))
    times = []
    for step in range(steps + 5):
        begun = time.perf_counter()
        optimizer.zero_grad(set_to_none=setting != "views")
        loss_of(net(inputs), labels).backward()
        if setting == "flat":
            flat = torch.cat([x.grad.view(-1) for x in inner.parameters()])
            dist.all_reduce(flat)
            flat /= world
            at = 0
            for x in inner.parameters():
                x.grad.copy_(flat[at:at + x.numel()].view_as(x))
                at += x.numel()
        optimizer.step()
        if step >= 5:
            times.append(time.perf_counter() - begun)
    if rank == 0:
        print(batch * world / statistics.median(times))


if __name__ == "__main__":
    main()
