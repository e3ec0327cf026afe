"""Kernels that come with Pallas:Mosaic GPU: the Hopper product, the product of groups, and attention. Each of them takes part in
the fastest of at most eight configurations that give the right result."""
import dataclasses
import functools
import inspect
import json
import statistics
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
from jax_lane import Lane, dtypes, outputs_of, program
from serve import group_sizes, why

MOST_CONFIGURATIONS = 8
# Sets of arrays that configurations are compared on, and how many of them are compiled at once.
COMPARED_SETS, COMPILERS = 2, 8
NAME = "Pallas:Mosaic GPU"


def in_words(config):
    return ", ".join(f"{name} {value}" for name, value in config.items())


def product_configurations(module):
    """Tiles, tiles of the grid, and clusters where this version has them."""
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
    return [choice for index, choice in enumerate(choices) if choice not in choices[:index]]


def products(task):
    from jax.experimental.pallas.ops.gpu import hopper_matmul_mgpu as module

    product = getattr(module, "matmul", None) or module.matmul_kernel
    # Some versions take a matrix to add, by name of c; none is added here.
    extra = {"c": None} if "c" in inspect.signature(product).parameters else {}
    made = lambda config: functools.partial(product, config=module.TuningConfig(**config), **extra)
    return [(in_words(config), made(config)) for config in product_configurations(module)]


def grouped_products(task):
    from jax.experimental.pallas.ops.gpu.ragged_dot_mgpu import ragged_dot

    sizes = jnp.array(group_sizes(task), jnp.int32)
    tiles = ((128, 128, 4, 1), (128, 128, 4, 4), (128, 128, 5, 8), (128, 192, 4, 4), (64, 128, 5, 4), (64, 128, 6, 1), (64, 192, 5, 4))
    names = ("block_m", "block_n", "max_concurrent_steps", "grid_block_n")
    configs = [dict(zip(names, tile), block_k=64) for tile in tiles if task["n"] % (tile[1] * tile[3]) == 0]
    made = lambda config: lambda a, b: ragged_dot(a, b, group_sizes=sizes, **config)
    return [(in_words(config), made(config)) for config in configs]


def attentions(task):
    """Its scores are not scaled, which takes no time to speak of."""
    from jax.experimental.pallas.ops.gpu import attention_mgpu as module

    causal = {"causal": True} if task["causal"] else {}
    tiles = ((64, 64, 4), (64, 128, 2), (64, 128, 3), (64, 256, 2))
    configs = [{"block_q": q, "block_kv": kv, "max_concurrent_steps": steps, **causal} for q, kv, steps in tiles]
    made = lambda config: lambda q, k, v: module.attention(q, k, v, module.TuningConfig(**config))
    return [(in_words(config), made(config)) for config in configs]


def shapes_of(task):
    """Of what one launch reads."""
    if task["op"] == "attention":
        rows = (task["batch"], task["length"])
        return [(*rows, heads, task["head"]) for heads in (task["heads"], task["shared"], task["shared"])]
    m, n, k = task["m"], task["n"], task["k"]
    return [(m, k), (k, n) if task["op"] == "matmul" else (task["groups"], k, n)]


def dtype_of(task):
    """Its attention keeps what it reads as f16, and refuses bf16."""
    return jnp.float16 if task["op"] == "attention" else dtypes[task.get("dtype", "bf16")]


kernels = {"matmul": products, "ragged_dot": grouped_products, "attention": attentions}


def applies(task):
    """Products take b by rows alone, and attention has no windows."""
    if task["op"] == "attention":
        return task["back"] == 0
    return task["op"] == "ragged_dot" or (task["op"] == "matmul" and task["dtype"] in dtypes and task["b"] == "kn")


@functools.cache
def made_programs(key):
    task = json.loads(key)
    return [(text, program(work)) for text, work in kernels[task["op"]](task)[:MOST_CONFIGURATIONS]]


def programs(task):
    """Configurations in words, and the program of each, made once for a task."""
    return made_programs(json.dumps(task, sort_keys=True))


def compile_all(tasks):
    """Each configuration of each task runs once, in threads: what compiles them is no Python for the most part."""

    def run(f, sets):
        try:
            jax.block_until_ready(f(outputs_of(f, sets), *sets))
        except Exception:
            pass

    with ThreadPoolExecutor(COMPILERS) as pool:
        for task in filter(applies, tasks):
            arrays = tuple(jnp.zeros(shape, dtype_of(task)) for shape in shapes_of(task))
            for _, f in programs(task):
                pool.submit(run, f, [arrays] * COMPARED_SETS)


def fastest(task, arrays, launches, lanes, refused, difference):
    """A lane of the fastest configuration, with sets of arrays; `difference` is the relative error of a result on the first of them."""
    if not applies(task):
        refused.append(f"{NAME}: it has no kernel for this")
        return
    found, tried = [], programs(task)
    # As often as it takes, so that all of them run the same program.
    compared = [arrays[index % len(arrays)] for index in range(COMPARED_SETS)]
    for text, f in tried:
        try:
            error = difference(f(outputs_of(f, compared), *compared)[0])
            if not error < 1e-2:
                raise ValueError(f"relative error {error:.3g}")
            quick = Lane("", f, compared, COMPARED_SETS)
            found.append((statistics.median(quick.sample() for _ in range(3)), text, f))
        except Exception as error:
            refused.append(f"{NAME} ({text}): {why(error)}")
    if found:
        _, text, f = min(found, key=lambda each: each[0])
        lanes.append(Lane(NAME, f, arrays, launches, f" of {dtype_of(task).dtype}; fastest of {len(tried)} configurations: {text}"))
