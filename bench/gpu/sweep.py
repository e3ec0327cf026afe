"""Runs the kernels of `sweep.ts` over all 2^32 operands and compares with float64 on the same GPU.

Prints the largest error of each function in units in the last place of the exact result, and where it is.
"""
import json
import os
import sys
import cupy
import numpy
import torch

folder = sys.argv[1]
with open(os.path.join(folder, "sweep.json")) as file:
    plan = json.load(file)
run = plan["run"]

references = {
    "logistic": torch.sigmoid,
    "erf": torch.special.erf,
    "erfInv": torch.special.erfinv,
    "erfc": torch.special.erfc,
    "cbrt": lambda x: x.sign() * x.abs().pow(1 / 3),
    **{name: getattr(torch, name) for name in
       ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "atan", "asin", "acos",
        "tanh", "sinh", "cosh", "asinh", "acosh", "atanh", "rsqrt")},
}
GREATEST = float(numpy.finfo(numpy.float32).max)
# Halfway to what would be the next number: from here on results round to infinity.
OVERFLOW = GREATEST + 2.0 ** 103


def errors(found, exact):
    """Units in the last place, element by element; infinity where a special value is wrong."""
    _, exponent = torch.frexp(exact)
    unit = torch.ldexp(torch.ones_like(exact), torch.clamp(exponent - 1, min=-126) - 23)
    overflow = exact.abs() >= OVERFLOW
    wanted = torch.where(overflow, exact.sign() * float("inf"), exact)
    special = ~torch.isfinite(wanted) | ~torch.isfinite(found)
    same = (wanted == found) | (torch.isnan(wanted) & torch.isnan(found))
    # Within one unit of overflowing, either side is a correct rounding's neighbour.
    near = special & ~same & (exact.abs() > GREATEST * (1 - 2.0 ** -22))
    off = (found - exact).abs() / unit
    off = torch.where(special, torch.where(same | near, 0.0, float("inf")), off)
    return off


failed = False
out = torch.empty(run, dtype=torch.float32, device="cuda")
for entry in plan["entries"]:
    name = entry["fn"]
    module = cupy.cuda.function.Module()
    module.load_file(os.path.join(folder, name + ".ptx"))
    kernel = module.get_function(entry["entry"])
    worst, place = 0.0, 0
    for start in range(0, 2 ** 32, run):
        values = {"array": out.data_ptr(), "scalar": numpy.uint32(start)}
        arguments = tuple(
            numpy.uint64(values[kind]) if kind == "array" else values[kind] for kind in entry["parameters"]
        )
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        with stream:
            kernel((entry["blocks"],), (entry["lanes"],), arguments, shared_mem=entry["sharedBytes"])
        bits = torch.arange(start, start + run, device="cuda", dtype=torch.int64)
        bits = torch.where(bits >= 2 ** 31, bits - 2 ** 32, bits).to(torch.int32)
        x = bits.view(torch.float32).double()
        off = errors(out.double(), references[name](x))
        most, index = off.max(0)
        if most.item() > worst:
            worst, place = most.item(), start + index.item()
    ok = worst <= entry["ulp"]
    failed |= not ok
    print(f"{'ok  ' if ok else 'FAIL'} {name:9} {worst:8.4f} ulp at 0x{place:08x}, bound {entry['ulp']}", flush=True)
sys.exit(1 if failed else 0)
