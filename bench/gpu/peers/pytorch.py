"""PyTorch as a peer: cuBLAS for products, its own kernels and torch.compile's for the rest.

Every lane is a CUDA graph of launches over sets of arrays in turn, timed by CUDA events.
"""
import sys
import torch
from graph import CallLane, GraphLane, dtypes, normal, product_arrays
from serve import group_sizes, serve, why


def matmul(task, sets):
    arrays = [product_arrays(task) for _ in range(sets)]
    yield "cuBLAS (PyTorch)", [lambda a=a, b=b, out=out: torch.matmul(a, b, out=out) for a, b, out in arrays]


def product(task, sets):
    """cuBLAS in each format; FP8 with fast accumulation, whole numbers into int32."""
    form, batch, m, n, k = task["format"], task["batch"], task["m"], task["n"], task["k"]
    torch.backends.cuda.matmul.allow_tf32 = form == "tf32"
    one = torch.ones((), device="cuda")
    layers = (batch,) if batch > 1 else ()

    def numbers(*shape):
        if form == "i8":
            return torch.randint(-100, 100, shape, device="cuda", dtype=torch.int8)
        if form == "f8":
            return normal(*shape).to(torch.float8_e4m3fn)
        return normal(*layers, *shape, dtype=dtypes["f32" if form == "tf32" else form])

    def call():
        a = numbers(m, k)
        b = numbers(n, k).mT if task["b"] == "nk" else numbers(k, n)
        made = {"i8": torch.int32, "f8": torch.bfloat16}.get(form, a.dtype)
        out = torch.empty(*layers, m, n, device="cuda", dtype=made)
        if form == "f8":
            return lambda: torch._scaled_mm(a, b, one, one, out_dtype=made, use_fast_accum=True, out=out)
        return lambda: (torch._int_mm if form == "i8" else torch.matmul)(a, b, out=out)

    yield "cuBLAS (PyTorch)", [call() for _ in range(sets)]


def copy(task, sets):
    dtype = dtypes[task.get("dtype", "f32")]
    arrays = [(normal(task["count"], dtype=dtype), torch.empty(task["count"], device="cuda", dtype=dtype)) for _ in range(sets)]
    compiled = torch.compile(lambda x: x.clone())
    yield "PyTorch", [lambda x=x, out=out: out.copy_(x) for x, out in arrays]
    yield "torch.compile", [lambda x=x: compiled(x) for x, _ in arrays]


def cast(task, sets):
    arrays, made = rows(task, sets), dtypes[task["out"]]
    compiled = torch.compile(lambda x: x.to(made))
    yield "PyTorch", [lambda x=x: x.to(made) for x in arrays]
    yield "torch.compile", [lambda x=x: compiled(x) for x in arrays]


def rotary(task, sets):
    head = task["head"]
    made = lambda: normal(task["rows"], task["heads"], head, dtype=dtypes[task["dtype"]])
    angles = lambda: normal(task["rows"], 1, head // 2)
    arrays = [(made(), angles(), angles()) for _ in range(sets)]

    def work(x, cos, sin):
        first, second = x.float().chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype)

    compiled = torch.compile(work)
    yield "torch.compile", [lambda a=a: compiled(*a) for a in arrays]


def swiglu(task, sets):
    arrays = rows(task, sets)

    def work(x):
        gate, value = x.chunk(2, -1)
        return torch.nn.functional.silu(gate) * value

    compiled = torch.compile(work)
    yield "torch.compile", [lambda x=x: compiled(x) for x in arrays]


def quantize(task, sets):
    """Rows in 8 bits and what they were divided by, as ours."""
    arrays = rows(task, sets)
    whole = task["out"] == "i8"

    def work(x):
        scale = x.abs().amax(-1, keepdim=True).float() / (127 if whole else 448)
        divided = x.float() / scale
        return torch.round(divided).to(torch.int8) if whole else divided.to(torch.float8_e4m3fn), scale

    compiled = torch.compile(work)
    yield "torch.compile", [lambda x=x: compiled(x) for x in arrays]


def axpy(task, sets):
    compiled = torch.compile(lambda x, y: x * 2 + y)
    arrays = [(normal(task["count"]), normal(task["count"])) for _ in range(sets)]
    yield "torch.compile", [lambda x=x, y=y: compiled(x, y) for x, y in arrays]


