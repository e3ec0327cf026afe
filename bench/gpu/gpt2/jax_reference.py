"""GPT-2 small in JAX: writes parameters, tokens and the losses of ten steps of AdamW, and times a step."""
import sys, time, json
import numpy as np, jax, jax.numpy as jnp
V, C, L, H, D, B = 50304, 1024, 12, 12, 768, 8
steps = 10
rng = np.random.default_rng(0)
def normal(*shape, dev=0.02): return (rng.standard_normal(shape, dtype=np.float32) * dev).astype(np.float32)
def lin(a, b, dev=0.02): return {"weight": normal(a, b, dev=dev), "bias": np.zeros(b, np.float32)}
def norm(): return {"scale": np.ones(D, np.float32), "offset": np.zeros(D, np.float32)}
last = 0.02 / np.sqrt(2 * L)
params = {"tokens": normal(V, D), "positions": normal(C, D, dev=0.01), "after": norm(),
  "layers": [{"before": norm(), "attention": lin(D, 3*D), "projection": lin(D, D, last), "between": norm(), "up": lin(D, 4*D), "down": lin(4*D, D, last)} for _ in range(L)]}
text = rng.integers(0, 997, (B, C + 1))
start = rng.integers(0, 997, (B, 1))
run = (start + np.arange(C + 1)[None] ** 2) % 997
tokens = np.where(np.arange(C + 1)[None] % 5 == 4, text, run).astype(np.int32)
x, y = tokens[:, :-1], tokens[:, 1:]
def half(v): return v.astype(jnp.bfloat16)
def single(v): return v.astype(jnp.float32)
def linear(v, p): return v @ half(p["weight"]) + half(p["bias"])
def normalized(v, p):
  w = single(v); m = w.mean(-1, keepdims=True); var = ((w - m) ** 2).mean(-1, keepdims=True)
  return half((w - m) * jax.lax.rsqrt(var + 1e-5) * p["scale"] + p["offset"])
def gelu(v):
  w = single(v); return half(w * 0.5 * (1 + jnp.tanh(np.sqrt(2 / np.pi) * (w + 0.044715 * w * w * w))))
def attention(v):
  q, k, u = [t.reshape(B, C, H, D // H).transpose(0, 2, 1, 3) for t in jnp.split(v, 3, -1)]
  s = single(jnp.einsum("bhqd,bhkd->bhqk", q, k)) * (1 / np.sqrt(D // H))
  s = jnp.where(jnp.tril(jnp.ones((C, C), bool)), s, -1e30)
  w = half(jax.nn.softmax(s, -1))
  return jnp.einsum("bhqk,bhkd->bhqd", w, u).transpose(0, 2, 1, 3).reshape(B, C, D)
def loss_of(p, x, y):
  t = half(p["tokens"]); h = t[x] + half(p["positions"])[:C]
  for l in p["layers"]:
    h = h + linear(attention(linear(normalized(h, l["before"]), l["attention"])), l["projection"])
    h = h + linear(gelu(linear(normalized(h, l["between"]), l["up"])), l["down"])
  logits = single(normalized(h, p["after"]) @ t.T)
  return -(jnp.take_along_axis(logits, y[..., None], -1)[..., 0] - jax.nn.logsumexp(logits, -1)).mean()
def step(state, x, y):
  p, m, v, n = state
  loss, g = jax.value_and_grad(loss_of)(p, x, y)
  n = n + 1
  b1, b2, rate = 0.9, 0.95, 6e-4
  m = jax.tree.map(lambda a, b: b1 * a + (1 - b1) * b, m, g)
  v = jax.tree.map(lambda a, b: b2 * a + (1 - b2) * b * b, v, g)
  def upd(p, m, v):
    mh = m / (1 - b1 ** n); vh = v / (1 - b2 ** n)
    return p - rate * (mh / (jnp.sqrt(vh) + 1e-8) + 0.1 * p)
  return (jax.tree.map(upd, p, m, v), m, v, n), loss
out = sys.argv[1]
flat = {"x": x, "y": y}
def put(prefix, t):
  if isinstance(t, dict): [put(f"{prefix}{k}.", v) for k, v in t.items()]
  elif isinstance(t, list): [put(f"{prefix}{i}.", v) for i, v in enumerate(t)]
  else: flat[prefix[:-1]] = t
put("", params)
np.savez(f"{out}/gpt2.npz", **flat)
P = jax.tree.map(jnp.asarray, params)
Z = lambda: jax.tree.map(jnp.zeros_like, P)
f = jax.jit(step, donate_argnums=0)
state = (P, Z(), Z(), jnp.float32(0))
losses = []
t0 = time.time()
for i in range(steps):
  state, loss = f(state, x, y); losses.append(float(loss))
  if i == 0: print("jax first step", time.time() - t0, flush=True)
t0 = time.time()
for i in range(10): state, loss = f(state, x, y)
loss.block_until_ready()
print("jax ms per step", (time.time() - t0) * 100)
print("losses", losses)
json.dump(losses, open(f"{out}/gpt2-losses.json", "w"))
