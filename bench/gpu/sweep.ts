/**
 * Kernels that evaluate each f32 function on a run of consecutive bit patterns, written as PTX into a folder
 * for `sweep.py`, which runs them over all 2^32 operands and compares with float64.
 *
 *   tilewright run bench/gpu/sweep.ts -- FOLDER && python3 bench/gpu/sweep.py FOLDER
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tensor, cdiv, f32, iota, kernel, scalar, slice, u32 } from "tilewright";
import type { Tile } from "tilewright";
import { mathBounds } from "../../src/ptx/math/index.ts";
import { printPtx } from "../../src/ptx/printer.ts";
import { targets } from "../../src/targets/target.ts";
import { lower } from "../../src/lower/stages.ts";

/** Operands of a launch. */
const run = 1 << 26;
const block = 1024;

const functions = [
  "exp",
  "exp2",
  "expm1",
  "log",
  "log2",
  "log1p",
  "sin",
  "cos",
  "tan",
  "atan",
  "asin",
  "acos",
  "tanh",
  "sinh",
  "cosh",
  "asinh",
  "acosh",
  "atanh",
  "cbrt",
  "erf",
  "erfInv",
  "erfc",
  "logistic",
  "rsqrt",
] as const;

const folder = process.argv.at(-1) ?? ".";
mkdirSync(folder, { recursive: true });
const entries = functions.map((fn) => {
  const { kernel: traced } = kernel(
    {
      name: fn,
      grid: { i: cdiv(run, block) },
      inputs: { base: scalar(u32) },
      outputs: { out: tensor(f32, [run]) },
    },
    ({ i, base, out }) => {
      const start = i.mul(block);
      const bits = iota(u32, [block], { axis: 0 }).add(base).add(start.cast(u32));
      const x: Tile<"f32"> = bits.bitcast(f32);
      out.at(slice(start, block)).store(x[fn]());
    },
  );
  const executable = lower(traced, targets.sm_90a);
  writeFileSync(join(folder, `${fn}.ptx`), printPtx(executable.module));
  const parameters = executable.parameters.map((each) => each.kind);
  const { entry, threadsPerBlock: lanes, sharedBytes } = executable;
  return {
    fn,
    entry,
    lanes,
    sharedBytes,
    parameters,
    blocks: run / block,
    ulp: mathBounds.f32[fn === "erfInv" ? "erf_inv" : fn].ulp,
  };
});
writeFileSync(join(folder, "sweep.json"), JSON.stringify({ run, entries }, undefined, 2));
