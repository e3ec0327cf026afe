"""Times what other compilers and libraries make of the same work, on the same GPU.

Prints one JSON object: a name to milliseconds, each the median of many runs timed with CUDA events.
Inputs are random normal numbers; buffers rotate so that no input stays in the L2 cache.
"""
import json
import sys
import torch

ROUNDS = 30


def timed(make, work, sets=4):
    """Median milliseconds of `work` on one of several sets of inputs, taken in turn."""
    inputs = [make() for _ in range(sets)]
    for each in inputs:
        work(*each)
    torch.cuda.synchronize()
    samples = []
    for round in range(ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for each in inputs:
            work(*each)
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / sets)
    return sorted(samples)[len(samples) // 2]


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


def main():
    results = {}
    count = 1 << 27
    pair = lambda: (normal(count, dtype=torch.float32), torch.empty(count, device="cuda"))
    results["copy torch"] = timed(pair, lambda x, out: out.copy_(x), sets=2)
    three = lambda: (*pair(), torch.empty(count, device="cuda"))
    add = torch.compile(lambda x, y: x * 2 + y)
    results["axpy torch.compile"] = timed(three, lambda x, y, out: add(x, y), sets=2)

    rows, columns = 16384, 8192
    row = lambda: (normal(rows, columns),)
    results["softmax torch"] = timed(row, lambda x: torch.softmax(x, -1))
    soft = torch.compile(lambda x: torch.softmax(x, -1))
    results["softmax torch.compile"] = timed(row, soft)
    weight = normal(columns)
    norm = torch.compile(lambda x: torch.nn.functional.rms_norm(x, (columns,), weight, 1e-6))
    results["rms_norm torch.compile"] = timed(row, norm)

    for size in (2048, 4096, 8192):
        pairs = lambda: (normal(size, size), normal(size, size))
        results[f"gemm {size} cuBLAS"] = timed(pairs, torch.matmul)
    json.dump(results, sys.stdout)
    print()


main()
