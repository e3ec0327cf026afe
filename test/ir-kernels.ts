/**
 * Kernels for tests of the verifier: `kernelOf` takes a body as it is, `verifyBuilt` writes one with the
 * Builder, `accumulating` one that has what wgmma needs.
 */
import { bf16, bool, f32, i32 } from "../src/formats/dtype.ts";
import { Builder } from "../src/ir/builder.ts";
import type { Kernel, KernelParameter, Region, Value } from "../src/ir/node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "../src/ir/ops.ts";
import { inflightType, scalarType } from "../src/ir/types.ts";
import type { Type } from "../src/ir/types.ts";
import { verifyKernel } from "../src/ir/verify/index.ts";
import { locationAt } from "../src/support/location.ts";
import type { Location } from "../src/support/location.ts";
import { context, here, op, region } from "./ir-fixtures.ts";

/** Other places than `here`, for reports that name several. */
export const there = locationAt("kernel.ts", 20, 5);
export const elsewhere = locationAt("kernel.ts", 30, 7);
/** Where kernels are declared. */
export const header = locationAt("kernel.ts", 1, 1);

export const stop = op("yield", { values: [] }, {});
export const empty = region([], [stop]);

export function kernelOf(body: Region, changes: Partial<Kernel> = {}): Kernel {
  return { name: "k", ...context, parameters: [], body, location: header, ...changes };
}

type Add = <K extends OpKind>(
  kind: K,
  operands: OpOperands<K>,
  attributes: OpAttributes<K>,
  regions?: OpRegions<K>,
  location?: Location,
) => readonly Value[];

export interface Writer {
  readonly add: Add;
  /** A region written by `write`, which returns what it yields. */
  readonly nested: (
    types: readonly Type[],
    write: (...parameters: readonly Value[]) => readonly Value[],
  ) => Region;
  readonly index: Value;
  readonly flag: Value;
}

/** Verifies a kernel that the builder accepts. */
export function verifyBuilt(write: (writer: Writer) => void): void {
  const builder = new Builder(context);
  const [index, flag] = builder.openRegion([scalarType(i32), scalarType(bool)]);
  if (index === undefined || flag === undefined) throw new Error("two parameters");
  const add: Add = (kind, operands, attributes, regions, location = here) =>
    builder.add(kind, operands, attributes, regions ?? ({} as OpRegions<typeof kind>), location);
  write({
    add,
    nested: (types, body) => {
      const parameters = builder.openRegion(types);
      return builder.closeRegion(body(...parameters), here);
    },
    index,
    flag,
  });
  const parameters: readonly KernelParameter[] = [
    { name: "index", role: "scalar", value: index },
    { name: "flag", role: "scalar", value: flag },
  ];
  verifyKernel(kernelOf(builder.closeRegion([], here), { parameters }));
}

export function only(values: readonly Value[]): Value {
  const [value] = values;
  if (value === undefined) throw new Error("no result");
  return value;
}

export const accumulatorType = inflightType(f32, [64, 8]);

export function accumulator({ add }: Writer, location?: Location): Value {
  return only(add("accumulator", {}, { dtype: f32, shape: [64, 8] }, {}, location));
}

/** Adds a product to the accumulator. */
export function multiply(writer: Writer, from: Value, location?: Location): Value {
  const a = only(writer.add("constant", {}, { value: 0, dtype: bf16, shape: [64, 16] }));
  return only(writer.add("wgmma", { accumulator: from, a, b: shared(writer) }, {}, {}, location));
}

const sharedB = new WeakMap<Writer, Value>();

/** The kernel's one shared operand; `accumulating` allocates it before any region opens. */
function shared(writer: Writer): Value {
  const b = sharedB.get(writer);
  if (b === undefined) throw new Error("allocate first");
  return b;
}

export function accumulating(write: (writer: Writer) => void): () => void {
  return () =>
    verifyBuilt((writer) => {
      const attributes = { space: "smem", dtype: bf16, shape: [16, 8] } as const;
      sharedB.set(writer, only(writer.add("alloc", {}, attributes)));
      write(writer);
    });
}

export function wait({ add }: Writer, from: Value, location?: Location): Value {
  return only(
    add("wgmma_wait", { accumulator: from }, { pending: 0, gives: "tile" }, {}, location),
  );
}
