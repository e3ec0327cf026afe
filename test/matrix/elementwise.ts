/** Every elementwise function with every format that has it. */
import {
  acceptsBinary,
  acceptsClassify,
  acceptsCompare,
  acceptsFused,
  acceptsUnary,
  binaryFunctions,
  classifyFunctions,
  comparePredicates,
  unaryFunctions,
} from "../../src/formats/arithmetic/functions.ts";
import type { UnaryFunction } from "../../src/formats/arithmetic/functions.ts";
import { conversionChoices } from "../../src/formats/conversion-rules.ts";
import { bool, dtypes, isFloat } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import type { ConversionOptions } from "../../src/formats/floats.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { methodName } from "../../src/ir/op-names.ts";
import {
  tensor,
  castStochastic,
  cdiv,
  constant,
  full,
  iota,
  kernel,
  slice,
} from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import { mathBounds } from "../../src/ptx/math/index.ts";
import type { ErrorBound } from "../../src/ptx/math/index.ts";
import { exact } from "./case.ts";
import type { Arrays, MatrixCase, Tolerance } from "./case.ts";
import { anyNumbers, numbersBetween, ordinaryNumbers } from "./inputs.ts";

export const allFormats: readonly DType[] = Object.values(dtypes);

const length = 1000;
const block = 512;

type Values = { readonly [name: string]: Tile };
/** Methods by name, as the functions are listed by name. */
type Methods = { readonly [name: string]: (...values: readonly unknown[]) => Tile };

export const methodsOf = (value: unknown): Methods => value as Methods;

/** A kernel over rows of `length` elements, the last block of which overhangs. */
export function pointwise(
  name: string,
  inputs: Arrays,
  result: DType,
  compute: (values: Values) => Tile,
  tolerance: Tolerance,
): MatrixCase {
  return {
    name,
    prepare: () => ({
      definition: kernel(
        {
          name: "pointwise",
          grid: { i: cdiv(length, block) },
          inputs: Object.fromEntries(
            Object.entries(inputs).map(([key, { dtype }]) => [key, tensor(dtype, [length])]),
          ),
          outputs: { out: tensor(result, [length]) },
        },
        (things) => {
          const { i, out } = things;
          const refs = things as unknown as { readonly [key: string]: typeof out };
          const here = slice(i.mul(block), block);
          const values = Object.fromEntries(
            Object.keys(inputs).map((key) => [key, refs[key]?.at(here).load() as Tile]),
          );
          out.at(here).store(compute(values));
        },
      ),
      inputs,
      tolerance,
    }),
  };
}

const wideBound = { f32: mathBounds.f32, f64: mathBounds.f64 } as {
  readonly [width: string]: { readonly [fn: string]: ErrorBound | undefined };
};

/** What a function of a format may be off by: its bound in the width that it is computed in. */
function toleranceOf(fn: string, dtype: DType): Tolerance {
  const width = dtype.name === "f64" ? "f64" : "f32";
  const bound = isFloat(dtype) ? wideBound[width]?.[fn] : undefined;
  if (bound === undefined || bound.ulp === 0) return exact;
  // The simulator's own result is within one unit of f64, or rounded once to a narrower format.
  const ulp = dtype.name === "f64" ? bound.ulp + 1 : dtype.name === "f32" ? bound.ulp + 0.5 : 1;
  return { kind: "ulp", ulp };
}

const domains: { readonly [F in UnaryFunction]?: readonly [number, number] } = {
  acosh: [1, 60],
  asin: [-1, 1],
  acos: [-1, 1],
  atanh: [-1, 1],
  erf_inv: [-1, 1],
  log: [1e-6, 50],
  log2: [1e-6, 50],
  sqrt: [0, 60],
  rsqrt: [1e-6, 60],
};

function unaryCases(): readonly MatrixCase[] {
  return unaryFunctions.flatMap((fn) =>
    allFormats
      .filter((dtype) => acceptsUnary(fn, dtype))
      .flatMap((dtype, seed) => {
        const compute = ({ x }: Values): Tile => methodsOf(x)[methodName(fn)]?.() as Tile;
        const tolerance = toleranceOf(fn, dtype);
        const any = pointwise(
          `unary ${fn} ${dtype.name}`,
          { x: anyNumbers(dtype, [length], seed) },
          dtype,
          compute,
          tolerance,
        );
        const domain = domains[fn];
        if (domain === undefined) return [any];
        const inside = { x: numbersBetween(dtype, [length], domain, seed) };
        return [
          any,
          pointwise(`unary ${fn} ${dtype.name} positive`, inside, dtype, compute, tolerance),
        ];
      }),
  );
}

