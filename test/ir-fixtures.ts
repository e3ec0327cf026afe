/**
 * Small pieces of IR for tests of inference and verification. Every op is written at `here`, in a kernel
 * with grid axes i (in clusters of two) and j, two program threads and a dimension n.
 */
import { expect, test } from "vitest";
import type { DType } from "../src/formats/dtype.ts";
import { inferResults } from "../src/ir/infer/index.ts";
import type { InferContext } from "../src/ir/infer/index.ts";
import type { AnyOp, Op, Region, Value } from "../src/ir/node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "../src/ir/ops.ts";
import { dimension } from "../src/ir/size.ts";
import type { Size } from "../src/ir/size.ts";
import {
  barrierType,
  inflightType,
  refType,
  scalarType,
  semaphoreType,
  tileType,
  typeText,
} from "../src/ir/types.ts";
import type { MemorySpace, Type } from "../src/ir/types.ts";
import { TilewrightError } from "../src/support/diagnostics.ts";
import type { DiagnosticCode } from "../src/support/diagnostics.ts";
import { locationAt } from "../src/support/location.ts";
import type { Location } from "../src/support/location.ts";

export const here = locationAt("kernel.ts", 12, 3);
export const n = dimension("n", 8);

export const context: InferContext = {
  grid: [
    { name: "i", extent: 8, cluster: 2 },
    { name: "j", extent: 4, cluster: 1 },
  ],
  threads: ["producer", "consumer"],
  warps: 4,
  dimensions: [n],
};

/** The same kernel without clusters. */
export const single: InferContext = {
  ...context,
  grid: context.grid.map((axis) => ({ ...axis, cluster: 1 })),
};

let nextId = 0;

export function value(type: Type): Value {
  return Object.freeze({ id: nextId++, type });
}

export function scalar(dtype: DType): Value {
  return value(scalarType(dtype));
}

export function tile(dtype: DType, ...shape: readonly number[]): Value {
  return value(tileType(dtype, shape));
}

export function ref(space: MemorySpace, dtype: DType, ...shape: readonly Size[]): Value {
  return value(refType(space, dtype, shape));
}

export function barrier(count = 1, arrivals = 1): Value {
  return value(barrierType(count, arrivals));
}

export function semaphore(...shape: readonly Size[]): Value {
  return value(semaphoreType(shape));
}

export function inflight(dtype: DType, ...shape: readonly number[]): Value {
  return value(inflightType(dtype, shape));
}

/** A finished op with fresh results of the given types, checked by nobody. */
export function op<K extends OpKind>(
  kind: K,
  operands: OpOperands<K>,
  attributes: OpAttributes<K>,
  regions?: OpRegions<K>,
  results: readonly Value[] = [],
  location: Location = here,
): AnyOp {
  const node: Op<K> = {
    kind,
    operands: freezeSlots(operands),
    attributes: freezeSlots(attributes),
    regions: freezeSlots(regions ?? ({} as OpRegions<K>)),
    results: Object.freeze(results),
    location,
  };
  return Object.freeze(node) as unknown as AnyOp;
}

function freezeSlots<T extends object>(slots: T): T {
  for (const item of Object.values(slots) as unknown[])
    if (Array.isArray(item)) Object.freeze(item);
  return Object.freeze(slots);
}

export function region(parameters: readonly Value[], ops: readonly AnyOp[]): Region {
  return Object.freeze({ parameters: Object.freeze(parameters), ops: Object.freeze(ops) });
}

/** A region that takes values of some types and yields fresh ones of others. */
export function regionOf(parameters: readonly Type[], yielded: readonly Type[]): Region {
  return region(parameters.map(value), [op("yield", { values: yielded.map(value) }, {})]);
}

/** The texts of the types that inference gives. */
export function infer<K extends OpKind>(
  kind: K,
  operands: OpOperands<K>,
  attributes: OpAttributes<K>,
  regions?: OpRegions<K>,
  within: InferContext = context,
): readonly string[] {
  const draft = {
    kind,
    operands,
    attributes,
    regions: regions ?? ({} as OpRegions<K>),
    location: here,
  };
  return inferResults(draft, within).map(typeText);
}

/** A mistake and the report that it must give. */
export interface Mistake {
  readonly name: string;
  readonly code: DiagnosticCode;
  readonly make: () => unknown;
  /** The report's first line, whole. */
  readonly message: string;
  readonly expected?: string;
  readonly found?: string;
  /** A part of the remedy. */
  readonly remedy?: string;
  /** Where the report points; `here` by default. */
  readonly at?: Location;
  /** The notes' messages and places. */
  readonly notes?: readonly (readonly [string, Location])[];
}

export function reportOf(make: () => unknown): TilewrightError {
  try {
    make();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was reported");
}

/** One test for each mistake: code, text and place of its report. */
export function testMistakes(mistakes: readonly Mistake[]): void {
  for (const mistake of mistakes)
    test(`${mistake.code}: ${mistake.name}`, () => {
      const report = reportOf(mistake.make);
      expect(report.code, report.message).toBe(mistake.code);
      expect(report.summary).toBe(mistake.message);
      expect(report.position).toEqual((mistake.at ?? here).position);
      if (mistake.expected !== undefined) expect(report.expected).toBe(mistake.expected);
      if (mistake.found !== undefined) expect(report.found).toBe(mistake.found);
      if (mistake.remedy !== undefined) expect(report.remedy).toContain(mistake.remedy);
      if (mistake.notes !== undefined)
        expect(report.notes).toEqual(
          mistake.notes.map(([message, { position }]) => ({ message, position })),
        );
    });
}
