"""Attention and its gradients through JAX: cuDNN as XLA calls it, and the kernel that comes with Pallas."""
import functools

import jax
import jax.numpy as jnp
import jax_pallas
from jax_lane import Lane, normals, program


def by_cudnn(task):
    return functools.partial(jax.nn.dot_product_attention, is_causal=bool(task["causal"]), implementation="cudnn")


def unscaled_difference(task, q, k, v):
    """How far a result is from attention without a scale, of the first head in f32."""

    def exact():
        first = [each[0, :, 0].astype(jnp.float32) for each in (q, k, v)]
        scores = jnp.dot(first[0], first[1].T, precision="highest")
        if task["causal"]:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape, bool)), scores, -jnp.inf)
        return jnp.dot(jax.nn.softmax(scores, -1), first[2], precision="highest")

    reference = jax.jit(exact)()
    distance = lambda out: jnp.linalg.norm(out[0, :, 0].astype(jnp.float32) - reference) / jnp.linalg.norm(reference)
    return lambda out: float(distance(out))


def attention(task, sets, launches, lanes, refused):
    if task["back"] > 0:
        refused.append("JAX: windows are compared with our own whole attention")
        return
    arrays = [tuple(normals(index, *jax_pallas.shapes_of(task))) for index in range(sets)]
    lanes.append(Lane("cuDNN (JAX)", program(by_cudnn(task)), arrays, launches))
    halves = [tuple(each.astype(jax_pallas.dtype_of(task)) for each in given) for given in arrays]
    jax_pallas.fastest(task, halves, launches, lanes, refused, unscaled_difference(task, *halves[0]))


def attention_backward(task, sets, launches, lanes, refused):
    """The gradients alone: what the forward pass left is kept by a function, which is an argument of the program."""
    shapes = jax_pallas.shapes_of({**task, "op": "attention"})

    @jax.jit
    def forward(q, k, v):
        return jax.vjp(by_cudnn(task), q, k, v)[1]

    arrays = []
    for index in range(sets):
        q, k, v, upstream = normals(index, *shapes, shapes[0])
        arrays.append((forward(q, k, v), upstream))
    lanes.append(Lane("cuDNN (JAX)", program(lambda gradients, upstream: gradients(upstream)), arrays, launches))