def rows(task, sets):
    dtype = dtypes[task["dtype"]]
    return [normal(task["rows"], task["columns"], dtype=dtype) for _ in range(sets)]


def softmax(task, sets):
    arrays = rows(task, sets)
    compiled = torch.compile(lambda x: torch.softmax(x, -1))
    yield "PyTorch", [lambda x=x: torch.softmax(x, -1) for x in arrays]
    yield "torch.compile", [lambda x=x: compiled(x) for x in arrays]


def rms_norm(task, sets):
    arrays = rows(task, sets)
    weight = normal(task["columns"], dtype=arrays[0].dtype)
    norm = torch.nn.functional.rms_norm
    compiled = torch.compile(lambda x: norm(x, (task["columns"],), weight, 1e-6))
    yield "torch.compile", [lambda x=x: compiled(x) for x in arrays]


def layer_norm(task, sets):
    arrays = rows(task, sets)
    weight = normal(task["columns"], dtype=arrays[0].dtype)
    norm = torch.nn.functional.layer_norm
    compiled = torch.compile(lambda x: norm(x, (task["columns"],), weight))
    yield "PyTorch", [lambda x=x: norm(x, (task["columns"],), weight) for x in arrays]
    yield "torch.compile", [lambda x=x: compiled(x) for x in arrays]


def norm_backward(task, sets):
    """The gradients alone, from statistics that are any numbers, as ours."""
    has_mean = task["op"] == "layer_norm_backward"
    arrays = [(x, d) for x, d in zip(rows(task, sets), rows(task, sets))]
    weight = normal(task["columns"], dtype=arrays[0][0].dtype).float()
    mean, inverse = normal(task["rows"], 1), normal(task["rows"], 1)

    def work(x, d):
        slope = d.float() * weight
        h = (x.float() - mean) * inverse if has_mean else x.float() * inverse
        dx = slope - h * (slope * h).mean(-1, keepdim=True)
        if has_mean:
            dx = dx - slope.mean(-1, keepdim=True)
        sums = ((d.float() * h).sum(0), d.float().sum(0)) if has_mean else ((d.float() * h).sum(0),)
        return ((dx * inverse).to(x.dtype), *sums)

    compiled = torch.compile(work)
    yield "torch.compile", [lambda x=x, d=d: compiled(x, d) for x, d in arrays]


def cross_entropy(task, sets):
    arrays = [(x, torch.randint(task["columns"], (task["rows"], 1), device="cuda")) for x in rows(task, sets)]
    places = torch.arange(task["columns"], device="cuda")[None]

    def work(x, labels):
        logits = x.float()
        total = torch.logsumexp(logits, -1, keepdim=True)
        gradient = torch.exp(logits - total) - (places == labels)
        return total - logits.gather(1, labels), gradient.to(x.dtype)

    compiled = torch.compile(work)
    yield "torch.compile", [lambda x=x, labels=labels: compiled(x, labels) for x, labels in arrays]


def sum_along(task, sets):
    arrays = rows(task, sets)
    compiled = torch.compile(lambda x: torch.sum(x, task["axis"], dtype=torch.float32))
    yield "PyTorch", [lambda x=x: torch.sum(x, task["axis"], dtype=torch.float32) for x in arrays]
    yield "torch.compile", [lambda x=x: compiled(x) for x in arrays]


def scan(task, sets):
    arrays = [normal(task["count"]) for _ in range(sets)]
    yield "PyTorch", [lambda x=x: torch.cumsum(x, 0) for x in arrays]


def sort(task, sets):
    """CUB's radix sort of pairs: PyTorch always finds the places, too, and has no keys without a sign."""
    limits = torch.iinfo(torch.int32)
    shape = (task["count"],)
    arrays = [torch.randint(limits.min, limits.max, shape, dtype=torch.int32, device="cuda") for _ in range(sets)]
    yield "CUB, with places (PyTorch)", [lambda x=x: torch.sort(x) for x in arrays]


def topk(task, sets):
    arrays = rows(task, sets)
    yield "PyTorch", [lambda x=x: torch.topk(x, task["k"]) for x in arrays]


def unique(task, sets):
    """Beside ours for what it is: it waits for the host to learn how many there are, which a graph cannot."""
    shape = (task["count"],)
    arrays = [torch.randint(task["kinds"], shape, dtype=torch.int32, device="cuda") for _ in range(sets)]
    yield "PyTorch", [lambda x=x: torch.unique(x, return_counts=True) for x in arrays]


