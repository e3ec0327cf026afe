/**
 * What an op takes by itself: instructions of lanes, products, and the clocks until what it gives is there.
 *
 *   binary %a, %b {fn = div}, f32 [1024], 128 lanes      8 elements a lane, as many instructions each as a division takes
 *
 * Of functions of elements whoever asks says what they take, since that follows from the instructions that are emitted for them.
 */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, OpOf, Value } from "../node.ts";
import { ruleOf } from "../ops.ts";
import type { SomeOpRules } from "../ops.ts";
import { operandValues } from "../traverse.ts";
import type { ProductFormat } from "./cost.ts";
import type { Access } from "./touched.ts";
import { productInstructions } from "../../targets/product-instructions.ts";

const { "mma.sync": fragments, wgmma: inFlight, tcgen05: tensor } = productInstructions;

/** What a lane executes for an element. */
export interface ElementCost {
  readonly instructions: number;
  /** Those that the special unit executes. */
  readonly special: number;
}

/** What an op of elements costs a lane, each element, where it is known which values are constants. */
export type InstructionCosts = (
  op: AnyOp,
  isConstant: (value: Value) => boolean,
) => ElementCost | undefined;

/** Clocks until what was asked for is there. */
export const latencies = {
  instruction: 4,
  shared: 30,
  cache: 280,
  memory: 600,
  /** Of a value through all lanes of a warp, and through shared memory from warp to warp. */
  shuffles: 120,
  exchange: 90,
  /** A barrier in shared memory, a barrier of the block, of a cluster, and what another block says. */
  barrier: 60,
  sync: 30,
  cluster: 350,
  semaphore: 1100,
};

export interface Expense {
  readonly elements: number;
  readonly instructions: number;
  readonly special: number;
  readonly products: number;
  readonly format: ProductFormat | undefined;
  readonly sharedBytes: number;
  readonly clocks: number;
  /** Registers of a lane that its operands and results take. */
  readonly registers: number;
}

/** Memory that an op reads or writes; what is asynchronous is not waited for. */
export interface Use {
  readonly access: Access;
  readonly way: "read" | "written" | "both";
  readonly isAsynchronous: boolean;
}

const nothing: Expense = {
  elements: 0,
  instructions: 0,
  special: 0,
  products: 0,
  format: undefined,
  sharedBytes: 0,
  clocks: 0,
  registers: 0,
};

function elementsOf({ type }: Value): number {
  if (type.kind !== "tile" && type.kind !== "inflight") return 1;
  return type.shape.reduce((product, extent) => product * extent, 1);
}

function bitsOf({ type }: Value): number {
  return type.kind === "tile" || type.kind === "scalar" || type.kind === "inflight"
    ? type.dtype.bits
    : 0;
}

function formatOf({ type }: Value, precision?: string): ProductFormat | undefined {
  const dtype: DType | undefined =
    type.kind === "tile" || type.kind === "ref" ? type.dtype : undefined;
  if (dtype === undefined) return undefined;
  if (dtype.bits === 64) return "f64";
  if (dtype.bits === 16) return "half";
  if (dtype.bits < 16) return "byte";
  return dtype.name === "tf32" || precision === "tf32" ? "tf32" : "f32";
}

function innerExtent({ type }: Value): number {
  const extent = type.kind === "tile" || type.kind === "ref" ? type.shape[1] : undefined;
  return typeof extent === "number" ? extent : 1;
}

function whole(ref: Value): Access {
  return { ref, indices: [], indexed: [], where: undefined };
}

function picked(
  op: OpOf<
    "load" | "store" | "atomic" | "atomic_load" | "atomic_store" | "atomic_compare_exchange"
  >,
  way: Use["way"],
): readonly Use[] {
  const { ref, indices, where } = op.operands;
  const access = { ref, indices, indexed: op.attributes.indexed ?? [], where };
  return [{ access, way, isAsynchronous: false }];
}

