"""Ordinary JAX programs of realistic size: each is written as StableHLO with its inputs and JAX's results, and timed in JAX.

  python3 bench/gpu/programs/jax_programs.py DIR [NAME...]     DIR/NAME.mlir, DIR/NAME.npz, DIR/NAME.json with JAX's milliseconds

`index.ts` beside it runs them on tilewright. Products of f32 are TF32 in JAX, which is its default on GPUs.
"""
import sys, json, time, statistics, os
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import numpy as np, jax, jax.numpy as jnp
from jax import lax, nn, random
from functools import partial
bf, f32 = jnp.bfloat16, jnp.float32
key = random.key(7)
def ks(n): return list(random.split(key, n))
def W(i, *s, d=f32, sc=.02): return (random.normal(random.fold_in(key, i), s) * sc).astype(d)
programs = {}
def program(f): programs[f.__name__] = f; return f
def ln(x, g, b): x = x.astype(f32); m = x.mean(-1, keepdims=True); v = x.var(-1, keepdims=True); return (x - m) / jnp.sqrt(v + 1e-5) * g + b
def block_params(i, c, f, d): return dict(qkv=W(i, c, 3*c, d=d), o=W(i+1, c, c, d=d), u=W(i+2, c, f, d=d), w=W(i+3, f, c, d=d), g1=jnp.ones(c), b1=jnp.zeros(c), g2=jnp.ones(c), b2=jnp.zeros(c), bu=jnp.zeros(f, d), bw=jnp.zeros(c, d))
def encoder(x, p, h, mask=None, act=partial(nn.gelu, approximate=False)):
    B, T, C = x.shape; D = C // h; d = p["qkv"].dtype; y = ln(x, p["g1"], p["b1"]).astype(d)
    q, k, v = jnp.split((y @ p["qkv"]).reshape(B, T, 3, h, D), 3, 2); q, k, v = (t[:, :, 0] for t in (q, k, v))
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(f32) / D**.5
    if mask is not None: s = jnp.where(mask, s, -1e9)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(s).astype(d), v).reshape(B, T, C) @ p["o"]
    y = ln(x, p["g2"], p["b2"]).astype(d); return x + act(y @ p["u"] + p["bu"]) @ p["w"] + p["bw"]

@program
def bert(): # base, 32 × 128, bf16, padding mask
    P = dict(e=W(0, 30522, 768, d=bf), p=W(1, 128, 768, d=bf), b=[block_params(10*i+2, 768, 3072, bf) for i in range(12)], g=jnp.ones(768), c=jnp.zeros(768))
    def f(P, ids, lengths):
        m = (jnp.arange(128)[None] < lengths[:, None])[:, None, None]; x = P["e"][ids] + P["p"]
        for b in P["b"]: x = encoder(x, b, 12, m)
        return (ln(x, P["g"], P["c"]) * m[:, 0, 0, :, None]).sum(1) / lengths[:, None]
    return f, (P, random.randint(key, (32, 128), 0, 30522), random.randint(key, (32,), 20, 129)), ()