def pool(task, sets):
    shape = (task["images"], task["channels"], task["size"], task["size"])
    last = torch.channels_last
    arrays = [normal(*shape, dtype=dtypes[task["dtype"]]).contiguous(memory_format=last) for _ in range(sets)]
    functional = torch.nn.functional
    work = {
        "max": lambda x: functional.max_pool2d(x, 3, 2, 1),
        "average": lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    }[task["kind"]]
    compiled = torch.compile(work)
    yield "PyTorch", [lambda x=x: work(x) for x in arrays]
    yield "torch.compile", [lambda x=x: compiled(x) for x in arrays]


def convolution(task, sets):
    """cuDNN with channels last; its fastest way is found by the first calls, which are not timed."""
    torch.backends.cudnn.benchmark = True
    images, size, channels, window = (task[name] for name in ("images", "size", "channels", "window"))
    stride, padding, groups = task["stride"], task["padding"], task["groups"]
    side = (size + 2 * padding - window) // stride + 1

    def made(*shape):
        return normal(*shape, dtype=dtypes[task["dtype"]]).contiguous(memory_format=torch.channels_last)

    def call():
        x, w = made(images, channels, size, size), made(channels, channels // groups, window, window)
        if task["made"] == "forward":
            return lambda: torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)
        gradient = made(images, channels, side, side)
        wanted = [task["made"] == "dx", task["made"] == "dw", False]
        both = [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups, wanted
        return lambda: torch.ops.aten.convolution_backward(gradient, x, w, None, *both)

    yield "cuDNN (PyTorch)", [call() for _ in range(sets)]


def permute(task, sets):
    arrays = rows(task, sets)
    compiled = torch.compile(lambda x: x.t().contiguous())
    yield "PyTorch", [lambda x=x: x.t().contiguous() for x in arrays]
    yield "torch.compile", [lambda x=x: compiled(x) for x in arrays]


def numbers_of(task):
    return torch.randint(task["vocabulary"], (task["tokens"],), device="cuda")


def embedding(task, sets):
    dtype = dtypes[task["dtype"]]
    arrays = [(normal(task["vocabulary"], task["width"], dtype=dtype), numbers_of(task)) for _ in range(sets)]
    compiled = torch.compile(lambda x, ids: torch.index_select(x, 0, ids))
    yield "PyTorch", [lambda x=x, ids=ids: torch.index_select(x, 0, ids) for x, ids in arrays]
    yield "torch.compile", [lambda x=x, ids=ids: compiled(x, ids) for x, ids in arrays]


def scatter_add(task, sets):
    dtype = dtypes[task["dtype"]]

    def made():
        out = normal(task["vocabulary"], task["width"], dtype=dtype)
        return out, numbers_of(task), normal(task["tokens"], task["width"], dtype=dtype)

    arrays = [made() for _ in range(sets)]
    yield "PyTorch", [lambda out=out, ids=ids, x=x: out.index_add_(0, ids, x) for out, ids, x in arrays]


def random_numbers(task, sets):
    """By its own generator, whatever ours is."""
    kind = task["kind"]
    dtype = torch.int32 if kind == "bits" else torch.float32
    arrays = [torch.empty(task["count"], device="cuda", dtype=dtype) for _ in range(sets)]
    made = {
        "bits": lambda out: out.random_(),
        "uniform": lambda out: out.uniform_(),
        "normal": lambda out: out.normal_(),
        "dropout": lambda out: torch.nn.functional.dropout(out, 0.25),
    }[kind]
    yield "PyTorch", [lambda out=out: made(out) for out in arrays]


def attention(task, sets):
    """By each of PyTorch's libraries; windows by none, which are compared with our own whole attention."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def made(heads):
        shape = (task["batch"], task["length"], heads, task["head"])
        return normal(*shape, dtype=torch.bfloat16).transpose(1, 2)

    def call(backend, arrays):
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                *arrays, is_causal=bool(task["causal"]), enable_gqa=task["heads"] != task["shared"]
            )

    arrays = [(made(task["heads"]), made(task["shared"]), made(task["shared"])) for _ in range(sets)]
    if task["back"] == 0:
        yield "cuDNN (PyTorch)", [lambda a=a: call(SDPBackend.CUDNN_ATTENTION, a) for a in arrays]
        yield "FlashAttention (PyTorch)", [lambda a=a: call(SDPBackend.FLASH_ATTENTION, a) for a in arrays]


def attention_backward(task, sets):
    """The gradients alone, of a forward pass that each library has made itself."""
    causal = bool(task["causal"])

    def made(heads):
        shape = (task["batch"], task["length"], heads, task["head"])
        return normal(*shape, dtype=torch.bfloat16).transpose(1, 2)

    def by_cudnn(q, k, v, upstream):
        out, sums, starts_q, starts_k, most_q, most_k, seed, offset, _ = (
            torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)
        )
        backward = torch.ops.aten._scaled_dot_product_cudnn_attention_backward
        given = (upstream, q, k, v, out, sums, seed, offset, None, starts_q, starts_k)
        return lambda: backward(*given, most_q, most_k, 0.0, causal)

    def by_flash(q, k, v, upstream):
        out, sums, starts_q, starts_k, most_q, most_k, seed, offset, _ = (
            torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False)
        )
        backward = torch.ops.aten._scaled_dot_product_flash_attention_backward
        given = (upstream, q, k, v, out, sums, starts_q, starts_k)
        return lambda: backward(*given, most_q, most_k, 0.0, causal, seed, offset)

    def call(library, arrays):
        """The forward pass runs at the first call, which is not timed."""
        made = []

        def backward():
            if not made:
                made.append(library(*arrays))
            return made[0]()

        return backward

    heads, shared = task["heads"], task["shared"]
    arrays = [(made(heads), made(shared), made(shared), made(heads)) for _ in range(sets)]
    if task["back"] == 0:
        yield "cuDNN (PyTorch)", [call(by_cudnn, a) for a in arrays]
        yield "FlashAttention (PyTorch)", [call(by_flash, a) for a in arrays]


def ragged_dot(task, sets):
    ends = torch.tensor(group_sizes(task), device="cuda").cumsum(0).to(torch.int32)
    m, n, k, groups = task["m"], task["n"], task["k"], task["groups"]
    bf16 = torch.bfloat16
    arrays = [(normal(m, k, dtype=bf16), normal(groups, k, n, dtype=bf16)) for _ in range(sets)]
    yield "PyTorch, grouped", [lambda a=a, b=b: torch._grouped_mm(a, b, offs=ends) for a, b in arrays]


def ragged_outer(task, sets):
    ends = torch.tensor(group_sizes(task), device="cuda").cumsum(0).to(torch.int32)
    m, n, k = task["m"], task["n"], task["k"]
    bf16 = torch.bfloat16
    arrays = [(normal(m, k, dtype=bf16), normal(m, n, dtype=bf16)) for _ in range(sets)]
    yield "PyTorch, grouped", [lambda a=a, b=b: torch._grouped_mm(a.t(), b, offs=ends) for a, b in arrays]


ops = {
    "ragged_outer": ragged_outer,
    "ragged_dot": ragged_dot,
    "attention": attention,
    "attention_backward": attention_backward,
    "matmul": matmul,
    "product": product,
    "copy": copy,
    "cast": cast,
    "rotary": rotary,
    "swiglu": swiglu,
    "quantize": quantize,
    "axpy": axpy,
    "softmax": softmax,
    "rms_norm": rms_norm,
    "layer_norm": layer_norm,
    "layer_norm_backward": norm_backward,
    "rms_norm_backward": norm_backward,
    "cross_entropy": cross_entropy,
    "sum": sum_along,
    "scan": scan,
    "sort": sort,
    "topk": topk,
    "unique": unique,
    "pool": pool,
    "convolution": convolution,
    "permute": permute,
    "embedding": embedding,
    "scatter_add": scatter_add,
    "random": random_numbers,
}

# What waits for the host inside.
called = {"unique"}


def prepare(task, sets, launches, lanes, refused):
    torch.cuda.empty_cache()
    if task["op"] not in ops:
        refused.append(f"PyTorch has no {task['op']} here")
        return
    for name, calls in ops[task["op"]](task, sets):
        try:
            lanes.append((CallLane if task["op"] in called else GraphLane)(name, calls, launches))
        except Exception as error:
            refused.append(f"{name}: {why(error)}")


def hello():
    return {
        "peer": f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}",
        "gpu": torch.cuda.get_device_name(),
    }


if __name__ == "__main__":
    serve(hello, prepare)