/** Memory that ops use. */
const uses: SomeOpRules<[], readonly Use[]> = {
  load: (op) => picked(op, "read"),
  atomic_load: (op) => picked(op, "read"),
  store: (op) => picked(op, "written"),
  atomic_store: (op) => picked(op, "written"),
  atomic: (op) => picked(op, "both"),
  atomic_compare_exchange: (op) => picked(op, "both"),
  copy_async: ({ operands }) => [
    { access: whole(operands.source), way: "read", isAsynchronous: true },
    { access: whole(operands.destination), way: "written", isAsynchronous: true },
  ],
  tcgen05_mma: ({ operands }) => factorsIn(operands),
  wgmma: ({ operands }) => factorsIn(operands),
};

/** What a product reads of shared memory by itself. */
function factorsIn({ a, b }: { readonly a: Value; readonly b: Value }): readonly Use[] {
  return [a, b].flatMap((ref): readonly Use[] =>
    ref.type.kind === "ref" && ref.type.space === "smem"
      ? [{ access: whole(ref), way: "read", isAsynchronous: true }]
      : [],
  );
}

function usesOf(op: AnyOp): readonly Use[] {
  return ruleOf(uses, op)?.(op) ?? [];
}

/** What an op takes on so many lanes that hold its tiles. */
export function expenseOf(
  op: AnyOp,
  lanes: number,
  costs: (op: AnyOp) => ElementCost | undefined,
): { readonly expense: Expense; readonly accesses: readonly Use[] } {
  const accesses = usesOf(op);
  const own = ownExpense(op, lanes, costs, accesses);
  const held = [...op.results, ...operandValues(op)].filter(({ type }) => type.kind !== "ref");
  const bits = held.reduce((sum, value) => {
    const perLane = elementsOf(value) / lanes;
    return perLane < 1 ? sum : sum + perLane * bitsOf(value);
  }, 0);
  return { expense: { ...own, registers: bits / 32 }, accesses };
}

function perLane(value: Value, lanes: number): number {
  return Math.ceil(elementsOf(value) / lanes);
}

function ownExpense(
  op: AnyOp,
  lanes: number,
  costs: (op: AnyOp) => ElementCost | undefined,
  accesses: readonly Use[],
): Expense {
  const [result] = op.results;
  const element = costs(op);
  if (element === undefined || result === undefined)
    return ruleOf(expenses, op)?.(op, lanes, accesses) ?? nothing;
  const each = perLane(result, lanes);
  const { instructions, special } = element;
  return {
    ...nothing,
    elements: elementsOf(result),
    instructions: each * lanes * instructions,
    special: each * lanes * special,
    clocks: Math.max(latencies.instruction * Math.min(instructions, 60), each * instructions),
  };
}

/** Instructions that move a tile from memory or to it. */
function moving(value: Value | undefined, lanes: number, accesses: readonly Use[]): Expense {
  if (value === undefined) return nothing;
  const each = perLane(value, lanes);
  const isPicked = accesses.some(({ access }) => access.indices.length > 0);
  // Neighbours are moved 16 bytes at a time; elements that are picked take an address each.
  const moves = isPicked ? 3 * each : 2 * Math.ceil((each * bitsOf(value)) / 128);
  return { ...nothing, elements: elementsOf(value), instructions: moves * lanes, clocks: moves };
}

/** Lanes of a warp that hand each other what they combine, and warps through shared memory. */
function combining(source: Value, lanes: number): Expense {
  const each = perLane(source, lanes);
  const handed = lanes > 32 ? latencies.shuffles + latencies.exchange : latencies.shuffles;
  return {
    ...nothing,
    elements: elementsOf(source),
    instructions: (2 * each + 12) * lanes,
    clocks: 2 * each + handed,
  };
}

