"""Random numbers that kernels drew, held against JAX's (Threefry and rbg) and Triton's (Philox): `random_bits.py FOLDER`."""
import glob
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy as np
import torch
import triton
import triton.language as tl

seed = 2**32 * 3 + 12345
jax.config.update("jax_enable_x64", True)
half = [seed >> 32, seed & 0xFFFFFFFF]


def key_of(words, impl):
    return jax.random.wrap_key_data(jnp.array(words, jnp.uint32), impl=impl)


keys = {
    "threefry": key_of(half, "threefry2x32"),
    "rbg": key_of(half + half, "rbg"),
    # Its counter's lowest words end among the first elements.
    "ending": key_of([0x12345678, 0x9ABCDEF0, 0xFFFFF000, 0xFFFFFFFF], "rbg"),
}


def logits(rows):
    return jnp.broadcast_to(jnp.arange(10, dtype=jnp.float32) * 0.25, (rows, 10))


drawn = {
    "bits": lambda key, shape: jax.random.bits(key, shape, jnp.uint32),
    "split": lambda key, shape: jax.random.bits(jax.random.split(key, 5)[3], shape, jnp.uint32),
    "fold_in": lambda key, shape: jax.random.bits(jax.random.fold_in(key, 77), shape, jnp.uint32),
    "uniform": lambda key, shape: jax.random.uniform(key, shape, jnp.float32),
    "uniform_between": lambda key, shape: jax.random.uniform(key, shape, jnp.float32, -3, 0.7),
    "normal": lambda key, shape: jax.random.normal(key, shape, jnp.float32),
    "bernoulli": lambda key, shape: jax.random.bernoulli(key, jnp.float32(0.3), shape),
    "categorical": lambda key, shape: jax.random.categorical(key, logits(shape[0])),
}
formats = {"normal": np.float32, "uniform": np.float32, "uniform_between": np.float32, "bernoulli": np.bool_, "categorical": np.int32}


@triton.jit
def bits_kernel(out, seed, count, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.randint(seed, at), mask=at < count)


def of_triton(shape):
    count = int(np.prod(shape))
    out = torch.empty(count, dtype=torch.int32, device="cuda")
    bits_kernel[(triton.cdiv(count, 1024),)](out, seed, count, B=1024)
    return out.cpu().numpy().view(np.uint32).reshape(shape)


def box_muller(bits):
    """Normal numbers of rbg, in float64: pairs of words give pairs of numbers; the last one may lack its other word."""
    flat = bits.reshape(-1)
    flat = flat[: flat.size // 2 * 2]
    u = (flat[0::2].astype(np.float32).astype(np.float64) * 2.0**-32 + 2.0**-33).astype(np.float32).astype(np.float64)
    angle = flat[1::2].view(np.int32).astype(np.float64) * (np.pi * 2.0**-31)
    radius = np.sqrt(-2 * np.log(u))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)


failed = 0
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.bin"))):
    generator, name, *extents = os.path.basename(path)[: -len(".bin")].split("-")
    shape = tuple(int(extent) for extent in extents)
    ours = np.fromfile(path, formats.get(name, np.uint32)).reshape(shape)
    try:
        theirs = np.asarray(drawn[name](keys[generator], shape)) if generator in keys else of_triton(shape)
    except Exception as error:
        print(f"{generator} {name} {shape}: not compared, {type(error).__name__}: {error}"[:200])
        failed += 1
        continue
    if name == "normal" and generator != "threefry":
        exact = box_muller(np.asarray(jax.random.bits(keys[generator], shape, jnp.uint32)))
        away = np.abs(ours.reshape(-1)[: exact.size] - exact).max()
        failed += int(not away < 4e-6 or not np.isfinite(ours).all())
        print(f"{generator} {name} {shape}: {ours.size} values, by {away:.2g} at most, from {ours.min():.3f} to {ours.max():.3f}")
        continue
    different = int(np.sum(ours != theirs))
    text = f"{ours.size} values, {different} different"
    # The functions behind these two round by themselves: a normal number is close, and a tie of two logits may fall either way.
    if name == "normal":
        ulps = np.abs(ours.view(np.int32).astype(np.int64) - theirs.view(np.int32).astype(np.int64)).max()
        text += f", by {ulps} ulp at most"
        failed += int(ulps > 8)
    elif name == "categorical":
        failed += int(different > ours.size * 1e-4)
    else:
        failed += int(different > 0)
    print(f"{generator} {name} {shape}: {text}")
print("all as they should be" if failed == 0 else f"{failed} failed")
sys.exit(1 if failed else 0)
