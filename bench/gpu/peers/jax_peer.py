"""JAX as a peer: cuBLAS as XLA calls it, and the Hopper product that comes with Pallas:Mosaic GPU.

A program of JAX cannot be captured from outside; XLA makes CUDA graphs of programs itself. So a program has as many launches as a
sample asks for, and writes into the arrays that it wrote into before. A sample is timed as the GPU spends it: programs
are issued while the GPU is held by other work, and the clock runs from the end of that work to the end of the last program.

    GPU    held, held, …      ▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮
    host   issue all programs │ clock starts   │ clock ends

Gaps between launches count, as they do in the graphs of other peers; what Python takes does not.
"""
import dataclasses
import functools
import inspect
import math
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

# Memory is shared with other processes; and with Triton off, what XLA calls is cuBLAS.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_triton_gemm=false"

import jax
import jax.numpy as jnp
from serve import serve, why

MOST_CONFIGURATIONS = 8
# Sets of arrays that configurations are compared on, and how many of them are compiled at once.
COMPARED_SETS, COMPILERS = 2, 8
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


def cublas(task):
    contract = ((1,), (0,)) if task["b"] == "kn" else ((1,), (1,))
    return lambda a, b: jax.lax.dot_general(a, b, (contract, ((), ())), preferred_element_type=a.dtype)


def pallas_configurations(module):
    """At most eight: tiles, tiles of the grid, and clusters where this version has them."""
    known = {field.name for field in dataclasses.fields(module.TuningConfig)}
    dimension = getattr(module, "MatmulDimension", None)
    choices = []
    for cluster in (None, 0):
        for tile_m, tile_n, steps in ((128, 128, 4), (64, 256, 4)):
            for width in (1, 8):
                config = {"tile_m": tile_m, "tile_n": tile_n, "tile_k": 64, "max_concurrent_steps": steps,
                          "epi_tile_m": 64, "epi_tile_n": 64, "grid_tile_width": width}
                if dimension is not None:
                    config["grid_minor_dim"] = dimension.M if width > 1 else dimension.N
                    config["cluster_dimension"] = None if cluster is None else dimension.M
                    config["wg_dimension"] = dimension.M if tile_n <= 128 or tile_m == 64 else dimension.N
                choices.append({name: value for name, value in config.items() if name in known})
    distinct = [choice for index, choice in enumerate(choices) if choice not in choices[:index]]
    return [module.TuningConfig(**choice) for choice in distinct[:MOST_CONFIGURATIONS]]


@functools.cache
def pallas_products():
    """Configurations of the product in words, and the product in each."""
    from jax.experimental.pallas.ops.gpu import hopper_matmul_mgpu as module

    product = getattr(module, "matmul", None) or module.matmul_kernel
    # Some versions take a matrix to add, by name of c; none is added here.
    extra = {"c": None} if "c" in inspect.signature(product).parameters else {}
    texts = lambda config: ", ".join(f"{name} {value}" for name, value in dataclasses.asdict(config).items())
    made = lambda config: program(functools.partial(product, config=config, **extra))
    return [(texts(config), made(config)) for config in pallas_configurations(module)]


def is_pallas(task):
    return task["op"] == "matmul" and task["dtype"] in dtypes and task["b"] == "kn"


def compile_products(tasks):
    """Each configuration of each product runs once, in threads: what compiles them is no Python for the most part."""

    def run(f, pairs):
        try:
            jax.block_until_ready(f(outputs_of(f, pairs), *pairs))
        except Exception:
            pass

    with ThreadPoolExecutor(COMPILERS) as pool:
        for task in filter(is_pallas, tasks):
            dtype = dtypes[task["dtype"]]
            a, b = jnp.zeros((task["m"], task["k"]), dtype), jnp.zeros((task["k"], task["n"]), dtype)
            for _, f in pallas_products():
                pool.submit(run, f, [(a, b)] * COMPARED_SETS)


