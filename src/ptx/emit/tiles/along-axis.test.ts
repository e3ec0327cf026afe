/** Scans and sorts on random layouts and shapes, run on lanes, against the simulator's arithmetic. */
import { test } from "vitest";
import { layoutOf } from "../../../../test/layout-oracle.ts";
import {
  all,
  axisOf,
  cases,
  laneCodes,
  numbers,
  outcome,
  randomElements,
  same,
} from "../../../../test/support/tile-cases.ts";
import type { Case } from "../../../../test/support/tile-cases.ts";
import { expectTile } from "../../../../test/support/tile-rules.ts";
import type { RuleRun } from "../../../../test/support/tile-rules.ts";
import { scanElements, sortElements } from "../../../formats/arithmetic/index.ts";
import { scanFunctions } from "../../../formats/arithmetic/functions.ts";
import { allocateElements, i32 } from "../../../formats/dtype.ts";
import type { DType, Elements } from "../../../formats/dtype.ts";
import type { Value } from "../../../ir/node.ts";
import { topK } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { Random } from "../../../support/random.ts";
import { registersPerLane } from "../../../layout/algebra/register-layout.ts";

cases("scan", numbers, 20, false, (one) => {
  const { random, dtype, shape, lanes, read, about } = one;
  const fn = random.pick(scanFunctions.filter((each) => each !== "prod" || dtype.kind !== "float"));
  const axis = random.below(shape.length);
  const reverse = random.below(2) === 1;
  const names = { sum: "cumsum", prod: "cumprod", min: "cummin", max: "cummax" } as const;
  const run = outcome(
    one,
    (x: never) =>
      (x as Record<string, (options: object) => unknown>)[names[fn]]?.({ axis, reverse }),
    "scan",
    [read],
  );
  const target = allocateElements(dtype, lanes.length);
  scanElements(fn, dtype, lanes, axisOf(shape, [axis]), target, reverse);
  expectTile(
    run,
    run.results[0],
    { dtype, shape, codes: laneCodes(dtype, target) },
    `${about}, ${fn} ${axis} ${reverse}`,
    same,
  );
  return run;
});

/** Networks over more registers take long to run, and are no different. */
const mostRegisters = 16;

cases("sort", numbers, 20, true, (one) => {
  const { random, dtype, shape, lanes, read, about } = one;
  if (registersPerLane(read, shape) > mostRegisters) return undefined;
  const axis = random.below(shape.length);
  const descending = random.below(2) === 1;
  const run = outcome(
    one,
    (x: { sort(options: object): unknown }) => x.sort({ axis, descending }),
    "sort",
    [read],
  );
  const keys = lanes.slice() as Elements;
  sortElements(dtype, keys, [], axisOf(shape, [axis]), descending);
  expectTile(
    run,
    run.results[0],
    { dtype, shape, codes: laneCodes(dtype, keys) },
    `${about}, ${axis} ${descending}`,
    same,
  );
  return run;
});

cases("sort of the first", numbers, 30, true, (one) => {
  const { random, shape, read } = one;
  if (registersPerLane(read, shape) > mostRegisters) return undefined;
  const axis = random.below(shape.length);
  const least = random.below(2) === 1;
  return firstOf(one, { axis, least, count: 1 + random.below(shape[axis] ?? 1) });
});

test("the first, kept in registers, where the lowest places lie in lanes", () => {
  const shape = [256];
  const bits = ["L0", "L1", "L2", "L3", "L4", "R0", "R1", "R2"];
  const read = layoutOf({ kind: "axes", axes: [bits] });
  const random = new Random(1);
  const one = { random, dtype: i32, shape, source: read, read, oneWarp: true, about: read.text };
  const lanes = randomElements(random, i32, 256, false);
  for (const count of [2, 4, 8]) firstOf({ ...one, lanes }, { axis: 0, least: true, count });
});

interface FirstOptions {
  readonly axis: number;
  readonly least: boolean;
  readonly count: number;
}

function firstOf(one: Case, { axis, least, count }: FirstOptions): RuleRun {
  const { dtype, shape, lanes, read, about } = one;
  const extent = shape[axis] ?? 1;
  const body = (x: never) => topK(x as Tile, count, { axis, largest: !least });
  const run = outcome(one, body, "sort", [read, read]);
  const keys = lanes.slice() as Elements;
  const along = axisOf(shape, [axis]);
  const places = Int32Array.from(
    { length: lanes.length },
    (_, lane) => Math.floor(lane / along.inner) % extent,
  );
  sortElements(dtype, keys, [places], along, !least);
  // What is kept of all that were sorted repeats along the axis.
  const kept = Math.min(2 ** Math.ceil(Math.log2(count)), extent);
  const repeated = (codes: readonly bigint[]): readonly bigint[] =>
    codes.map((_, lane) => {
      const number = Math.floor(lane / along.inner) % extent;
      return codes[lane - (number - (number % kept)) * along.inner] ?? 0n;
    });
  const text = `${about}, ${count} along ${axis}`;
  const sorted = { dtype, shape, codes: repeated(laneCodes(dtype, keys)) };
  expectTile(run, run.results[0], sorted, text, same);
  const numbered = { dtype: i32, shape, codes: repeated(laneCodes(i32, places)) };
  expectTile(run, run.results[1], numbered, text);
  return run;
}

cases("sort with payloads", numbers, 20, true, (one) => {
  const { random, dtype, shape, lanes, read, about } = one;
  if (registersPerLane(read, shape) > mostRegisters) return undefined;
  const axis = random.below(shape.length);
  const descending = random.below(2) === 1;
  const other = random.pick(all);
  const payload = randomElements(random, other, lanes.length, false);
  const run = outcome(
    one,
    (x: {
      sortWith(payloads: readonly unknown[], options: object): unknown;
      cast(to: DType): unknown;
    }) => x.sortWith([x.cast(other)], { axis, descending }),
    "sort",
    [read, read],
    [
      {
        value: (op) => (op.operands as { payloads: Value[] }).payloads[0] as Value,
        codes: { dtype: other, shape, codes: laneCodes(other, payload) },
        layout: one.source,
      },
    ],
  );
  const keys = lanes.slice() as Elements;
  const moved = payload.slice() as Elements;
  sortElements(dtype, keys, [moved], axisOf(shape, [axis]), descending);
  expectTile(run, run.results[0], { dtype, shape, codes: laneCodes(dtype, keys) }, about, same);
  expectTile(run, run.results[1], { dtype: other, shape, codes: laneCodes(other, moved) }, about);
  return run;
});
