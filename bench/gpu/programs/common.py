"""What the programs share: random arrays that are the same in every run, and the list that each program joins.

    @program
    def name(): return function, arguments, donated
"""
from functools import partial
import jax, jax.numpy as jnp
from jax import lax, nn, random

bf, f32 = jnp.bfloat16, jnp.float32
key = random.key(7)
programs = {}


def program(f):
    programs[f.__name__] = f
    return f


def ks(n): return list(random.split(key, n))
def W(i, *s, d=f32, sc=.02): return (random.normal(random.fold_in(key, i), s) * sc).astype(d)
def ids(i, n, *s): return random.randint(random.fold_in(key, i), s, 0, n)
