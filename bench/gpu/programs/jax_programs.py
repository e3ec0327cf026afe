"""JAX's programs (models.py, sciences.py, data.py, large_models.py) as StableHLO with their inputs and JAX's results, and timed in JAX.

    python3 bench/gpu/programs/jax_programs.py DIR [NAME...]     writes DIR/NAME.mlir and DIR/NAME.npz, prints JAX's milliseconds
    python3 bench/gpu/programs/jax_programs.py --serve           is a peer of index.ts, which times both in turns
    python3 bench/gpu/programs/jax_programs.py --names           lists them

Products of f32 are TF32 in JAX, which is its default on GPUs.
"""
import gc, json, os, statistics, sys, time
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import numpy as np, jax, jax.numpy as jnp
from common import bf, f32, programs
import models, sciences, data, large_models


def array_of(x):
    """As the archive has it: NumPy has no bf16, so the name says what it was."""
    x = jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else jnp.asarray(x)
    return ("." + "bfloat16", np.asarray(x.astype(f32))) if x.dtype == bf else ("", np.asarray(x))


# Archives of more bytes than these are not written: then times alone are compared, and donated arrays are.
most_bytes = 1 << 30


def bytes_of(tree): return sum(np.dtype(x.dtype).itemsize * x.size for x in jax.tree.leaves(tree))


class Program:
    name, how = "JAX", "jit, called as often as a tenth of a second allows, waiting for the last"

    def __init__(self, name, folder):
        f, self.args, donated = programs[name]()
        is_large = bytes_of([x for x in self.args if not jnp.issubdtype(getattr(x, "dtype", f32), jax.dtypes.prng_key)]) > most_bytes
        self.donated = donated if is_large else ()
        traced = jax.jit(f, donate_argnums=self.donated).trace(*self.args)
        # The text for TPUs has no calls of GPU libraries.
        self.text = traced.lower(lowering_platforms=("tpu",)).as_text()
        begin = time.time()
        self.run = traced.lower().compile()
        self.compiled = time.time() - begin
        os.makedirs(folder, exist_ok=True)
        open(f"{folder}/{name}.mlir", "w").write(self.text)
        archive = f"{folder}/{name}.npz"
        if is_large:
            if os.path.exists(archive): os.remove(archive)
        else:
            saved = {}
            for prefix, tree in (("in", self.args), ("out", self.run(*self.args))):
                for n, leaf in enumerate(jax.tree.leaves(tree)):
                    mark, value = array_of(leaf)
                    saved[f"{prefix}{n}{mark}"] = value
            np.savez(archive, **saved)
        self.calls = 1
        self.sample()
        self.calls = int(min(20, max(1, 100 / self.sample())))

    def sample(self):
        jax.block_until_ready(self.args)
        begin = time.perf_counter()
        for _ in range(self.calls):
            results = self.run(*self.args)
            # What was given up is the first that comes back.
            if self.donated: self.args = tuple(results[self.donated.index(i)] if i in self.donated else x for i, x in enumerate(self.args))
        jax.block_until_ready(results)
        return (time.perf_counter() - begin) / self.calls * 1e3


def prepare(task, sets, launches, lanes, refused):
    lanes.append(Program(task["program"], task["folder"]))


def measure(folder, names):
    for name in names:
        try:
            it = Program(name, folder)
            ms = statistics.median([it.sample() for _ in range(7)][2:])
            print(json.dumps(dict(program=name, peer="jax", ms=round(ms, 4), compile_s=round(it.compiled, 2), ops=it.text.count("stablehlo."))), flush=True)
        except Exception as error:
            print(json.dumps(dict(program=name, peer="jax", error=repr(error)[:300])), flush=True)
        it = None
        gc.collect()


if __name__ == "__main__":
    if sys.argv[1] == "--names":
        print(*programs)
    elif sys.argv[1] == "--serve":
        from serve import serve
        serve(lambda: {"peer": f"JAX {jax.__version__}", "gpu": jax.devices()[0].device_kind}, prepare)
    else:
        measure(sys.argv[1], sys.argv[2:] or list(programs))
