/**
 * How far functions of f32 are from the exact results on a device: for all 2^32 operands, against those of f64 on the same device, whose
 * own errors are far smaller. Of bf16 and f16 all 65,536 numbers, before what f64 gives is rounded. Prints the largest error of each in
 * units in the last place, beside its bound, as JSON with --json; fails where one is beyond.
 *
 *   tilewright run bench/gpu/function-errors.ts --device gpu              all of them, some seconds
 *   tilewright run bench/gpu/function-errors.ts --device gpu -- exp log   these
 *   tilewright run bench/gpu/function-errors.ts --device emulator -- exp --every 65536
 */
import process from "node:process";
import { parseArgs } from "node:util";
import {
  bf16,
  cdiv,
  f16,
  f32,
  f64,
  full,
  i64,
  iota,
  kernel,
  scalar,
  slice,
  tensor,
  toNumbers,
  u16,
  u32,
} from "tilewright";
import type { Device, DType, Tile } from "tilewright";
import { halfFunctions, mathBounds } from "../../src/ptx/math/index.ts";

/** Operands of a launch, and of a block. */
const run = 2 ** 26;
const block = 1024;

const methods = {
  exp: "exp",
  exp2: "exp2",
  expm1: "expm1",
  log: "log",
  log2: "log2",
  log1p: "log1p",
  sin: "sin",
  cos: "cos",
  tan: "tan",
  atan: "atan",
  asin: "asin",
  acos: "acos",
  tanh: "tanh",
  sinh: "sinh",
  cosh: "cosh",
  asinh: "asinh",
  acosh: "acosh",
  atanh: "atanh",
  cbrt: "cbrt",
  erf: "erf",
  erf_inv: "erfInv",
  erfc: "erfc",
  logistic: "logistic",
  rsqrt: "rsqrt",
} as const;
type Name = keyof typeof methods;

/** What a format's numbers are made of, and where results round to infinity. */
const formats = {
  f32: { dtype: f32, fraction: 23, least: -126, greatest: (2 - 2 ** -23) * 2 ** 127 },
  bf16: { dtype: bf16, fraction: 7, least: -126, greatest: (2 - 2 ** -7) * 2 ** 127 },
  f16: { dtype: f16, fraction: 10, least: -14, greatest: 65504 },
} as const;
type Format = (typeof formats)[keyof typeof formats];

/** Units in the last place between results and exact ones; infinite where one of them is special and the other is not. */
function unitsOff(found: Tile<"f64">, exact: Tile<"f64">, format: Format): Tile<"f64"> {
  const { fraction, least, greatest } = format;
  const exponent = exact
    .bitcast(i64)
    .shr(52)
    .and(0x7ff)
    .maximum(least + 1023);
  const unit = exponent.sub(fraction).shl(52).bitcast(f64);
  const off = found.sub(exact).abs().div(unit);
  const overflows = exact.abs().ge(greatest * (1 + 2 ** -(fraction + 2)));
  const wanted = overflows.select(exact.sign().mul(Infinity), exact);
  const isSame = wanted.eq(found).or(wanted.isNan().and(found.isNan()));
  // Within a unit of overflowing either side is the neighbour of the right one.
  const isNear = exact
    .abs()
    .gt(greatest * (1 - 2 ** -(fraction - 1)))
    .and(found.isNan().not());
  const special = isSame.or(isNear).select(full(f64, [block], 0), Infinity);
  return wanted.isFinite().and(found.isFinite()).select(off, special) as Tile<"f64">;
}

/** The largest error of each block of a run of codes, from `base` on, `step` apart. */
function errorKernel(fn: Name, format: Format, count: number) {
  const { dtype } = format;
  const code = dtype.bits === 16 ? u16 : u32;
  return kernel(
    {
      name: `errors_${fn}_${dtype.name}`,
      grid: { i: cdiv(count, block) },
      inputs: { base: scalar(u32), step: scalar(u32) },
      outputs: { worst: tensor(f64, [cdiv(count, block)]) },
    },
    ({ i, base, step, worst }) => {
      const place = iota(u32, [block], { axis: 0 }).add(i.mul(block).cast(u32));
      const bits = place
        .mul(step)
        .add(base)
        .cast(code as DType<"u32">);
      const x = bits.bitcast(dtype as DType<"f32">);
      const found = x[methods[fn]]().cast(f64);
      const exact = x.cast(f64)[methods[fn]]();
      worst.at(slice(i, 1)).store(unitsOff(found, exact, format).max({ axis: 0, keepDims: true }));
    },
  );
}

async function worstOf(device: Device, fn: Name, format: Format, every: number): Promise<number> {
  const codes = 2 ** format.dtype.bits;
  const count = Math.min(run, codes / every);
  const errors = errorKernel(fn, format, count);
  let worst = 0;
  for (let base = 0; base < codes; base += count * every) {
    const { worst: found } = await device.run(errors, { base, step: every });
    for (const each of toNumbers(found)) if (!(each <= worst)) worst = each;
  }
  return worst;
}

export async function main(device: Device): Promise<void> {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(2),
    allowPositionals: true,
    options: { every: { type: "string", default: "1" }, json: { type: "boolean", default: false } },
  });
  const names = (Object.keys(methods) as Name[]).filter(
    (fn) => positionals.length === 0 || positionals.includes(fn),
  );
  const found: { [name: string]: number } = {};
  const report = (name: string, worst: number, bound: number): void => {
    if (!(worst <= bound)) process.exitCode = 1;
    found[name] = Math.round(worst * 1000) / 1000;
    if (!values.json)
      console.log(`${name}: ${worst.toFixed(3)} of ${bound}${worst <= bound ? "" : ", BEYOND"}`);
  };
  for (const fn of names)
    report(
      fn,
      await worstOf(device, fn, formats.f32, Number(values.every)),
      mathBounds.f32[fn].ulp,
    );
  for (const format of ["bf16", "f16"] as const)
    for (const fn of names) {
      const isHalf = (halfFunctions as readonly string[]).includes(fn);
      report(
        `${fn} ${format}`,
        await worstOf(device, fn, formats[format], 1),
        isHalf ? 0.63 : 0.51,
      );
    }
  if (values.json) console.log(JSON.stringify(found, undefined, 2));
}
