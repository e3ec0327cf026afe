"""Triton as a peer: a product by pointers and one by tensor descriptors, work on tiles (triton_tiles.py) and
attention (triton_attention.py); of each the fastest of at most eight configurations."""
import multiprocessing
import os
import statistics
from concurrent.futures import ProcessPoolExecutor
import torch
import triton
import triton.language as tl
from graph import GraphLane, dtypes, product_arrays
from serve import serve, why
from triton_attention import attention_of
from triton_tiles import works as tiles

works = {**tiles, "attention": attention_of}
MOST_CONFIGURATIONS = 8
# Processes that compile at once; each has a context on the GPU of its own.
MOST_COMPILERS = 8


@triton.jit
def tile_of(program, m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Tiles in groups of rows, so that neighbours in time share what they read."""
    across = tl.cdiv(n, BN)
    group = program // (GROUP * across)
    height = min(tl.cdiv(m, BM) - group * GROUP, GROUP)
    inside = program % (GROUP * across)
    return group * GROUP + inside % height, inside // height


@triton.jit
def by_pointers(a, b, out, m, n, k, am, ak, bk, bn,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN: tl.constexpr):
    row, column = tile_of(tl.program_id(0), m, n, BM, BN, GROUP)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + (rows % m)[:, None] * am + inner[None, :] * ak
    right = b + inner[:, None] * bk + (columns % n)[None, :] * bn
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        if EVEN:
            x, y = tl.load(left), tl.load(right)
        else:
            x = tl.load(left, mask=(at + inner)[None, :] < k, other=0.0)
            y = tl.load(right, mask=(at + inner)[:, None] < k, other=0.0)
        sums = tl.dot(x, y, sums)
        left += BK * ak
        right += BK * bk
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out + rows[:, None] * n + columns[None, :], sums.to(out.dtype.element_ty), mask=inside)


@triton.jit
def by_descriptors(a, b, out, m, n, k,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, TRANSPOSED: tl.constexpr):
    row, column = tile_of(tl.program_id(0), m, n, BM, BN, GROUP)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        x = a.load([row * BM, at])
        if TRANSPOSED:
            y = b.load([column * BN, at]).T
        else:
            y = b.load([at, column * BN])
        sums = tl.dot(x, y, sums)
    out.store([row * BM, column * BN], sums.to(out.dtype))


def pointer_calls(arrays, task, BM, BN, BK, stages, warps):
    m, n, k = task["m"], task["n"], task["k"]
    grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)
    return [
        lambda a=a, b=b, out=out: by_pointers[grid](
            a, b, out, m, n, k, *a.stride(), *b.stride(), BM=BM, BN=BN, BK=BK, GROUP=8, EVEN=k % BK == 0,
            num_stages=stages, num_warps=warps)
        for a, b, out in arrays
    ]


def descriptor_calls(arrays, task, BM, BN, BK, stages, warps):
    from triton.tools.tensor_descriptor import TensorDescriptor

    m, n, k, transposed = task["m"], task["n"], task["k"], task["b"] == "nk"
    grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)
    calls = []
    for a, b, out in arrays:
        left = TensorDescriptor.from_tensor(a, [BM, BK])
        right = TensorDescriptor.from_tensor(b.t() if transposed else b, [BN, BK] if transposed else [BK, BN])
        result = TensorDescriptor.from_tensor(out, [BM, BN])
        calls.append(lambda left=left, right=right, result=result: by_descriptors[grid](
            left, right, result, m, n, k, BM=BM, BN=BN, BK=BK, GROUP=8, TRANSPOSED=transposed,
            num_stages=stages, num_warps=warps))
    return calls


def configurations(task):
    m, aligned = task["m"], task["n"] % 8 == 0 and task["k"] % 8 == 0
    if m <= 64:
        shapes = [(max(16, triton.next_power_of_2(m)), BN, BK, 4, 4) for BN, BK in ((64, 64), (32, 128), (64, 128), (128, 64))]
    else:
        shapes = [(128, 256, 64, 3, 8), (128, 128, 64, 4, 8), (128, 128, 64, 4, 4), (64, 128, 64, 4, 4)]
    kinds = [descriptor_calls, pointer_calls] if aligned else [pointer_calls]
    return [(kind, shape) for kind in kinds for shape in shapes][:MOST_CONFIGURATIONS]


def prepare_tiles(task, sets, launches, lanes, refused):
    make, tried, call, check = works[task["op"]](task)
    arrays = [make() for _ in range(sets)]
    found = []
    for configuration in tried:
        try:
            calls = [lambda each=each: call(*each, *configuration) for each in arrays]
            if task["op"] == "histogram":
                arrays[0][-1].zero_()
            calls[0]()
            if not check(*arrays[0]):
                raise ValueError("a wrong result")
            lane = GraphLane("", calls, max(2, launches // 5))
            found.append((statistics.median(lane.sample() for _ in range(3)), configuration, calls))
        except Exception as error:
            refused.append(f"Triton {task['op']} {configuration}: {why(error)}")
    if found:
        _, configuration, calls = min(found, key=lambda each: each[0])
        lanes.append(GraphLane("Triton", calls, launches, f"; fastest of {len(tried)} configurations: {configuration}"))


def prepare(task, sets, launches, lanes, refused):
    torch.cuda.empty_cache()
    if task["op"] in works:
        return prepare_tiles(task, sets, launches, lanes, refused)
    if not is_product(task):
        refused.append(f"no kernel of Triton for {task['op']} of {task.get('dtype', 'f32')}")
        return
    arrays = [product_arrays(task) for _ in range(sets)]
    exact = arrays[0][0].double() @ arrays[0][1].double() if task["m"] * task["n"] <= 1 << 24 else None
    found, tried = [], configurations(task)
    for kind, shape in tried:
        try:
            calls = kind(arrays, task, *shape)
            calls[0]()
            if exact is not None:
                out = arrays[0][2].double()
                error = (torch.linalg.norm(out - exact) / torch.linalg.norm(exact)).item()
                if not error < 1e-2:
                    raise ValueError(f"relative error {error:.3g}")
            lane = GraphLane("", calls, max(2, launches // 5))
            time = statistics.median(lane.sample() for _ in range(3))
            found.append((time, kind.__name__.removesuffix("_calls"), shape, calls))
        except Exception as error:
            refused.append(f"Triton {kind.__name__.removesuffix('_calls')} {shape}: {why(error)}")
    if found:
        _, kind, shape, calls = min(found, key=lambda each: each[0])
        note = f"; fastest of {len(tried)} configurations: {kind} {shape}"
        lanes.append(GraphLane("Triton", calls, launches, note))


def is_product(task):
    return task["op"] == "matmul" and task["dtype"] in ("bf16", "f16")


def compile_one(task, kind, shape):
    """Launches a configuration once, so that its code is in Triton's cache on disk, where other processes find it."""
    try:
        dtype = dtypes[task["dtype"]]
        empty = lambda *sizes: torch.empty(*sizes, device="cuda", dtype=dtype)
        m, n, k = task["m"], task["n"], task["k"]
        b = empty(k, n) if task["b"] == "kn" else empty(n, k).t()
        kind([(empty(m, k), b, empty(m, n))], task, *shape)[0]()
        torch.cuda.synchronize()
    except Exception:
        pass
    finally:
        torch.cuda.empty_cache()


def compile_products(tasks):
    """Triton makes other code of sizes that are 1, or no multiples of 16, and the same of all others."""
    jobs = {}
    for task in filter(is_product, tasks):
        sizes = [task[name] for name in ("m", "n", "k")]
        for kind, shape in configurations(task):
            even = task["k"] % shape[2] == 0
            made = (task["dtype"], task["b"], kind.__name__, shape, even, *((size == 1, size % 16 == 0) for size in sizes))
            jobs.setdefault(made, (task, kind, shape))
    if not jobs:
        return
    workers = min(MOST_COMPILERS, len(jobs), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for job in [pool.submit(compile_one, *job) for job in jobs.values()]:
            job.result()


def hello():
    return {"peer": f"Triton {triton.__version__}", "gpu": torch.cuda.get_device_name()}


if __name__ == "__main__":
    serve(hello, prepare, compile_products)
