"""Sciences: fields, particles, paths."""
from common import *

@program
def wave(): # 2-D wave equation, 500 steps of 1024²
    def f(u, v):
        def step(_, s):
            u, v = s; l = sum(jnp.roll(u, d, a) for d in (1, -1) for a in (0, 1)) - 4*u; v = v + .1*l; return u + .1*v, v
        return lax.fori_loop(0, 500, step, (u, v))
    return f, (W(0, 1024, 1024, sc=1.), jnp.zeros((1024, 1024))), ()

@program
def nbody(): # 4,096 bodies, one leapfrog step and the gradient of the energy
    def f(x, v, m):
        def acc(x): d = x[None] - x[:, None]; r = (d*d).sum(-1) + 1e-3; return (m[None, :, None] * d * (r**-1.5)[..., None]).sum(1)
        def energy(x): d = x[None] - x[:, None]; r = (d*d).sum(-1) + 1e-3; return -(m[None] * m[:, None] * lax.rsqrt(r)).sum() / 2
        v = v + .005*acc(x); x = x + .01*v; return x, v + .005*acc(x), jax.grad(energy)(x)
    return f, (W(0, 4096, 3, sc=1.), W(1, 4096, 3, sc=.1), jnp.abs(W(2, 4096, sc=1.))), ()


@program
def monte_carlo(): # an Asian option's price with two Greeks, 262,144 paths of 64 steps
    def price(s, vol, k): z = random.normal(k, (262144, 64)); p = s * jnp.exp(jnp.cumsum((.02 - vol*vol/2)/64 + vol*z/8, 1)); return (jnp.maximum(p.mean(1) - 100, 0) * jnp.exp(-.02)).mean()
    return jax.value_and_grad(price, (0, 1)), (jnp.array(100.), jnp.array(.2), key), ()


@program
def gaussian_process(): # the marginal likelihood of 1,024 points and its gradient
    def nll(p, x, y): d = (x[:, None] - x[None]) / jnp.exp(p[0]); K = jnp.exp(p[1]) * jnp.exp(-.5*(d*d).sum(-1)) + (jnp.exp(p[2]) + 1e-3) * jnp.eye(len(x)); L = jnp.linalg.cholesky(K); a = jax.scipy.linalg.cho_solve((L, True), y); return .5*y @ a + jnp.log(jnp.diag(L)).sum()
    return jax.value_and_grad(nll), (jnp.zeros(3), W(0, 1024, 4, sc=1.), W(1, 1024, sc=1.)), ()


@program
def lattice_boltzmann(): # D2Q9, 20 steps of 1024 × 512 with an obstacle
    c = jnp.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]]); w = jnp.array([4/9] + [1/9]*4 + [1/36]*4); C = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]; back = jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
    def f(F, wall):
        def step(_, F):
            r = F.sum(0); u = jnp.einsum("qa,qxy->axy", c.astype(f32), F) / r; cu = 3*jnp.einsum("qa,axy->qxy", c.astype(f32), u); eq = r * w[:, None, None] * (1 + cu + .5*cu*cu - 1.5*(u*u).sum(0)); G = jnp.where(wall, F[back], F - 1.7*(F - eq)); return jnp.stack([jnp.roll(G[q], C[q], (0, 1)) for q in range(9)])
        return lax.fori_loop(0, 20, step, F)
    return f, (1 + .1*jnp.abs(W(0, 9, 1024, 512, sc=1.)), W(1, 1024, 512) > .05), ()


@program
def molecular_dynamics(): # Lennard-Jones over a list of neighbours: energy and forces
    n, k = 50000, 40
    def energy(x, nb, box): d = x[nb] - x[:, None]; d = d - box * jnp.round(d / box); r = (d*d).sum(-1) + 1e-2; i = 1 / (r*r*r); return jnp.where(r < 9., 4*(i*i - i), 0.).sum() / 2
    return jax.value_and_grad(energy), (random.uniform(key, (n, 3)) * 40, ids(1, n, n, k), jnp.array(40.)), ()


@program
def heat3d_grad(): # ten explicit steps in 3-D with edges held, and the gradient of a source
    def loss(s, u):
        for _ in range(10):
            p = jnp.pad(u, 1, mode="edge"); u = u + .1*(sum(lax.slice_in_dim(lax.slice_in_dim(lax.slice_in_dim(p, 1+a, 129+a, axis=0), 1+b, 129+b, axis=1), 1+c, 129+c, axis=2) for a, b, c in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))) - 6*u) + .01*s
        return (u*u).sum()
    return jax.value_and_grad(loss), (W(0, 128, 128, 128, sc=1.), W(1, 128, 128, 128, sc=1.)), ()


@program
def mandelbrot(): # 1024², up to 100 turns, while any point is inside
    def f(c):
        def turn(s): i, x, y, n = s; a = x*x + y*y < 4; return i + 1, jnp.where(a, x*x - y*y + c[0], x), jnp.where(a, 2*x*y + c[1], y), n + a
        return lax.while_loop(lambda s: (s[0] < 100) & jnp.any(s[1]*s[1] + s[2]*s[2] < 4), turn, (0, jnp.zeros_like(c[0]), jnp.zeros_like(c[0]), jnp.zeros(c[0].shape, jnp.int32)))[3]
    return f, (jnp.stack(jnp.meshgrid(jnp.linspace(-2, 1, 1024), jnp.linspace(-1.5, 1.5, 1024))),), ()


@program
def black_scholes(): # prices and all first derivatives of a million options
    def price(s, k, t, v, r): d = (jnp.log(s/k) + (r + v*v/2)*t) / (v*jnp.sqrt(t)); return s*jax.scipy.stats.norm.cdf(d) - k*jnp.exp(-r*t)*jax.scipy.stats.norm.cdf(d - v*jnp.sqrt(t))
    u = random.uniform(key, (4, 1 << 20)); return jax.vmap(jax.value_and_grad(price, (0, 2, 3, 4)), (0, 0, 0, 0, None)), (80 + 40*u[0], 80 + 40*u[1], .1 + u[2], .1 + .3*u[3], jnp.array(.03)), ()


@program
def ode_fit(): # 65,536 pendulums by Runge-Kutta, 50 steps unrolled by a scan, gradient of their lengths
    def end(l, q, p):
        g = lambda q, p: (p, -9.81/l*jnp.sin(q))
        def step(s, _):
            q, p = s; h = .02; a = g(q, p); b = g(q + h/2*a[0], p + h/2*a[1]); c = g(q + h/2*b[0], p + h/2*b[1]); d = g(q + h*c[0], p + h*c[1]); return (q + h/6*(a[0] + 2*b[0] + 2*c[0] + d[0]), p + h/6*(a[1] + 2*b[1] + 2*c[1] + d[1])), None
        (q, p), _ = lax.scan(step, (q, p), None, length=50); return (q*q + p*p).sum()
    return jax.grad(end), (1 + random.uniform(key, (65536,)), W(0, 65536, sc=1.), W(1, 65536, sc=1.)), ()
