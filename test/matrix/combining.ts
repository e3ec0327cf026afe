/** Reductions, scans, searches and sorts of every format, along every axis, with odd extents. */
import {
  acceptsArg,
  acceptsReduce,
  acceptsScan,
  acceptsSort,
  argFunctions,
  reduceFunctions,
  scanFunctions,
} from "../../src/formats/arithmetic/functions.ts";
import { i32, isFloat } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { tensor, iota, kernel } from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import { exact, ulpOf } from "./case.ts";
import type { MatrixCase, Tolerance } from "./case.ts";
import { allFormats, methodsOf } from "./elementwise.ts";
import { anyNumbers, ordinaryNumbers } from "./inputs.ts";

const shapes: readonly (readonly number[])[] = [
  [64, 64],
  [6, 50],
  [3, 4, 20],
];

interface Axis {
  readonly outer: number;
  readonly length: number;
  readonly inner: number;
}

function axisOf(shape: readonly number[], axis: number): Axis {
  const product = (extents: readonly number[]): number =>
    extents.reduce((all, each) => all * each, 1);
  return {
    outer: product(shape.slice(0, axis)),
    length: shape[axis] ?? 1,
    inner: product(shape.slice(axis + 1)),
  };
}

/** Unit roundoff of the format that sums are taken in. */
const roundoff = (dtype: DType): number => (dtype.name === "f64" ? 2 ** -53 : 2 ** -24);

/** Sums in any order: n - 1 roundings of at most the sum of magnitudes each, then one to the format. */
function sumTolerance(x: HostArray, axis: Axis, dtype: DType, upTo = false): Tolerance {
  const numbers = toNumbers(x);
  const lines = (index: number): { readonly from: number; readonly count: number } => {
    if (!upTo) {
      const inner = index % axis.inner;
      const outer = Math.floor(index / axis.inner);
      return { from: outer * axis.length * axis.inner + inner, count: axis.length };
    }
    const inner = index % axis.inner;
    const along = Math.floor(index / axis.inner) % axis.length;
    const outer = Math.floor(index / (axis.inner * axis.length));
    return { from: outer * axis.length * axis.inner + inner, count: along + 1 };
  };
  return {
    kind: "reference",
    of: (_, index) => {
      const { from, count } = lines(index);
      let value = 0;
      let magnitude = 0;
      for (let step = 0; step < count; step += 1) {
        const term = numbers[from + step * axis.inner] ?? NaN;
        value += term;
        magnitude += Math.abs(term);
      }
      const error = magnitude * Math.max(1, count) * roundoff(dtype);
      return { value, bound: error + ulpOf(dtype, Math.abs(value) + error) / 2 };
    },
  };
}

/** Products in any order: every step is rounded, relatively. */
function productUlp(length: number): Tolerance {
  return { kind: "ulp", ulp: length + 1 };
}

const methods: { readonly [fn: string]: string } = {
  sum: "sum",
  prod: "prod",
  min: "min",
  max: "max",
};

function reduceCases(): readonly MatrixCase[] {
  return reduceFunctions.flatMap((fn) =>
    allFormats
      .filter((dtype) => acceptsReduce(fn, dtype))
      .flatMap((dtype, seed) =>
        shapes.flatMap((shape) => shape.map((_, axis) => reduceCase(fn, dtype, shape, axis, seed))),
      ),
  );
}

function reduceCase(
  fn: string,
  dtype: DType,
  shape: readonly number[],
  axis: number,
  seed: number,
): MatrixCase {
  return {
    name: `reduce ${fn} ${dtype.name} [${shape.join(", ")}] axis ${axis}`,
    prepare: () => {
      const rounded = isFloat(dtype) && (fn === "sum" || fn === "prod");
      const x = rounded ? ordinaryNumbers(dtype, shape, seed) : anyNumbers(dtype, shape, seed);
      const along = axisOf(shape, axis);
      const tolerance = !rounded
        ? exact
        : fn === "sum"
          ? sumTolerance(x, along, dtype)
          : productUlp(along.length);
      return {
        definition: kernel(
          {
            name: "reduced",
            inputs: { x: tensor(dtype, shape) },
            outputs: { out: tensor(dtype, shape.toSpliced(axis, 1)) },
          },
          ({ x: source, out }) => {
            const own = methodsOf(source.load());
            const method = methods[fn];
            const value =
              method === undefined ? own["reduce"]?.(fn, { axis }) : own[method]?.({ axis });
            out.store(value as never);
          },
        ),
        inputs: { x },
        tolerance,
      };
    },
  };
}

/** All axes at once give a scalar. */
function wholeCases(): readonly MatrixCase[] {
  return allFormats
    .filter((dtype) => acceptsReduce("sum", dtype))
    .map((dtype, seed) => ({
      name: `reduce to a scalar ${dtype.name}`,
      prepare: () => {
        const x = ordinaryNumbers(dtype, [40, 24], seed);
        const all = { outer: 1, length: 960, inner: 1 };
        return {
          definition: kernel(
            {
              name: "whole",
              inputs: { x: tensor(dtype, [40, 24]) },
              outputs: { out: tensor(dtype, [1]) },
            },
            ({ x: source, out }) => {
              out.store(source.load().sum());
            },
          ),
          inputs: { x },
          tolerance: isFloat(dtype) ? sumTolerance(x, all, dtype) : exact,
        };
      },
    }));
}

