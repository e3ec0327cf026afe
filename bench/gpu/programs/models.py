"""Models: a step of training, a gradient or an inference each."""
from common import *

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
def t5_grad(): # encoder layers with relative position buckets, RMS norms and gated GELU, bf16
    C, h, F, T, B = 512, 8, 1024, 256, 16
    P = dict(e=W(0, 32128, C, d=bf), r=W(1, 32, h), b=[dict(q=W(10*i+2, C, C, d=bf), k=W(10*i+3, C, C, d=bf), v=W(10*i+4, C, C, d=bf), o=W(10*i+5, C, C, d=bf), g=W(10*i+6, C, F, d=bf), u=W(10*i+7, C, F, d=bf), w=W(10*i+8, F, C, d=bf), n=jnp.ones(C), m=jnp.ones(C)) for i in range(6)])
    def rms(x, g): x = x.astype(f32); return (x * lax.rsqrt((x*x).mean(-1, keepdims=True) + 1e-6) * g).astype(bf)
    def buckets():
        d = jnp.arange(T)[None] - jnp.arange(T)[:, None]; n = jnp.abs(d); far = 8 + (jnp.log(jnp.maximum(n, 1) / 8) / jnp.log(128 / 8) * 8).astype(jnp.int32); return (d > 0) * 16 + jnp.where(n < 8, n, jnp.minimum(far, 15))
    def loss(P, x, y):
        bias = P["r"][buckets()].transpose(2, 0, 1); z = P["e"][x]
        for b in P["b"]:
            u = rms(z, b["n"]); q, k, v = ((u @ b[n]).reshape(B, T, h, C//h) for n in "qkv")
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(f32) + bias; z = z + jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(s).astype(bf), v).reshape(B, T, C) @ b["o"]
            u = rms(z, b["m"]); z = z + (nn.gelu(u @ b["g"]) * (u @ b["u"])) @ b["w"]
        l = nn.log_softmax((z @ P["e"].T).astype(f32)); return -jnp.take_along_axis(l, y[..., None], -1).mean()
    return jax.value_and_grad(loss), (P, ids(3, 32128, B, T), ids(4, 32128, B, T)), ()


@program
def diffusion_block(): # a U-Net's stage: group norm, 3×3 convolutions, time embedding, self and cross attention, bf16
    B, S, C, h = 4, 64, 320, 8
    cv = lambda i, k, a, b: W(i, k, k, a, b, d=bf, sc=(1/(k*k*a))**.5)
    P = dict(c1=cv(0, 3, C, C), c2=cv(1, 3, C, C), t=W(2, 1280, C, d=bf), g=[jnp.ones(C)]*3, s=[jnp.zeros(C)]*3, q=W(3, C, 3*C, d=bf), o=W(4, C, C, d=bf), xq=W(5, C, C, d=bf), xk=W(6, 768, 2*C, d=bf), xo=W(7, C, C, d=bf), u=W(8, C, 8*C, d=bf), w=W(9, 4*C, C, d=bf))
    conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    def gn(x, g, s): y = x.astype(f32).reshape(B, -1, 32, C//32); m = y.mean((1, 3), keepdims=True); v = y.var((1, 3), keepdims=True); return (((y - m) * lax.rsqrt(v + 1e-5)).reshape(x.shape) * g + s).astype(bf)
    def attend(q, k, v): return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(f32) / (C//h)**.5).astype(bf), v).reshape(B, -1, C)
    def f(P, x, t, text):
        y = conv(nn.silu(gn(x, P["g"][0], P["s"][0])), P["c1"]) + (nn.silu(t) @ P["t"])[:, None, None]; x = x + conv(nn.silu(gn(y, P["g"][1], P["s"][1])), P["c2"])
        z = gn(x, P["g"][2], P["s"][2]).reshape(B, S*S, C); q, k, v = (a.reshape(B, -1, h, C//h) for a in jnp.split(z @ P["q"], 3, -1)); z = z + attend(q, k, v) @ P["o"]
        k, v = (a.reshape(B, -1, h, C//h) for a in jnp.split(text @ P["xk"], 2, -1)); z = z + attend((z @ P["xq"]).reshape(B, -1, h, C//h), k, v) @ P["xo"]
        a, b = jnp.split(z @ P["u"], 2, -1); z = z + (a * nn.gelu(b)) @ P["w"]; return x + z.reshape(x.shape)
    return f, (P, W(20, B, S, S, C, d=bf, sc=1.), W(21, B, 1280, d=bf, sc=1.), W(22, B, 77, 768, d=bf, sc=1.)), ()


@program
def unet_train(): # segmentation: pooling down, transposed convolutions up, skip connections, sigmoid loss
    ch = [16, 32, 64, 128]; cv = lambda i, k, a, b: W(i, k, k, a, b, sc=(2/(k*k*a))**.5)
    P = dict(d=[cv(i, 3, 1 if i == 0 else ch[i-1], ch[i]) for i in range(4)], u=[cv(10+i, 2, ch[i+1], ch[i]) for i in range(3)], m=[cv(20+i, 3, 2*ch[i], ch[i]) for i in range(3)], o=cv(30, 1, ch[0], 1))
    dn = ("NHWC", "HWIO", "NHWC"); conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dn)
    def loss(P, x, y):
        skips = []
        for i, w in enumerate(P["d"]):
            if i: x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            x = nn.relu(conv(x, w)); skips.append(x)
        for i in (2, 1, 0): x = nn.relu(conv(jnp.concatenate([lax.conv_transpose(x, P["u"][i], (2, 2), "SAME", dimension_numbers=dn), skips[i]], -1), P["m"][i]))
        z = conv(x, P["o"]); return (jnp.maximum(z, 0) - z*y + jnp.log1p(jnp.exp(-jnp.abs(z)))).mean()
    def f(P, x, y): l, g = jax.value_and_grad(loss)(P, x, y); return jax.tree.map(lambda p, g: p - .1*g, P, g), l
    return f, (P, W(40, 16, 256, 256, 1, sc=1.), (W(41, 16, 256, 256, 1) > 0).astype(f32)), (0,)


@program
def recommender_grad(): # 26 tables of 50,000 × 64, batch 4,096, interactions by index pairs of a triangle
    n, B = 26, 4096; P = dict(t=W(0, n, 50000, 64), b=[W(i+1, a, b, sc=a**-.5) for i, (a, b) in enumerate(((13, 256), (256, 64)))], m=[W(i+5, a, b, sc=a**-.5) for i, (a, b) in enumerate(((64+351, 512), (512, 256), (256, 1)))])
    i, j = jnp.tril_indices(n + 1, -1)
    def loss(P, dense, sparse, y):
        z = nn.relu(nn.relu(dense @ P["b"][0]) @ P["b"][1]); e = jax.vmap(lambda t, s: t[s], (0, 1), 1)(P["t"], sparse); a = jnp.concatenate([z[:, None], e], 1)
        d = jnp.einsum("bnd,bmd->bnm", a, a)[:, i, j]; x = jnp.concatenate([z, d], 1)
        for k, w in enumerate(P["m"]): x = x @ w if k == 2 else nn.relu(x @ w)
        l = x[:, 0]; return (jnp.maximum(l, 0) - l*y + jnp.log1p(jnp.exp(-jnp.abs(l)))).mean()
    def f(P, dense, sparse, y): l, g = jax.value_and_grad(loss)(P, dense, sparse, y); return jax.tree.map(lambda p, g: p - .1*g, P, g), l
    return f, (P, W(20, B, 13, sc=1.), ids(21, 50000, B, n), (W(22, B) > 0).astype(f32)), (0,)


@program
def mamba_grad(): # a selective state space layer by an associative scan, and its gradient
    B, T, D, N = 4, 1024, 256, 16; P = dict(a=W(0, D, N, sc=.5), b=W(1, D, N, sc=.06), c=W(2, D, N, sc=.06), d=W(3, D, D, sc=.06), o=W(4, D, D, sc=.06))
    def loss(P, x):
        dt = nn.softplus(x @ P["d"]); A = jnp.exp(dt[..., None] * -jnp.exp(P["a"])); Bx = (dt * x)[..., None] * (x @ P["b"])[:, :, None]
        _, s = lax.associative_scan(lambda l, r: (r[0]*l[0], r[0]*l[1] + r[1]), (A, Bx), axis=1); y = (s * (x @ P["c"])[:, :, None]).sum(-1); return ((y * nn.silu(x)) @ P["o"] ** 2).mean()
    return jax.value_and_grad(loss), (P, W(5, B, T, D, sc=1.)), ()


@program
def nerf_grad(): # positional encoding, an MLP over samples of rays, volume rendering by cumulative products
    R, S, C = 4096, 64, 256; P = [W(i, a, b, sc=(2/a)**.5) for i, (a, b) in enumerate(((63, C), (C, C), (C, C), (C+63, C), (C, 4)))]
    def enc(x): y = x[..., None, :] * 2.**jnp.arange(10)[:, None]; return jnp.concatenate([x, jnp.sin(y).reshape(*x.shape[:-1], -1), jnp.cos(y).reshape(*x.shape[:-1], -1)], -1)
    def loss(P, o, d, rgb):
        t = jnp.linspace(2., 6., S); e = enc(o[:, None] + d[:, None] * t[:, None]); x = e
        for i in range(3): x = nn.relu(x @ P[i])
        z = nn.relu(jnp.concatenate([x, e], -1) @ P[3]) @ P[4]; a = 1 - jnp.exp(-nn.relu(z[..., 3]) * (4/S)); w = a * jnp.cumprod(jnp.concatenate([jnp.ones((R, 1)), 1 - a[:, :-1] + 1e-10], 1), 1)
        return ((w[..., None] * nn.sigmoid(z[..., :3])).sum(1) - rgb).__pow__(2).mean()
    return jax.value_and_grad(loss), (P, W(10, R, 3, sc=.1), W(11, R, 3, sc=1.), random.uniform(key, (R, 3))), ()


@program
def clip_grad(): # contrastive loss between 4,096 pairs of embeddings, both ways
    P = dict(i=W(0, 1024, 512, sc=.03), t=W(1, 768, 512, sc=.03), s=jnp.array(2.6))
    def loss(P, x, y):
        n = lambda a: a / jnp.linalg.norm(a, axis=-1, keepdims=True); l = n(x @ P["i"]) @ n(y @ P["t"]).T * jnp.exp(P["s"]); k = jnp.arange(len(x)); return -(nn.log_softmax(l)[k, k].mean() + nn.log_softmax(l, 0)[k, k].mean()) / 2
    return jax.value_and_grad(loss), (P, W(2, 4096, 1024, sc=1.), W(3, 4096, 768, sc=1.)), ()


@program
def gat_grad(): # graph attention: softmax over the edges of each node, 4 heads
    n, e, h, d = 10000, 160000, 4, 32; P = dict(w=W(0, 128, h*d, sc=.09), l=W(1, h, d, sc=.2), r=W(2, h, d, sc=.2), o=W(3, h*d, 40, sc=.09))
    def loss(P, x, s, t, y):
        z = (x @ P["w"]).reshape(n, h, d); a = nn.leaky_relu((z * P["l"]).sum(-1)[s] + (z * P["r"]).sum(-1)[t], .2); a = jnp.exp(a - jax.ops.segment_max(a, t, n)[t]); a = a / jax.ops.segment_sum(a, t, n)[t]
        z = nn.elu(jax.ops.segment_sum(z[s] * a[..., None], t, n).reshape(n, h*d)) @ P["o"]; return -jnp.take_along_axis(nn.log_softmax(z), y[:, None], 1).mean()
    return jax.value_and_grad(loss), (P, W(5, n, 128, sc=1.), ids(6, n, e), ids(7, n, e), ids(8, 40, n)), ()


@program
def sampling(): # a decoder's choice: temperature, top-k, top-p, repetition penalty, categorical
    B, V = 64, 50304
    def f(logits, seen, k):
        c = jnp.zeros((B, V)).at[jnp.arange(B)[:, None], seen].add(1.); l = jnp.where(c > 0, jnp.where(logits > 0, logits/1.2, logits*1.2), logits) / .8
        v, i = lax.top_k(l, 64); p = nn.softmax(v); keep = jnp.cumsum(p, -1) - p < .9; j = random.categorical(k, jnp.where(keep, v, -jnp.inf)); s = jnp.sort(l, -1)[:, ::-1]; q = nn.softmax(s); cut = (jnp.cumsum(q, -1) < .95).sum(-1)
        return jnp.take_along_axis(i, j[:, None], 1)[:, 0], cut, nn.logsumexp(l, -1)
    return f, (W(0, B, V, sc=3.), ids(1, V, B, 256), key), ()


@program
def mixer_train(): # an MLP-mixer's step with dropout and AdamW
    B, T, C = 128, 196, 512; P = dict(e=W(0, 768, C), b=[dict(a=W(4*i+1, T, 256, sc=.07), c=W(4*i+2, 256, T, sc=.06), d=W(4*i+3, C, 2048, sc=.04), f=W(4*i+4, 2048, C, sc=.02), g=jnp.ones(C), s=jnp.zeros(C), m=jnp.ones(C), n=jnp.zeros(C)) for i in range(4)], h=W(90, C, 1000))
    def loss(P, x, y, k):
        Q = jax.tree.map(lambda a: a.astype(bf), P); z = x.astype(bf) @ Q["e"]
        for i, b in enumerate(Q["b"]):
            u = ln(z, b["g"], b["s"]).astype(bf).swapaxes(1, 2); z = z + (nn.gelu(u @ b["a"]) @ b["c"]).swapaxes(1, 2); u = ln(z, b["m"], b["n"]).astype(bf); u = nn.gelu(u @ b["d"]); z = z + (u * random.bernoulli(random.fold_in(k, i), .9, u.shape) / bf(.9)) @ b["f"]
        l = nn.log_softmax((z.mean(1) @ Q["h"]).astype(f32)); return -jnp.take_along_axis(l, y[:, None], 1).mean()
    def f(P, M, V, x, y, k):
        l, g = jax.value_and_grad(loss)(P, x, y, k); M = jax.tree.map(lambda m, g: .9*m + .1*g, M, g); V = jax.tree.map(lambda v, g: .99*v + .01*g*g, V, g); return jax.tree.map(lambda p, m, v: p - 1e-3*(m/(jnp.sqrt(v) + 1e-8) + .01*p), P, M, V), M, V, l
    z = jax.tree.map(jnp.zeros_like, P); return f, (P, z, z, W(91, B, T, 768, sc=1.), ids(92, 1000, B), key), (0, 1, 2)
