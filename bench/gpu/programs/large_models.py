"""Large models: a Llama's prefill and decode, GPT-2's training step. Their arrays are too many for an archive: weights are drawn here and there, and
times alone are compared. What a call gives is what the next one takes, as donation has it."""
from common import *


def llama(tokens, at): # 1.2 B: 16 layers, 32 heads over 8, a cache of 2,048
    C, H, K, F, V, N, L = 2048, 32, 8, 8192, 32000, 2048, 16
    D = C // H; w = iter(range(1000)); m = lambda *s: W(next(w), *s, d=bf)
    P = dict(e=m(V, C), n=jnp.ones(C, bf), h=m(C, V), b=[dict(q=m(C, C), k=m(C, K*D), v=m(C, K*D), o=m(C, C), g=m(C, F), u=m(C, F), d=m(F, C), n1=jnp.ones(C, bf), n2=jnp.ones(C, bf)) for _ in range(L)])
    def rms(x, g): y = x.astype(f32); return (y * lax.rsqrt((y*y).mean(-1, keepdims=True) + 1e-5)).astype(bf) * g
    def rotated(x, cos, sin): a, b = jnp.split(x, 2, -1); return jnp.concatenate([a*cos - b*sin, b*cos + a*sin], -1)
    def f(P, cache, ids, pos):
        B, T = ids.shape; where = pos + jnp.arange(T); t = where[:, None].astype(f32) / (500000. ** (jnp.arange(0, D, 2, dtype=f32) / D))
        cos, sin = (z.astype(bf)[None, :, None] for z in (jnp.cos(t), jnp.sin(t))); x = P["e"][ids]; new = []
        for q, (k0, v0) in zip(P["b"], cache):
            h = rms(x, q["n1"]); a = rotated((h @ q["q"]).reshape(B, T, H, D), cos, sin); k = rotated((h @ q["k"]).reshape(B, T, K, D), cos, sin); v = (h @ q["v"]).reshape(B, T, K, D)
            k1 = lax.dynamic_update_slice(k0, k, (0, pos, 0, 0)); v1 = lax.dynamic_update_slice(v0, v, (0, pos, 0, 0)); new.append((k1, v1))
            s = jnp.einsum("btkgd,bskd->bkgts", a.reshape(B, T, K, H//K, D), k1).astype(f32) * D**-.5; s = jnp.where(jnp.arange(N)[None] <= where[:, None], s, -1e30)
            x = x + jnp.einsum("bkgts,bskd->btkgd", nn.softmax(s).astype(bf), v1).reshape(B, T, C) @ q["o"]; h = rms(x, q["n2"]); x = x + (nn.silu(h @ q["g"]) * (h @ q["u"])) @ q["d"]
        return new, (rms(x[:, -1], P["n"]) @ P["h"]).astype(f32)
    cache = [(jnp.zeros((1, N, K, D), bf), jnp.zeros((1, N, K, D), bf)) for _ in range(L)]
    return f, (P, cache, jnp.arange(tokens, dtype=jnp.int32)[None], jnp.int32(at)), (1,)


@program
def llama_decode(): return llama(1, 1024)
@program
def llama_prefill(): return llama(1024, 0)


@program
def gpt2_train(): # 124 M, 8 × 1,024 tokens, AdamW
    C, L, V, T, B, H = 768, 12, 50304, 1024, 8, 12
    w = iter(range(1000)); m = lambda *s: W(next(w), *s); z = jnp.zeros
    block = lambda: dict(g1=jnp.ones(C), b1=z(C), g2=jnp.ones(C), b2=z(C), qkv=m(C, 3*C), bq=z(3*C), o=m(C, C), bo=z(C), f1=m(C, 4*C), c1=z(4*C), f2=m(4*C, C), c2=z(C))
    P = dict(e=m(V, C), p=m(T, C), blocks=[block() for _ in range(L)], g=jnp.ones(C), b=z(C)); h = lambda a: a.astype(bf)
    def norm(x, g, b): x = x.astype(f32); u = x.mean(-1, keepdims=True); v = ((x - u)**2).mean(-1, keepdims=True); return h((x - u) * lax.rsqrt(v + 1e-5) * g + b)
    def forward(P, i):
        x = h(P["e"][i] + P["p"])
        for q in P["blocks"]:
            a, b, c = (t.reshape(B, T, H, C//H) for t in jnp.split(norm(x, q["g1"], q["b1"]) @ h(q["qkv"]) + h(q["bq"]), 3, -1)); x = x + nn.dot_product_attention(a, b, c, is_causal=True, implementation="xla").reshape(B, T, C) @ h(q["o"]) + h(q["bo"])
            x = x + nn.gelu(norm(x, q["g2"], q["b2"]) @ h(q["f1"]) + h(q["c1"])) @ h(q["f2"]) + h(q["c2"])
        return (norm(x, P["g"], P["b"]) @ h(P["e"]).T).astype(f32)
    def f(P, M, N, i, t):
        loss, g = jax.value_and_grad(lambda P: -jnp.take_along_axis(nn.log_softmax(forward(P, i)), t[..., None], -1).mean())(P); M = jax.tree.map(lambda m, g: .9*m + .1*g, M, g); N = jax.tree.map(lambda n, g: .999*n + .001*g*g, N, g)
        return jax.tree.map(lambda p, m, n: p*(1 - 1e-6) - 1e-4*m/(jnp.sqrt(n) + 1e-8), P, M, N), M, N, loss
    zeros = lambda: jax.tree.map(jnp.zeros_like, P); tokens = jnp.zeros((B, T), jnp.int32) + jnp.arange(T); return f, (P, zeros(), zeros(), tokens, tokens), (0, 1, 2)
