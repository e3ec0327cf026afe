"""Data work: groups, windows, orders, images."""
from common import *

@program
def kmeans(): # 5 rounds, 500k × 64, 128 centres
    def f(x, c):
        def rnd(c, _):
            d = (c*c).sum(1)[None] - 2*x @ c.T; i = d.argmin(1); n = jax.ops.segment_sum(jnp.ones(len(x)), i, 128); return jax.ops.segment_sum(x, i, 128) / jnp.maximum(n, 1)[:, None], d.min(1).mean()
        return lax.scan(rnd, c, None, length=5)
    x = W(0, 500000, 64, sc=1.); return f, (x, x[:128]), ()

@program
def group_by(): # a million rows in 1,000 groups: sums, counts, means, extremes, deviations
    def f(k, v): s = jax.ops.segment_sum(v, k, 1000); n = jax.ops.segment_sum(jnp.ones(len(k)), k, 1000); m = s / jnp.maximum(n, 1)[:, None]; d = v - m[k]; return s, n, m, jax.ops.segment_max(v, k, 1000), jax.ops.segment_min(v, k, 1000), jnp.sqrt(jax.ops.segment_sum(d*d, k, 1000) / jnp.maximum(n, 1)[:, None])
    return f, (ids(0, 1000, 1 << 20), W(1, 1 << 20, 4, sc=1.)), ()


@program
def sort_unique(): # order by two keys, unique values and their counts, ranks
    def f(a, b, v): o = jnp.lexsort((b, a)); s = a[o]; u, n = jnp.unique(a, return_counts=True, size=4096); return v[o], s, u, n, jnp.argsort(jnp.argsort(v))
    return f, (ids(0, 4096, 1 << 20), ids(1, 1 << 20, 1 << 20), W(2, 1 << 20, sc=1.)), ()


@program
def quantiles(): # medians, quantiles and a histogram of columns
    def f(x): return jnp.quantile(x, jnp.array([.05, .5, .95]), axis=0), jnp.median(x, 1), jax.vmap(lambda c: jnp.histogram(c, 64, (-4., 4.))[0], 1)(x)
    return f, (W(0, 65536, 32, sc=1.),), ()


@program
def rolling(): # cumulative and rolling figures of 256 series
    def f(x): w = lambda v, i, o, n: lax.reduce_window(v, i, o, (1, n), (1, 1), ((0, 0), (n-1, 0))); m = w(x, 0., lax.add, 50)/50; return jnp.cumsum(x, 1), lax.cummax(x, 1), lax.cumlogsumexp(x, 1), m, jnp.sqrt(jnp.maximum(w(x*x, 0., lax.add, 50)/50 - m*m, 0)), w(x, jnp.inf, lax.min, 200), jnp.diff(x, axis=1), lax.associative_scan(lambda a, b: (a[0]*b[0], b[0]*a[1] + b[1]), (jnp.full_like(x, .98), .02*x), axis=1)[1]
    return f, (W(0, 256, 16384, sc=1.),), ()


@program
def nearest(): # the ten nearest of 100,000 points for 2,048 queries
    def f(x, q): d = (x*x).sum(1)[None] - 2*q @ x.T; v, i = lax.top_k(-d, 10); return -v, i, x[i].mean(1)
    return f, (W(0, 100000, 64, sc=1.), W(1, 2048, 64, sc=1.)), ()


@program
def join(): # a sorted join: search, gather, filter and compact
    def f(k, v, q): i = jnp.clip(jnp.searchsorted(k, q), 0, len(k) - 1); hit = k[i] == q; at = jnp.nonzero(hit, size=len(q), fill_value=len(q))[0]; return jnp.where(hit[:, None], v[i], 0), at, hit.sum()
    return f, (jnp.sort(ids(0, 1 << 24, 1 << 18)), W(1, 1 << 18, 8, sc=1.), ids(2, 1 << 24, 1 << 20)), ()


@program
def image_pipeline(): # resize, normalise, Sobel edges, histogram equalisation of 16 pictures
    def f(x):
        y = jax.image.resize(x.astype(f32)/255, (16, 256, 256, 3), "bilinear"); g = y @ jnp.array([.299, .587, .114]); k = jnp.array([[-1., 0, 1], [-2, 0, 2], [-1, 0, 1]]); s = lambda k: lax.conv_general_dilated(g[:, None], k[None, None], (1, 1), "SAME"); e = jnp.sqrt(s(k)**2 + s(k.T)**2)
        b = (g*255).astype(jnp.int32); h = jax.vmap(lambda b: jnp.zeros(256, jnp.int32).at[b.reshape(-1)].add(1))(b); c = jnp.cumsum(h, 1); return (y - y.mean((1, 2), keepdims=True)) / y.std((1, 2), keepdims=True), e, jnp.take_along_axis(c, b.reshape(16, -1), 1).reshape(b.shape) / 65536.
    return f, (random.randint(key, (16, 512, 512, 3), 0, 256, jnp.uint8),), ()


@program
def pca(): # covariance of a million rows, ten steps of subspace iteration by products
    def f(x, q):
        x = x - x.mean(0); c = x.T @ x / len(x)
        for _ in range(10): q = c @ q; q = q / jnp.linalg.norm(q, axis=0)
        return c, q, x @ q
    return f, (W(0, 1 << 20, 64, sc=1.), W(1, 64, 8, sc=1.)), ()


@program
def page_rank(): # 20 rounds over two million edges
    n, e = 200000, 2000000
    def f(s, t):
        d = jnp.maximum(jnp.zeros(n).at[s].add(1.), 1)
        def rnd(r, _): return .15/n + .85*jnp.zeros(n).at[t].add((r/d)[s]), None
        return lax.scan(rnd, jnp.full(n, 1/n), None, length=20)[0]
    return f, (ids(0, n, e), ids(1, n, e)), ()
