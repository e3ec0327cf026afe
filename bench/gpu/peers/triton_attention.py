"""Attention as Triton's users write it: tiles of q against tiles of k and v, with the maximum and sum of every row carried along.
Arrays are (batch, length, heads, head); descriptors see them as (batch · length, heads · head)."""
import math

import torch
import triton
import triton.language as tl
from graph import normal


@triton.jit
def seen_tiles(queries, k, v, maxima, sums, out, row, start, end, base, column, scale,
               BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr):
    """Takes the columns from start to end into account; scores are powers of two."""
    rows = row + tl.arange(0, BM)
    for at in tl.range(start, end, BN):
        scores = tl.dot(queries, k.load([base + at, column]).T) * scale
        if MASKED:
            scores = tl.where(rows[:, None] >= at + tl.arange(0, BN)[None, :], scores, float("-inf"))
        largest = tl.maximum(maxima, tl.max(scores, 1))
        weights = tl.math.exp2(scores - largest[:, None])
        factor = tl.math.exp2(maxima - largest)
        sums = sums * factor + tl.sum(weights, 1)
        out = tl.dot(weights.to(v.dtype), v.load([base + at, column]), out * factor[:, None])
        maxima = largest
    return maxima, sums, out


@triton.jit
def attention_rows(q, k, v, result, length, heads, shared, scale,
                   D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    row = tl.program_id(0) * BM
    head = tl.program_id(1) % heads
    base = tl.program_id(1) // heads * length
    column = head // (heads // shared) * D
    queries = q.load([base + row, head * D])
    maxima = tl.full((BM,), float("-inf"), dtype=tl.float32)
    sums = tl.zeros((BM,), dtype=tl.float32)
    out = tl.zeros((BM, D), dtype=tl.float32)
    whole = row // BN * BN if CAUSAL else length
    maxima, sums, out = seen_tiles(queries, k, v, maxima, sums, out, row, 0, whole, base, column, scale, BM, BN, False)
    if CAUSAL:
        maxima, sums, out = seen_tiles(queries, k, v, maxima, sums, out, row, whole, row + BM, base, column, scale, BM, BN, True)
    result.store([base + row, head * D], (out / sums[:, None]).to(result.dtype))


def arrays_of(task):
    batch, length, head = task["batch"], task["length"], task["head"]
    made = lambda heads: normal(batch * length, heads * head, dtype=torch.bfloat16)
    heads, shared = task["heads"], task["shared"]
    return made(heads), made(shared), made(shared), torch.empty(batch * length, heads * head, device="cuda", dtype=torch.bfloat16)


def attention_of(task):
    """Of lengths that tiles divide, without windows."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    batch, length, heads, shared, head = (task[name] for name in ("batch", "length", "heads", "shared", "head"))
    if task["back"] > 0:
        raise ValueError("windows are compared with our own whole attention")
    scale = math.log2(math.e) / math.sqrt(head)

    def call(q, k, v, out, BM, BN, stages, warps):
        tile = lambda array, rows: TensorDescriptor.from_tensor(array, [rows, head])
        attention_rows[(length // BM, batch * heads)](
            tile(q, BM), tile(k, BN), tile(v, BN), tile(out, BM), length, heads, shared, scale,
            D=head, BM=BM, BN=BN, CAUSAL=bool(task["causal"]), num_stages=stages, num_warps=warps)

    def check(q, k, v, out):
        """The first head in f64, so many rows at a time that the scores fit."""
        first = [each[:length, :head].double() for each in (q, k, v)]
        for start in range(0, length, 2048):
            scores = first[0][start : start + 2048] @ first[1].T / math.sqrt(head)
            if task["causal"]:
                at = torch.arange(start, start + scores.shape[0], device="cuda")
                scores = scores.masked_fill(at[:, None] < torch.arange(length, device="cuda")[None, :], -math.inf)
            exact = torch.softmax(scores, 1) @ first[2]
            found = out[start : start + 2048, :head].double()
            if not torch.linalg.norm(found - exact) / torch.linalg.norm(exact) < 1e-2:
                return False
        return True

    tried = [(128, 128, 2, 8), (128, 64, 3, 8), (128, 64, 4, 4), (64, 128, 3, 4)]
    if head == 64:
        tried = [(128, 128, 3, 8), *tried]
    return lambda: arrays_of(task), [each for each in tried if length % each[0] == 0 and length % each[1] == 0], call, check
