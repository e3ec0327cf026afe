"""JAX as a peer: cuBLAS and cuDNN as XLA calls them, XLA's own kernels, and those that come with Pallas (jax_pallas.py).
How programs are timed is told in jax_lane.py."""
import jax
import jax.numpy as jnp
import jax_pallas
from jax_attention import attention, attention_backward
from jax_lane import Lane, dtypes, normals, program
from serve import group_sizes, serve, why


def cublas(task):
    contract = ((1,), (0,)) if task["b"] == "kn" else ((1,), (1,))
    return lambda a, b: jax.lax.dot_general(a, b, (contract, ((), ())), preferred_element_type=a.dtype)


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


def turned(x, cos, sin):
    first, second = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate((first * cos - second * sin, second * cos + first * sin), -1).astype(x.dtype)


def quantized(x, out):
    whole = out == "i8"
    scale = jnp.max(jnp.abs(x), -1, keepdims=True).astype(jnp.float32) / (127 if whole else 448)
    divided = x.astype(jnp.float32) / scale
    return jnp.round(divided).astype(jnp.int8) if whole else divided.astype(jnp.float8_e4m3fn), scale


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
    if op == "cast":
        return [matrix(task)], lambda x: x.astype({**dtypes, "f32": jnp.float32}[task["out"]])
    if op == "rotary":
        angles = drawn((task["rows"], 1, task["head"] // 2))
        return [drawn((task["rows"], task["heads"], task["head"]), dtypes[task["dtype"]]), angles, angles], turned
    if op == "swiglu":
        return [matrix(task)], lambda x: (lambda gate, value: jax.nn.silu(gate) * value)(*jnp.split(x, 2, -1))
    if op == "quantize":
        return [matrix(task)], lambda x: quantized(x, task["out"])
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


def relative(out, exact):
    return float(jnp.linalg.norm(out.astype(jnp.float32) - exact) / jnp.linalg.norm(exact))


def dot_by_groups(sizes, a, b):
    """Group by group, in f32."""
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    rows = [a[end - size : end] for end, size in zip(ends, sizes)]
    return jnp.concatenate([jnp.dot(each, b[index], preferred_element_type=jnp.float32) for index, each in enumerate(rows)])


def ragged_dot(task, sets, launches, lanes, refused):
    sizes = group_sizes(task)
    pairs = [tuple(normals(index, *jax_pallas.shapes_of(task))) for index in range(sets)]
    exact = dot_by_groups(sizes, *pairs[0])
    jax_pallas.fastest(task, pairs, launches, lanes, refused, lambda out: relative(out, exact))
    grouped = lambda a, b: jax.lax.ragged_dot(a, b, jnp.array(sizes, jnp.int32), preferred_element_type=a.dtype)
    # Last, since its memory is more than there is for some.
    lanes.append(Lane("ragged_dot (JAX)", program(grouped), pairs, launches))


def paged_attention(task, sets, launches, lanes, refused):
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


others = {
    "ragged_dot": ragged_dot,
    "paged_attention": paged_attention,
    "attention": attention,
    "attention_backward": attention_backward,
}


def prepare(task, sets, launches, lanes, refused):
    if task["op"] in others:
        try:
            others[task["op"]](task, sets, launches, lanes, refused)
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
        exact = jnp.dot(*pairs[0], preferred_element_type=jnp.float32) if task["b"] == "kn" else None
        jax_pallas.fastest(task, pairs, launches, lanes, refused, lambda out: relative(out, exact))
    except Exception as error:
        refused.append(f"Pallas:Mosaic GPU: {why(error)}")


def hello():
    return {"peer": f"JAX {jax.__version__}", "gpu": jax.devices()[0].device_kind}


if __name__ == "__main__":
    serve(hello, prepare, jax_pallas.compile_all)
