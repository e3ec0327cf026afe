/**
 * All windows of a kernel, by facts alone. Which bounds of a slice are tested is asked of whoever follows them: the stage
 * that decides it answers from facts, everybody after it from what the kernel says.
 */
import type { Kernel, KernelParameter, Op, OpOf, Value } from "../../ir/node.ts";
import type { WindowKind } from "../../ir/ops.ts";
import { isWindow } from "../../ir/traits.ts";
import type { Facts } from "../../ir/range-analysis/index.ts";
import { rowMajorSizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { product } from "../algebra/index-bits.ts";
import { rowMajor as storedByRows } from "../algebra/shared-layout.ts";
import { storedAs } from "../model/placed-types.ts";
import { refOf } from "../../ir/traverse.ts";
import { reshapeGlobal, reshapeShared } from "./reshape.ts";
import { sliceAxes, sliceShared } from "./slice.ts";
import type { AxisSlice, StatedBound, Testing } from "./slice.ts";
import { constantOf } from "../../ir/range-analysis/fact.ts";
import { factSums, liesInShared, transposeAxes, wholeAxes } from "./window.ts";
import type { GlobalBox, Index, MemoryWindow, SharedMove, Sides } from "./window.ts";

/** The sides on which facts do not prove a bound. */
export function unproved(
  facts: Facts,
  { start, count, size }: Omit<StatedBound<Index>, "axis" | "level">,
): Sides {
  return { low: start.fact.least < 0n, high: !facts.endsWithin(start.fact, count, size) };
}

export class WindowModel {
  readonly #facts: Facts;
  readonly #testing: (op: Op<"slice_ref">) => Testing<Index>;
  readonly #parameters: ReadonlyMap<Value, KernelParameter>;
  readonly #known = new Map<Value, MemoryWindow>();

  constructor(kernel: Kernel, facts: Facts, testing: (op: Op<"slice_ref">) => Testing<Index>) {
    this.#facts = facts;
    this.#testing = testing;
    this.#parameters = new Map(kernel.parameters.map((each) => [each.value, each]));
  }

  of(ref: Value): MemoryWindow {
    const known = this.#known.get(ref);
    if (known !== undefined) return known;
    const window = this.#make(ref);
    this.#known.set(ref, window);
    return window;
  }

  #make(ref: Value): MemoryWindow {
    const op = this.#facts.definitions.get(ref);
    if (op === undefined || !isWindow(op)) return this.#whole(ref);
    const rule = this.#rules[op.kind] as (op: OpOf<WindowKind>) => MemoryWindow;
    return rule(op);
  }

  readonly #rules: { readonly [K in WindowKind]: (op: Op<K>) => MemoryWindow } = {
    slice_ref: (op) => this.#slice(op),
    transpose_ref: ({ operands, attributes }) =>
      transposed(this.of(operands.ref), attributes.permutation),
    reshape_ref: ({ operands, attributes }) => reshaped(this.of(operands.ref), attributes.shape),
    peer_ref: ({ operands }) => onPeer(this.of(operands.ref)),
  };

  #whole(ref: Value): MemoryWindow {
    const { dtype, shape, space } = refOf(ref);
    if (space === "gmem") return wholeArray(ref, this.#parameters.get(ref)?.strides);
    const allocation = shape.map(Number);
    const layout = storedAs(this.#facts.definitions.get(ref)) ?? storedByRows;
    return {
      kind: "shared",
      dtype,
      allocation,
      layout,
      shape: allocation,
      strides: allocation.map((_, axis) => product(allocation.slice(axis + 1))),
      first: 0,
      moves: [],
      required: [],
      ofPeer: false,
    };
  }

  #slice(op: Op<"slice_ref">): MemoryWindow {
    const source = this.of(op.operands.ref);
    const { sizes, dropped } = op.attributes;
    const slices = op.operands.offsets.map((offset, axis): AxisSlice<Index> => ({
      offset: { fact: this.#facts.of(offset) },
      size: sizes[axis] ?? 1,
      dropped: dropped.includes(axis),
    }));
    const testing = this.#testing(op);
    if (source.kind !== "shared")
      return { ...source, ...sliceAxes(source, liesInShared(source), slices, factSums, testing) };
    return { ...source, ...sliceShared<Index, SharedMove>(source, slices, offsets, testing) };
  }
}

const offsets = {
  constant: ({ fact }: Index): number | undefined => {
    const constant = constantOf(fact);
    return constant === undefined ? undefined : Number(constant);
  },
  moveOf: (_: Index, move: SharedMove): SharedMove => move,
};

function wholeArray(ref: Value, strides: readonly Size[] | undefined): GlobalBox {
  const { dtype, shape } = refOf(ref);
  const steps = strides ?? rowMajorSizes(shape);
  return {
    kind: "global",
    dtype,
    moved: undefined,
    array: shape.map((extent, axis) => ({ extent, stride: steps[axis] ?? 1 })),
    ...wholeAxes(shape, factSums),
  };
}

function transposed(source: MemoryWindow, permutation: readonly number[]): MemoryWindow {
  if (source.kind !== "shared") return { ...source, axes: transposeAxes(source.axes, permutation) };
  const shape = transposeAxes(source.shape, permutation);
  return { ...source, shape, strides: transposeAxes(source.strides, permutation) };
}

function reshaped(source: MemoryWindow, shape: readonly Size[]): MemoryWindow {
  if (source.kind === "shared") {
    const view = reshapeShared(source, shape);
    if (view !== undefined) return { ...source, ...view };
  }
  if (source.kind === "global") {
    const box = reshapeGlobal(source, shape, factSums);
    if (box !== undefined) return { ...source, ...box };
  }
  return { kind: "reshaped", dtype: source.dtype, source, shape, ...wholeAxes(shape, factSums) };
}

function onPeer(source: MemoryWindow): MemoryWindow {
  if (source.kind === "reshaped") return { ...source, source: onPeer(source.source) };
  if (source.kind === "global") throw new Error("a peer has shared memory alone");
  return { ...source, ofPeer: true };
}