def pallas(task, pairs, sets, launches, lanes, refused):
    if not is_pallas(task):
        refused.append("Pallas:Mosaic GPU: its product takes b by rows alone")
        return
    exact = jnp.dot(*pairs[0], preferred_element_type=jnp.float32)
    found, tried = [], pallas_products()
    # As often as it takes, so that all of them run the same program.
    compared = [pairs[index % sets] for index in range(COMPARED_SETS)]
    for text, f in tried:
        try:
            out = f(outputs_of(f, compared), *compared)[0].astype(jnp.float32)
            error = float(jnp.linalg.norm(out - exact) / jnp.linalg.norm(exact))
            if not error < 1e-2:
                raise ValueError(f"relative error {error:.3g}")
            quick = Lane("", f, compared, COMPARED_SETS)
            found.append((statistics.median(quick.sample() for _ in range(3)), text, f))
        except Exception as error:
            refused.append(f"Pallas:Mosaic GPU ({text}): {why(error)}")
    if found:
        _, text, f = min(found, key=lambda each: each[0])
        note = f"; fastest of {len(tried)} configurations: {text}"
        lanes.append(Lane("Pallas:Mosaic GPU", f, pairs, launches, note))


def drawn(shape, dtype=jnp.float32):
    return lambda key: jax.random.normal(key, shape, dtype)


def matrix(task):
    return drawn((task["rows"], task["columns"]), {**dtypes, "f32": jnp.float32}[task["dtype"]])


def numbers_of(task):
    return lambda key: jax.random.randint(key, (task["tokens"],), 0, task["vocabulary"])


def normalized(x, center):
    x = x.astype(jnp.float32)
    x = x - jnp.mean(x, -1, keepdims=True) if center else x
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)


def library(task):
    """What makes the arrays of a set, each from a key, and the work on them; by XLA, and sorts by CUB."""
    op = task["op"]
    if op == "softmax":
        return [matrix(task)], lambda x: jax.nn.softmax(x, -1)
    if op in ("rms_norm", "layer_norm"):
        weight = drawn((task["columns"],), dtypes[task["dtype"]])
        return [matrix(task), weight], lambda x, w: (normalized(x, op == "layer_norm") * w).astype(x.dtype)
    if op == "sum":
        return [matrix(task)], lambda x: jnp.sum(x, task["axis"], dtype=jnp.float32)
    if op == "scan":
        return [drawn((task["count"],))], jnp.cumsum
    if op == "sort":
        return [lambda key: jax.random.bits(key, (task["count"],), jnp.uint32)], jnp.sort
    if op == "topk":
        return [matrix(task)], lambda x: jax.lax.top_k(x, task["k"])
    if op == "unique":
        numbers = lambda key: jax.random.randint(key, (task["count"],), 0, task["kinds"], jnp.int32)
        return [numbers], lambda x: jnp.unique(x, size=task["kinds"], return_counts=True)
    if op == "permute":
        return [matrix(task)], lambda x: jnp.transpose(x)
    if op == "embedding":
        table = drawn((task["vocabulary"], task["width"]), dtypes[task["dtype"]])
        return [table, numbers_of(task)], lambda x, ids: jnp.take(x, ids, axis=0, mode="clip")
    if op == "scatter_add":
        table, updates = drawn((task["vocabulary"], task["width"])), drawn((task["tokens"], task["width"]))
        return [table, numbers_of(task), updates], lambda out, ids, x: out.at[ids].add(x)
    if op == "random":
        return random_numbers(task)
    return None


def random_numbers(task):
    """By a key of the generator that is asked for; dropout of an array."""
    impl, words = {"threefry": ("threefry2x32", 2), "rbg": ("rbg", 4)}[task["generator"]]
    shape = (task["count"],)
    key_of = lambda key: jax.random.wrap_key_data(jax.random.bits(key, (words,), jnp.uint32), impl=impl)
    if task["kind"] == "dropout":
        kept = lambda key, x: jnp.where(jax.random.bernoulli(key, 0.75, shape), x / 0.75, 0)
        return [key_of, drawn(shape)], kept
    made = {"bits": lambda key: jax.random.bits(key, shape, jnp.uint32), "uniform": lambda key: jax.random.uniform(key, shape)}
    return [key_of], made.get(task["kind"], lambda key: jax.random.normal(key, shape))