function scanCases(): readonly MatrixCase[] {
  return scanFunctions.flatMap((fn) =>
    allFormats
      .filter((dtype) => acceptsScan(fn, dtype))
      .flatMap((dtype, seed) =>
        [0, 1].flatMap((axis) =>
          [false, true].map((reverse): MatrixCase => ({
            name: `scan ${fn} ${dtype.name} axis ${axis}${reverse ? " reverse" : ""}`,
            prepare: () => {
              const shape = [6, 50];
              const rounded = isFloat(dtype) && (fn === "sum" || fn === "prod");
              const x = rounded
                ? ordinaryNumbers(dtype, shape, seed)
                : anyNumbers(dtype, shape, seed);
              const along = axisOf(shape, axis);
              const tolerance = !rounded
                ? exact
                : fn === "prod"
                  ? productUlp(along.length)
                  : scanTolerance(x, along, dtype, reverse);
              return {
                definition: kernel(
                  {
                    name: "scanned",
                    inputs: { x: tensor(dtype, shape) },
                    outputs: { out: tensor(dtype, shape) },
                  },
                  ({ x: source, out }) => {
                    out.store(methodsOf(source.load())[`cum${fn}`]?.({ axis, reverse }) as never);
                  },
                ),
                inputs: { x },
                tolerance,
              };
            },
          })),
        ),
      ),
  );
}

function scanTolerance(x: HostArray, axis: Axis, dtype: DType, reverse: boolean): Tolerance {
  if (!reverse) return sumTolerance(x, axis, dtype, true);
  const numbers = toNumbers(x);
  return {
    kind: "reference",
    of: (_, index) => {
      const along = Math.floor(index / axis.inner) % axis.length;
      let value = 0;
      let magnitude = 0;
      for (let step = along; step < axis.length; step += 1) {
        const term = numbers[index + (step - along) * axis.inner] ?? NaN;
        value += term;
        magnitude += Math.abs(term);
      }
      const error = magnitude * (axis.length - along) * roundoff(dtype);
      return { value, bound: error + ulpOf(dtype, Math.abs(value) + error) / 2 };
    },
  };
}

function searchCases(): readonly MatrixCase[] {
  return argFunctions.flatMap((fn) =>
    allFormats
      .filter((dtype) => acceptsArg(fn, dtype))
      .flatMap((dtype, seed) =>
        [0, 1].map((axis): MatrixCase => ({
          name: `${fn} ${dtype.name} axis ${axis}`,
          prepare: () => ({
            definition: kernel(
              {
                name: "searched",
                inputs: { x: tensor(dtype, [20, 33]) },
                outputs: { out: tensor(i32, axis === 0 ? [33] : [20]) },
              },
              ({ x, out }) => {
                out.store(methodsOf(x.load())[fn]?.({ axis }) as never);
              },
            ),
            inputs: { x: anyNumbers(dtype, [20, 33], seed) },
            tolerance: exact,
          }),
        })),
      ),
  );
}

/** The index among all elements, and one with its axis kept. */
function wholeSearchCases(): readonly MatrixCase[] {
  return argFunctions.flatMap((fn) =>
    allFormats
      .filter((dtype) => acceptsArg(fn, dtype))
      .map((dtype, seed): MatrixCase => ({
        name: `${fn} ${dtype.name} of all elements`,
        prepare: () => ({
          definition: kernel(
            {
              name: "searchedWhole",
              inputs: { x: tensor(dtype, [5, 4, 33]) },
              outputs: { out: tensor(i32, [1]), kept: tensor(i32, [5, 1, 33]) },
            },
            ({ x, out, kept }) => {
              const tile = methodsOf(x.load());
              out.store(tile[fn]?.() as never);
              kept.store(tile[fn]?.({ axis: 1, keepDims: true }) as never);
            },
          ),
          inputs: { x: anyNumbers(dtype, [5, 4, 33], seed) },
          tolerance: exact,
        }),
      })),
  );
}

function sortCases(): readonly MatrixCase[] {
  return allFormats.filter(acceptsSort).flatMap((dtype, seed) =>
    [false, true].flatMap((descending) =>
      [
        { shape: [10, 33], axis: 1 },
        { shape: [64, 6], axis: 0 },
      ].map(({ shape, axis }): MatrixCase => ({
        name: `sort ${dtype.name} [${shape.join(", ")}]${descending ? " descending" : ""}`,
        prepare: () => ({
          definition: kernel(
            {
              name: "sorted",
              inputs: { x: tensor(dtype, shape) },
              outputs: { out: tensor(dtype, shape), order: tensor(i32, shape) },
            },
            ({ x, out, order }) => {
              const [keys, places] = (
                x.load() as unknown as {
                  sortWith(payloads: readonly Tile[], options: object): readonly Tile[];
                }
              ).sortWith([iota(i32, shape, { axis })], { axis, descending });
              out.store(keys as never);
              order.store(places as never);
            },
          ),
          inputs: { x: ordinaryNumbers(dtype, shape, seed) },
          tolerance: exact,
        }),
      })),
    ),
  );
}

export function combiningCases(): readonly MatrixCase[] {
  return [
    ...reduceCases(),
    ...wholeCases(),
    ...scanCases(),
    ...searchCases(),
    ...wholeSearchCases(),
    ...sortCases(),
  ];
}
