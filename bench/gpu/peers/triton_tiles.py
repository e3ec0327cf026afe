"""Work on rows and elements as Triton's users write it: gathers, softmax, top-k, histogram, linear recurrence."""
import torch
import triton
import triton.language as tl
from graph import normal


@triton.jit
def gather_rows(table, ids, out, columns, R: tl.constexpr, C: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    at = tl.arange(0, C)
    picked = tl.load(ids + rows)
    tile = tl.load(table + picked[:, None].to(tl.int64) * columns + at[None, :])
    tl.store(out + rows[:, None].to(tl.int64) * columns + at[None, :], tile)


@triton.jit
def gather_elements(table, ids, out, B: tl.constexpr):
    here = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + here, tl.load(table + tl.load(ids + here)))


@triton.jit
def softmax_rows(x, out, C: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * C + tl.arange(0, C)
    row = tl.load(x + at).to(tl.float32)
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(out + at, (powers / tl.sum(powers, 0)).to(out.dtype.element_ty))


@triton.jit
def top_k(x, out, C: tl.constexpr, K: tl.constexpr, R: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    tile = tl.load(x + rows[:, None] * C + tl.arange(0, C)[None, :])
    tl.store(out + rows[:, None] * K + tl.arange(0, K)[None, :], tl.topk(tile, K))


@triton.jit
def count(x, totals, B: tl.constexpr, BINS: tl.constexpr):
    values = tl.load(x + tl.program_id(0) * B + tl.arange(0, B))
    tl.atomic_add(totals + tl.arange(0, BINS), tl.histogram(values, BINS), sem="relaxed")


@triton.jit
def chained(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def recurrence(a, b, y, C: tl.constexpr, R: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    at = rows[:, None] * C + tl.arange(0, C)[None, :]
    _, sums = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 1, chained)
    tl.store(y + at, sums)


def indices(task, count, below):
    return torch.randint(0, below, (count,), device="cuda", dtype=torch.int32)


def rows_of(task):
    rows, columns = task["rows"], task["columns"]
    arrays = lambda: (normal(rows, columns), indices(task, rows, rows), torch.empty(rows, columns, device="cuda"))
    tried = [(max(1, block // columns), warps) for block, warps in ((1024, 4), (4096, 4), (4096, 8), (8192, 8))]
    call = lambda table, ids, out, R, warps: gather_rows[(rows // R,)](table, ids, out, columns, R=R, C=columns, num_warps=warps)
    check = lambda table, ids, out: torch.equal(out, table[ids.long()])
    return arrays, tried, call, check


def elements_of(task):
    table, count_ = task["table"], task["count"]
    arrays = lambda: (normal(table), indices(task, count_, table), torch.empty(count_, device="cuda"))
    tried = [(512, 4), (1024, 4), (2048, 8), (4096, 8)]
    call = lambda values, ids, out, B, warps: gather_elements[(count_ // B,)](values, ids, out, B=B, num_warps=warps)
    check = lambda values, ids, out: torch.equal(out, values[ids.long()])
    return arrays, tried, call, check


def softmax_of(task):
    rows, columns = task["rows"], task["columns"]
    arrays = lambda: (normal(rows, columns, dtype=torch.bfloat16), torch.empty(rows, columns, device="cuda", dtype=torch.bfloat16))
    call = lambda x, out, warps: softmax_rows[(rows,)](x, out, C=columns, num_warps=warps)
    check = lambda x, out: torch.allclose(out.float(), torch.softmax(x.float(), 1), rtol=1e-2, atol=1e-6)
    # More than 128 elements a lane are spilled, and take minutes to compile.
    tried = [(warps,) for warps in (4, 8, 16, 32) if columns <= 128 * 32 * warps]
    return arrays, tried, call, check


def top_k_of(task):
    rows, columns, k = task["rows"], task["columns"], task["k"]
    arrays = lambda: (normal(rows, columns), torch.empty(rows, k, device="cuda"))
    call = lambda x, out, R, warps: top_k[(rows // R,)](x, out, C=columns, K=k, R=R, num_warps=warps)
    check = lambda x, out: torch.equal(out, torch.topk(x, k, 1).values)
    return arrays, [(1, 1), (1, 4), (4, 4)], call, check


def histogram_of(task):
    count_, bins = task["count"], task["bins"]
    arrays = lambda: (indices(task, count_, bins), torch.zeros(bins, device="cuda", dtype=torch.int32))
    tried = [(2048, 4), (8192, 8), (16384, 8)]
    call = lambda x, totals, B, warps: count[(count_ // B,)](x, totals, B=B, BINS=bins, num_warps=warps)
    check = lambda x, totals: torch.equal(totals.long(), torch.bincount(x, minlength=bins))
    return arrays, tried, call, check


def recurrence_of(task):
    rows, columns = task["rows"], task["columns"]
    arrays = lambda: (normal(rows, columns), normal(rows, columns), torch.empty(rows, columns, device="cuda"))
    call = lambda a, b, y, R, warps: recurrence[(rows // R,)](a, b, y, C=columns, R=R, num_warps=warps)

    def check(a, b, y):
        last = torch.zeros(rows, device="cuda", dtype=torch.float64)
        for at in range(64):
            last = last * a[:, at] + b[:, at]
        return torch.allclose(y[:, 63].double(), last, rtol=1e-3, atol=1e-3)

    return arrays, [(1, 1), (1, 2), (1, 4), (1, 8)], call, check


works = {
    "gather_rows": rows_of,
    "gather_elements": elements_of,
    "softmax_rows": softmax_of,
    "top_k": top_k_of,
    "histogram": histogram_of,
    "recurrence": recurrence_of,
}