function binaryCases(): readonly MatrixCase[] {
  return binaryFunctions.flatMap((fn) =>
    allFormats
      .filter((dtype) => acceptsBinary(fn, dtype))
      .flatMap((dtype, seed) => {
        const compute = ({ x, y }: Values): Tile => methodsOf(x)[methodName(fn)]?.(y) as Tile;
        return (["any", "ordinary"] as const).map((kind) => {
          const make = kind === "any" ? anyNumbers : ordinaryNumbers;
          const inputs = {
            x: make(dtype, [length], 2 * seed),
            y: make(dtype, [length], 2 * seed + 7),
          };
          const name = `binary ${fn} ${dtype.name} ${kind}`;
          return pointwise(name, inputs, dtype, compute, toleranceOf(fn, dtype));
        });
      }),
  );
}

/** Functions that are made of others. */
function composedCases(): readonly MatrixCase[] {
  return (["remainder", "floorDivide", "nextAfter"] as const).flatMap((method) =>
    allFormats
      .filter((dtype) => acceptsBinary(method === "nextAfter" ? "atan2" : "rem", dtype))
      .flatMap((dtype, seed) =>
        [anyNumbers, ordinaryNumbers].map((make, kind) =>
          pointwise(
            `${method} ${dtype.name} ${kind === 0 ? "any" : "ordinary"}`,
            {
              x: make(dtype, [length], 2 * seed + 1),
              y: make(dtype, [length], 2 * seed + 8),
            },
            dtype,
            ({ x, y }) => methodsOf(x)[method]?.(y) as Tile,
            exact,
          ),
        ),
      ),
  );
}

/** Zeros of both signs, which compare equal and are told apart all the same. */
function zeroCases(): readonly MatrixCase[] {
  const zeros = (dtype: DType, signs: readonly number[]): HostArray =>
    fromNumbers(
      dtype,
      [length],
      Array.from({ length }, (_, index) => (signs[index % signs.length] ?? 1) * 0),
    );
  return (["min", "max", "fmin", "fmax"] as const).flatMap((fn) =>
    allFormats
      .filter((dtype) => isFloat(dtype) && acceptsBinary(fn, dtype))
      .map((dtype) =>
        pointwise(
          `binary ${fn} ${dtype.name} zeros`,
          { x: zeros(dtype, [1, -1, 1, -1]), y: zeros(dtype, [1, 1, -1, -1]) },
          dtype,
          ({ x, y }) => methodsOf(x)[methodName(fn)]?.(y) as Tile,
          exact,
        ),
      ),
  );
}

function testCases(): readonly MatrixCase[] {
  const compares = comparePredicates.flatMap((predicate) =>
    allFormats
      .filter((dtype) => acceptsCompare(predicate, dtype))
      .map((dtype, seed) =>
        pointwise(
          `compare ${predicate} ${dtype.name}`,
          {
            x: anyNumbers(dtype, [length], seed),
            y: anyNumbers(dtype, [length], seed % 3 === 0 ? seed : seed + 5),
          },
          bool,
          ({ x, y }) => methodsOf(x)[predicate]?.(y) as Tile,
          exact,
        ),
      ),
  );
  const classes = classifyFunctions.flatMap((fn) =>
    allFormats
      .filter((dtype) => acceptsClassify(fn, dtype))
      .map((dtype, seed) =>
        pointwise(
          `classify ${fn} ${dtype.name}`,
          { x: anyNumbers(dtype, [length], seed) },
          bool,
          ({ x }) => methodsOf(x)[methodName(fn)]?.() as Tile,
          exact,
        ),
      ),
  );
  return [...compares, ...classes];
}

function choiceCases(): readonly MatrixCase[] {
  const selects = allFormats.map((dtype, seed) =>
    pointwise(
      `select ${dtype.name}`,
      {
        condition: anyNumbers(bool, [length], seed),
        x: anyNumbers(dtype, [length], seed),
        y: anyNumbers(dtype, [length], seed + 3),
      },
      dtype,
      ({ condition, x, y }) => methodsOf(condition)["select"]?.(x, y) as Tile,
      exact,
    ),
  );
  const fused = allFormats.filter(acceptsFused).map((dtype, seed) =>
    pointwise(
      `fma ${dtype.name}`,
      {
        x: anyNumbers(dtype, [length], seed),
        y: anyNumbers(dtype, [length], seed + 1),
        z: anyNumbers(dtype, [length], seed + 2),
      },
      dtype,
      ({ x, y, z }) => methodsOf(x)["fma"]?.(y, z) as Tile,
      exact,
    ),
  );
  return [...selects, ...fused];
}