def prepare_library(task, sets, launches, lanes):
    makers, work = library(task)
    keys = [jax.random.split(jax.random.key(index), len(makers)) for index in range(sets)]
    arrays = [tuple(make(key) for make, key in zip(makers, each)) for each in keys]
    lanes.append(Lane("JAX", program(work), arrays, launches))


def normals(index, *shapes):
    keys = jax.random.split(jax.random.key(index), len(shapes))
    return [jax.random.normal(key, shape, jnp.bfloat16) for key, shape in zip(keys, shapes)]


def group_sizes(task):
    """As the benchmark's own: equal, or each half of what is left."""
    m, groups = task["m"], task["groups"]
    if not task["halving"]:
        return [m // groups] * groups
    sizes = []
    for _ in range(groups - 1):
        sizes.append((m - sum(sizes)) // 2)
    return sizes + [m - sum(sizes)]


def ragged_dot(task, sets, launches, lanes):
    m, n, k, groups = task["m"], task["n"], task["k"], task["groups"]
    sizes = jnp.array(group_sizes(task), jnp.int32)
    pairs = [tuple(normals(index, (m, k), (groups, k, n))) for index in range(sets)]
    call = lambda a, b: jax.lax.ragged_dot(a, b, sizes, preferred_element_type=a.dtype)
    lanes.append(Lane("ragged_dot (JAX)", program(call), pairs, launches))


def paged_attention(task, sets, launches, lanes):
    """The kernel that comes with Pallas, whose pages have an axis of heads before all others."""
    from jax.experimental.pallas.ops.gpu.paged_attention import paged_attention as kernel

    sequences, length, size = task["sequences"], task["length"], task["size"]
    most = -(-length // size)
    pages = sequences * most
    lengths = [-(-length * (i + 1) // sequences) if task["ragged"] else length for i in range(sequences)]
    table = jax.random.permutation(jax.random.key(0), pages).reshape(sequences, most).astype(jnp.int32)
    counts = jnp.array(lengths, jnp.int32)
    cache = (task["shared"], pages, size, task["head"])
    pairs = []
    for index in range(sets):
        q, k, v = normals(index, (sequences, task["heads"], task["head"]), cache, cache)
        pairs.append((q, (k, v)))
    call = lambda q, kept: kernel(q, kept[0], kept[1], table, counts)
    lanes.append(Lane("Pallas", program(call), pairs, launches))


others = {"ragged_dot": ragged_dot, "paged_attention": paged_attention}


def prepare(task, sets, launches, lanes, refused):
    if task["op"] in others:
        try:
            others[task["op"]](task, sets, launches, lanes)
        except Exception as error:
            refused.append(f"JAX: {why(error)}")
        return
    if library(task) is not None:
        prepare_library(task, sets, launches, lanes)
        return
    if task["op"] != "matmul" or task["dtype"] not in dtypes:
        refused.append(f"JAX has no {task['op']} of {task.get('dtype', 'f32')} here")
        return
    dtype = dtypes[task["dtype"]]
    pairs = []
    for index in range(sets):
        left, right = jax.random.split(jax.random.key(index))
        shape = (task["k"], task["n"]) if task["b"] == "kn" else (task["n"], task["k"])
        pairs.append((jax.random.normal(left, (task["m"], task["k"]), dtype), jax.random.normal(right, shape, dtype)))
    lanes.append(Lane("cuBLAS (JAX)", program(cublas(task)), pairs, launches))
    try:
        pallas(task, pairs, sets, launches, lanes, refused)
    except Exception as error:
        refused.append(f"Pallas:Mosaic GPU: {why(error)}")


def hello():
    return {"peer": f"JAX {jax.__version__}", "gpu": jax.devices()[0].device_kind}


if __name__ == "__main__":
    serve(hello, prepare, compile_products)