/** A tile through shared memory. */
function rearranging(value: Value | undefined): Expense {
  if (value === undefined) return nothing;
  const count = elementsOf(value);
  return {
    ...nothing,
    elements: count,
    instructions: 2 * count,
    sharedBytes: (2 * count * bitsOf(value)) / 8,
    clocks: latencies.exchange,
  };
}

function waiting(clocks: number, instructions = 0): Expense {
  return { ...nothing, clocks, instructions };
}

const expenses: SomeOpRules<[lanes: number, accesses: readonly Use[]], Expense> = {
  load: ({ results }, lanes, accesses) => moving(results[0], lanes, accesses),
  atomic_load: ({ results }, lanes, accesses) => moving(results[0], lanes, accesses),
  atomic: ({ results }, lanes, accesses) => moving(results[0], lanes, accesses),
  atomic_compare_exchange: ({ results }, lanes, accesses) => moving(results[0], lanes, accesses),
  store: ({ operands }, lanes, accesses) => moving(operands.value, lanes, accesses),
  atomic_store: ({ operands }, lanes, accesses) => moving(operands.value, lanes, accesses),
  reduce: ({ operands }, lanes) => combining(operands.source, lanes),
  scan: ({ operands }, lanes) => combining(operands.source, lanes),
  arg_reduce: ({ operands }, lanes) => combining(operands.source, lanes),
  sort: ({ operands: { keys, payloads } }, lanes) => {
    const steps = Math.ceil(Math.log2(Math.max(2, elementsOf(keys)))) ** 2 / 2;
    const moved = steps * perLane(keys, lanes) * (1 + payloads.length);
    return {
      ...nothing,
      elements: elementsOf(keys),
      instructions: 4 * moved * lanes,
      sharedBytes: (moved * lanes * bitsOf(keys)) / 8,
      clocks: steps * latencies.shared,
    };
  },
  transpose: ({ results }) => rearranging(results[0]),
  concatenate: ({ results }) => rearranging(results[0]),
  dot: ({ operands: { left, right }, attributes: { precision }, results }) => {
    const k = innerExtent(left);
    const products = 2 * k * results.reduce((sum, each) => sum + elementsOf(each), 0);
    const bits = elementsOf(left) * bitsOf(left) + elementsOf(right) * bitsOf(right);
    return {
      ...nothing,
      elements: products,
      products,
      format: formatOf(left, precision),
      sharedBytes: (2 * bits) / 8,
      clocks: latencies.exchange + fragments.clocks() * Math.ceil(k / 16),
    };
  },
  scaled_dot: ({ operands: { left, right }, results }) => {
    const k = innerExtent(left);
    const products = 2 * k * results.reduce((sum, each) => sum + elementsOf(each), 0);
    const bits = elementsOf(left) * bitsOf(left) + elementsOf(right) * bitsOf(right);
    return {
      ...nothing,
      elements: products,
      products,
      format: formatOf(left, "native"),
      sharedBytes: (2 * bits) / 8,
      clocks: latencies.exchange + fragments.clocks() * Math.ceil(k / 32),
    };
  },
  tcgen05_mma: ({ operands: { sums, a } }) => {
    const [rows = 1, columns = 1] = sums.type.kind === "ref" ? sums.type.shape.map(Number) : [];
    const products = 2 * innerExtent(a) * rows * columns;
    return { ...nothing, products, format: formatOf(a), clocks: tensor.clocks(columns) };
  },
  wgmma: ({ operands: { accumulator, a } }) => {
    const products = 2 * innerExtent(a) * elementsOf(accumulator);
    return { ...nothing, products, format: formatOf(a), clocks: inFlight.clocks() };
  },
  block_sync: () => waiting(latencies.sync),
  barrier_wait: (_, lanes) => waiting(latencies.barrier, 4 * lanes),
  cluster_wait: () => waiting(latencies.cluster),
  semaphore_wait: () => waiting(latencies.semaphore),
  loop: (_, lanes) => waiting(0, 4 * lanes),
};