function casts(): readonly MatrixCase[] {
  return allFormats.flatMap((from, seed) =>
    allFormats.flatMap((to) => {
      const inputs = { x: anyNumbers(from, [length], seed) };
      return castChoices(from, to).map((choices) =>
        pointwise(
          ["cast", from.name, to.name, choices.overflow, choices.rounding]
            .filter(Boolean)
            .join(" "),
          inputs,
          to,
          ({ x }) => methodsOf(x)["cast"]?.(to, choices) as Tile,
          exact,
        ),
      );
    }),
  );
}

/** Formats that others pass through on their way: what is chosen for these is chosen for all. */
const roundedFormats: readonly DType[] = [
  dtypes.f32,
  dtypes.f64,
  dtypes.f16,
  dtypes.i32,
  dtypes.u64,
];

/** None, each alone, and each rounding with the bound of the format, which have instructions of their own. */
function castChoices(from: DType, to: DType): readonly ConversionOptions[] {
  const { overflows, roundings: all } = conversionChoices(from, to);
  const roundings = roundedFormats.includes(from) ? all : [];
  const bounded = isFloat(to) && overflows.includes("saturate") ? ["saturate" as const] : [];
  return [
    {},
    ...overflows.map((overflow) => ({ overflow })),
    ...roundings.map((rounding) => ({ rounding })),
    ...bounded.flatMap((overflow) => roundings.map((rounding) => ({ overflow, rounding }))),
  ];
}

function bitcasts(): readonly MatrixCase[] {
  return allFormats.flatMap((from, seed) =>
    allFormats
      .filter((to) => to.bits === from.bits && to.kind !== "bool" && from.kind !== "bool")
      .filter((to) => to.name !== "tf32" && from.name !== "tf32" && to !== from)
      .map((to) =>
        pointwise(
          `bitcast ${from.name} ${to.name}`,
          { x: anyNumbers(from, [length], seed) },
          to,
          ({ x }) => methodsOf(x)["bitcast"]?.(to) as Tile,
          exact,
        ),
      ),
  );
}

/** Casts that round by chance: of any number, by any bits. */
function chances(): readonly MatrixCase[] {
  const inputs = {
    x: anyNumbers(dtypes.f32, [length], 1),
    bits: anyNumbers(dtypes.u32, [length], 2),
  };
  return [dtypes.bf16, dtypes.f16].map((to) =>
    pointwise(
      `castStochastic f32 ${to.name}`,
      inputs,
      to,
      ({ x, bits }) => castStochastic(x as Tile<"f32">, to, bits as Tile<"u32">),
      exact,
    ),
  );
}

/** Constants and counting, which take no input. */
function made(): readonly MatrixCase[] {
  const numeric = allFormats.filter((dtype) => acceptsUnary("neg", dtype));
  const one = (dtype: DType): number | bigint | boolean =>
    dtype.kind === "bool" ? true : dtype.bits === 64 && !isFloat(dtype) ? 1n : 1;
  const constants = allFormats.map((dtype): MatrixCase => {
    return {
      name: `constant ${dtype.name}`,
      prepare: () => ({
        definition: kernel(
          { name: "constants", outputs: { a: tensor(dtype, [70]), b: tensor(dtype, [5, 24]) } },
          ({ a, b }) => {
            a.store(full(dtype, [70], one(dtype) as never));
            b.store(constant(dtype, one(dtype) as never));
          },
        ),
        inputs: {},
        tolerance: exact,
      }),
    };
  });
  const counts = numeric.flatMap((dtype) =>
    [0, 1].map((axis): MatrixCase => ({
      name: `iota ${dtype.name} axis ${axis}`,
      prepare: () => ({
        definition: kernel(
          { name: "counts", outputs: { out: tensor(dtype, [8, 6]) } },
          ({ out }) => {
            out.store(iota(dtype, [8, 6], { axis }));
          },
        ),
        inputs: {},
        tolerance: exact,
      }),
    })),
  );
  return [...constants, ...counts];
}

export function functionCases(): readonly MatrixCase[] {
  return [
    ...unaryCases(),
    ...binaryCases(),
    ...zeroCases(),
    ...composedCases(),
    ...testCases(),
    ...choiceCases(),
    ...made(),
  ];
}

export function castCases(): readonly MatrixCase[] {
  return [...casts(), ...chances(), ...bitcasts()];
}

export function elementwiseCases(): readonly MatrixCase[] {
  return [...functionCases(), ...castCases()];
}