@program
def vit_train(): # ViT-S/16 step with SGD, 64 images of 224, bf16 products
    P = dict(c=W(0, 16, 16, 3, 384), p=W(1, 196, 384), b=[block_params(10*i+2, 384, 1536, f32) for i in range(6)], h=W(3, 384, 1000))
    def loss(P, x, y):
        Q = jax.tree.map(lambda a: a.astype(bf), P); z = lax.conv_general_dilated(x.astype(bf), Q["c"], (16, 16), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")).reshape(x.shape[0], 196, 384) + Q["p"]
        for b in Q["b"]: z = encoder(z, b, 6).astype(bf)
        l = nn.log_softmax((z.mean(1) @ Q["h"]).astype(f32)); return -l[jnp.arange(len(y)), y].mean()
    def f(P, x, y): l, g = jax.value_and_grad(loss)(P, x, y); return jax.tree.map(lambda p, g: p - .1*g, P, g), l
    return f, (P, random.normal(key, (64, 224, 224, 3)), random.randint(key, (64,), 0, 1000)), (0,)
@program
def resnet_train(): # bottleneck stages, batch norm, 32 images of 128, bf16
    def cv(i, k, a, b): return W(i, k, k, a, b, sc=(2/(k*k*a))**.5)
    P = dict(s=cv(0, 7, 3, 64), b=[], h=W(1, 1024, 1000)); S = []; i = 2; a = 64
    for width, n, st in ((64, 2, 1), (128, 2, 2), (256, 2, 2)):
        for j in range(n):
            q = dict(c1=cv(i, 1, a, width), c2=cv(i+1, 3, width, width), c3=cv(i+2, 1, width, 4*width), g=[jnp.ones(width), jnp.ones(width), jnp.ones(4*width)], t=[jnp.zeros(width), jnp.zeros(width), jnp.zeros(4*width)])
            if a != 4*width: q["d"] = cv(i+3, 1, a, 4*width)
            P["b"].append(q); S.append(st if j == 0 else 1); i += 4; a = 4*width
    conv = lambda x, w, s: lax.conv_general_dilated(x, w.astype(bf), (s, s), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    def bn(x, g, t): y = x.astype(f32); m = y.mean((0, 1, 2)); v = y.var((0, 1, 2)); return ((y - m) * lax.rsqrt(v + 1e-5) * g + t).astype(bf)
    def loss(P, x, y):
        z = nn.relu(conv(x.astype(bf), P["s"], 2)); z = lax.reduce_window(z, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for q, s in zip(P["b"], S):
            r = conv(z, q["d"], s) if "d" in q else z; u = nn.relu(bn(conv(z, q["c1"], 1), q["g"][0], q["t"][0])); u = nn.relu(bn(conv(u, q["c2"], s), q["g"][1], q["t"][1])); z = nn.relu(r + bn(conv(u, q["c3"], 1), q["g"][2], q["t"][2]))
        l = nn.log_softmax(z.astype(f32).mean((1, 2)) @ P["h"]); return -l[jnp.arange(len(y)), y].mean()
    def f(P, x, y): l, g = jax.value_and_grad(loss)(P, x, y); return jax.tree.map(lambda p, g: p - .1*g, P, g), l
    return f, (P, random.normal(key, (32, 128, 128, 3)), random.randint(key, (32,), 0, 1000)), (0,)
@program
def moe_grad(): # 8 experts, top 2, one-hot dispatch
    P = dict(r=W(0, 512, 8), u=W(1, 8, 512, 2048, d=bf), w=W(2, 8, 2048, 512, d=bf))
    def loss(P, x):
        g = nn.softmax(x.astype(f32) @ P["r"]); v, i = lax.top_k(g, 2); v = v / v.sum(-1, keepdims=True); cap = 1280
        m = nn.one_hot(i, 8); at = (jnp.cumsum(m.reshape(-1, 8), 0) - 1).reshape(m.shape) * m; keep = (at < cap) * m
        d = (keep[..., None] * nn.one_hot(at.astype(jnp.int32), cap)).sum(1); c = (v[:, :, None, None] * keep[..., None] * nn.one_hot(at.astype(jnp.int32), cap)).sum(1)
        e = jnp.einsum("tec,td->ecd", d.astype(bf), x); y = jnp.einsum("ecf,efd->ecd", nn.silu(jnp.einsum("ecd,edf->ecf", e, P["u"])), P["w"])
        return (jnp.einsum("tec,ecd->td", c.astype(bf), y).astype(f32) ** 2).mean()
    return jax.value_and_grad(loss), (P, W(5, 4096, 512, d=bf, sc=1.)), ()
@program
def lstm(): # 512 steps of 256, batch 64, forward and backward
    P = dict(x=W(0, 256, 1024, sc=.06), h=W(1, 256, 1024, sc=.06), b=jnp.zeros(1024))
    def loss(P, xs):
        def step(s, x):
            h, c = s; i, f, g, o = jnp.split(x @ P["x"] + h @ P["h"] + P["b"], 4, -1); c = nn.sigmoid(f + 1)*c + nn.sigmoid(i)*jnp.tanh(g); h = nn.sigmoid(o)*jnp.tanh(c); return (h, c), h
        z = jnp.zeros((64, 256)); _, ys = lax.scan(step, (z, z), xs); return (ys ** 2).mean()
    return jax.grad(loss), (P, W(3, 512, 64, 256, sc=1.)), ()
@program
def gnn_grad(): # 3 layers of message passing, 200k edges, 20k nodes
    P = [dict(a=W(i, 128, 128, sc=.09), b=W(i+9, 128, 128, sc=.09)) for i in range(3)]
    def loss(P, x, s, t):
        deg = jax.ops.segment_sum(jnp.ones(len(s)), t, 20000) + 1
        for p in P: x = nn.relu(x @ p["a"] + jax.ops.segment_sum(x[s] @ p["b"], t, 20000) / deg[:, None])
        return (x ** 2).mean()
    return jax.grad(loss), (P, W(20, 20000, 128, sc=1.), random.randint(ks(2)[0], (200000,), 0, 20000), random.randint(ks(2)[1], (200000,), 0, 20000)), ()
@program
def wave(): # 2-D wave equation, 500 steps of 1024²
    def f(u, v):
        def step(_, s):
            u, v = s; l = sum(jnp.roll(u, d, a) for d in (1, -1) for a in (0, 1)) - 4*u; v = v + .1*l; return u + .1*v, v
        return lax.fori_loop(0, 500, step, (u, v))
    return f, (W(0, 1024, 1024, sc=1.), jnp.zeros((1024, 1024))), ()
@program
def kmeans(): # 5 rounds, 500k × 64, 128 centres
    def f(x, c):
        def rnd(c, _):
            d = (c*c).sum(1)[None] - 2*x @ c.T; i = d.argmin(1); n = jax.ops.segment_sum(jnp.ones(len(x)), i, 128); return jax.ops.segment_sum(x, i, 128) / jnp.maximum(n, 1)[:, None], d.min(1).mean()
        return lax.scan(rnd, c, None, length=5)
    x = W(0, 500000, 64, sc=1.); return f, (x, x[:128]), ()

def measure(out, names):
    os.makedirs(out, exist_ok=True)
    for name in names:
        try:
            f, args, donate = programs[name](); j = jax.jit(f); text = jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",)).as_text(); open(f"{out}/{name}.mlir", "w").write(text)
            t0 = time.time(); c = j.lower(*args).compile(); comp = time.time() - t0; r = c(*args); jax.block_until_ready(r)
            save = {}
            for p, tree in (("in", args), ("out", r)):
                for n, x in enumerate(jax.tree.leaves(tree)):
                    x = jnp.asarray(x); save[f"{p}{n}" + (".bfloat16" if x.dtype == bf else "")] = np.asarray(x.astype(f32) if x.dtype == bf else x)
            np.savez(f"{out}/{name}.npz", **save); ms = []; n = 10
            for _ in range(7):
                t0 = time.perf_counter()
                for _ in range(n): r = c(*args)
                jax.block_until_ready(r); ms.append((time.perf_counter() - t0) / n * 1e3)
            found = dict(program=name, peer="jax", ms=round(statistics.median(ms[2:]), 4), compile_s=round(comp, 2), ops=text.count("stablehlo."))
            open(f"{out}/{name}.json", "w").write(json.dumps(found)); print(json.dumps(found), flush=True)
        except Exception as e: print(json.dumps(dict(program=name, peer="jax", error=repr(e)[:300])), flush=True)

if __name__ == "__main__": measure(sys.argv[1], sys.argv[2:] or list(programs))
