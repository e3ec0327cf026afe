"""A lane of JAX: how its programs are made and timed.

A program of JAX cannot be captured from outside; XLA makes CUDA graphs of programs itself. So a program has as many launches as a
sample asks for, and writes into the arrays that it wrote into before. A sample is timed as the GPU spends it: programs
are issued while the GPU is held by other work, and the clock runs from the end of that work to the end of the last program.

    GPU    held, held, …      ▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮
    host   issue all programs │ clock starts   │ clock ends

Gaps between launches count, as they do in the graphs of other peers; what Python takes does not.
"""
import functools
import math
import os
import time

# Memory is shared with other processes; and with Triton off, what XLA calls is cuBLAS.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_triton_gemm=false"

import jax
import jax.numpy as jnp

# Elements that work has which holds the GPU for half a millisecond, and how often at most it is held.
HELD, MOST_HOLDS = 2**28, 16
# Bytes that a program writes at most, how many programs a sample has at most, and seconds that it takes at least.
MOST_WRITTEN, MOST_RUNS, LEAST_SECONDS = 4 * 10**9, 16, 4e-3
dtypes = {"bf16": jnp.bfloat16, "f16": jnp.float16}


def program(work):
    """Work on each of some sets of arrays, into arrays that are given: those of the run before."""
    # Compiled for itself, so that what is made for one set is used for all of them.
    one = jax.jit(work)
    return jax.jit(lambda outs, *given: [one(*each) for each in given], donate_argnums=0, keep_unused=True)


def outputs_of(f, given):
    """Arrays for a program to write into."""
    empty = lambda shape: jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), shape)
    shapes = jax.eval_shape(f, [None] * len(given), *given)
    return [empty(shape) for shape in shapes]


@functools.cache
def holder():
    """Work that holds the GPU for about half a millisecond, and an array for it."""
    return jax.jit(lambda x: x + 1, donate_argnums=0), [jnp.zeros(HELD, jnp.float32)]


def hold(times):
    """Holds the GPU so many times; what is ready when it is free again."""
    f, kept = holder()
    for _ in range(times):
        kept[0] = f(kept[0])
    return kept[0]


class Lane:
    def __init__(self, name, f, sets, launches, note=""):
        first = jax.eval_shape(f, [None], sets[0])[0]
        written = sum(each.size * each.dtype.itemsize for each in jax.tree.leaves(first))
        count = min(launches, max(len(sets), MOST_WRITTEN // max(1, written)))
        self.name, self.f = name, f
        self.given = [sets[index % len(sets)] for index in range(count)]
        self.outs = outputs_of(f, self.given)
        self.runs, self.holds = 1, 1
        self.sample()
        seconds = self.sample() * count / 1e3
        self.runs = min(MOST_RUNS, math.ceil(max(launches / count, LEAST_SECONDS / max(seconds, 1e-9))))
        self.sample()
        held = "" if self.ahead else ", which the host did not issue in time"
        self.how = f"{self.runs} programs of {count} launches{held}, by the host's clock while the GPU is busy{note}"

    def sample(self):
        """Milliseconds of a launch."""
        while True:
            held = hold(self.holds)
            for _ in range(self.runs):
                self.outs = self.f(self.outs, *self.given)
            self.ahead = not held.is_ready()
            held.block_until_ready()
            start = time.perf_counter()
            jax.block_until_ready(self.outs)
            seconds = time.perf_counter() - start
            if self.ahead or self.holds >= MOST_HOLDS:
                return seconds * 1e3 / (self.runs * len(self.given))
            self.holds *= 2


def normals(index, *shapes):
    keys = jax.random.split(jax.random.key(index), len(shapes))
    return [jax.random.normal(key, shape, jnp.bfloat16) for key, shape in zip(keys, shapes)]
