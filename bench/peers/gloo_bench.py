#!/usr/bin/env python3
"""Measures a collective of gloo, through torch.distributed, as mpi_bench.cpp does one of MPI: as many operations in a
sample, two samples to warm up, the median of the others, one result checked before. A sample takes as long as its slowest
rank. Prints one JSON object.

   /usr/bin/python3 gloo_bench.py RANKS KIND BYTES SAMPLES     # KIND: all_reduce, broadcast, all_gather
"""
import json
import os
import statistics
import sys
import tempfile
import time

MOST = 1000    # of the inputs: small whole numbers, so that sums are exact in any order
WORD = 1 << 64


def mixed_bits(x):
    """As runtime/samples/sample_hash.hpp has it."""
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 % WORD
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb % WORD
    return x ^ (x >> 31)


def signed(x):
    """The same bits as torch's int64 has them."""
    return x - WORD if x >> 63 else x


def sample_values(torch, of_rank, count):
    """The same numbers as mpi_bench.cpp, whose hash is unsigned: a shift here has to clear the sign's copies."""
    def shifted(x, bits):
        return (x >> bits) & ((1 << (64 - bits)) - 1)

    start = mixed_bits((mixed_bits(1) + of_rank) % WORD)
    x = torch.arange(count, dtype=torch.int64) * signed(0x9e3779b97f4a7c15) + signed(start)
    x = (x ^ shifted(x, 30)) * signed(0xbf58476d1ce4e5b9)
    x = (x ^ shifted(x, 27)) * signed(0x94d049bb133111eb)
    x = x ^ shifted(x, 31)
    return (shifted(shifted(x, 32) * (2 * MOST + 1), 32) - MOST).to(torch.float32)


def play(rank, ranks, kind, size, samples, meeting):
    import torch    # by each process, for it starts threads
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)

    def values(of_rank, count):
        return sample_values(torch, of_rank, count)

    count = size // 4
    sums = sum(values(r, count) for r in range(ranks))
    mine = values(rank, count // ranks if kind == "all_gather" else count)
    parts = [torch.empty_like(mine) for _ in range(ranks)] if kind == "all_gather" else []
    run = {"all_reduce": lambda: dist.all_reduce(mine), "broadcast": lambda: dist.broadcast(mine, 0),
           "all_gather": lambda: dist.all_gather(parts, mine)}[kind]
    run()
    wrong = {"all_reduce": lambda: (mine != sums).sum(), "broadcast": lambda: (mine != values(0, count)).sum(),
             "all_gather": lambda: sum((x != values(r, count // ranks)).sum() for r, x in enumerate(parts))}[kind]()
    wrongs = torch.tensor([float(wrong)])
    dist.all_reduce(wrongs)
    mine.zero_()    # or sums of sums overflow
    operations = min(max((64 << 20) // max(size * ranks, 1), 2), 256)
    times = []
    for sample in range(samples + 2):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(operations):
            run()
        took = torch.tensor([(time.perf_counter() - start) * 1e6 / operations])
        dist.all_reduce(took, dist.ReduceOp.MAX)
        if sample >= 2:
            times.append(float(took))
    dist.barrier()
    if rank == 0:
        print(json.dumps({"kind": kind, "devices": ranks, "size": size, "time": statistics.median(times),
                          "wrong": int(wrongs)}))


def main():
    if len(sys.argv) != 5:
        sys.exit("usage: gloo_bench.py RANKS KIND BYTES SAMPLES")
    ranks, kind, size, samples = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with tempfile.TemporaryDirectory() as place:
        children = []
        for rank in range(ranks):
            child = os.fork()
            if child == 0:
                play(rank, ranks, kind, size, samples, os.path.join(place, "meeting"))
                sys.stdout.flush()
                os._exit(0)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
    sys.exit(any(statuses))


if __name__ == "__main__":
    main()
