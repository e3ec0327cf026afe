/** Lowering of ops that make values and compute on them: those of scalars here, those of tiles where they are used. */
import { isWide } from "../../formats/dtype.ts";
import type { DType, HostValue } from "../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import { ruleOf } from "../../ir/ops.ts";
import type { SomeOpRules } from "../../ir/ops.ts";
import type { valueOps } from "../../ir/ops/values.ts";
import { i32, op as operation } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";
import { elementOf } from "./elements.ts";
import { expressionOf } from "./held.ts";
import type { HostCall } from "./host-calls.ts";
import { constantScalar, laneKind, laneScalar, splatLanes } from "./lanes.ts";
import { countOf, dtypeOf, elementwise, shapeOf } from "./lazy.ts";
import { tileAddress } from "./lowering.ts";
import type { Lowering } from "./lowering.ts";
import type { LoweringRules } from "./regions.ts";
import { tileOf, tileScalar } from "./tiles.ts";

/** i32 arithmetic that is one instruction on scalars. */
const directBinary: { readonly [fn: string]: OpcodeName } = {
  add: "i32.add",
  sub: "i32.sub",
  mul: "i32.mul",
  and: "i32.and",
  or: "i32.or",
  xor: "i32.xor",
};

const directCompare: { readonly [predicate: string]: OpcodeName } = {
  eq: "i32.eq",
  ne: "i32.ne",
  lt: "i32.lt_s",
  le: "i32.le_s",
  gt: "i32.gt_s",
  ge: "i32.ge_s",
};

/** A scalar result that is one instruction. */
function direct(lowering: Lowering, op: AnyOp): Expression | undefined {
  if (op.kind === "select") {
    const { condition, ifTrue, ifFalse } = op.operands;
    const [yes, no] = [lowering.scalar(ifTrue), lowering.scalar(ifFalse)];
    if (yes.type === undefined) return undefined;
    return {
      form: "select",
      type: yes.type,
      condition: lowering.scalar(condition),
      ifTrue: yes,
      ifFalse: no,
    };
  }
  if (op.kind !== "binary" && op.kind !== "compare") return undefined;
  const { left, right } = op.operands;
  const { name } = dtypeOf(left);
  const [x, y] = [lowering.scalar(left), lowering.scalar(right)];
  if (op.kind === "compare") {
    const opcode = directCompare[op.attributes.predicate];
    return name === "i32" && opcode !== undefined ? operation(opcode, x, y) : undefined;
  }
  const { fn } = op.attributes;
  if (name === "bool") {
    const opcode = directBinary[fn];
    return opcode === undefined ? undefined : operation(opcode, x, y);
  }
  return name === "i32" ? directInteger(fn, x, y) : undefined;
}

function directInteger(
  fn: Op<"binary">["attributes"]["fn"],
  x: Expression,
  y: Expression,
): Expression | undefined {
  if (fn === "add") return i32.add(x, y);
  if (fn === "sub") return i32.sub(x, y);
  if (fn === "mul") return i32.mul(x, y);
  if ((fn === "div" || fn === "rem") && isSafeDivisor(y)) return operation(`i32.${fn}_s`, x, y);
  if (fn === "min" || fn === "max")
    return {
      form: "select",
      type: "i32",
      condition: operation(fn === "min" ? "i32.lt_s" : "i32.gt_s", x, y),
      ifTrue: x,
      ifFalse: y,
    };
  const opcode = directBinary[fn];
  return opcode === undefined ? undefined : operation(opcode, x, y);
}

/** A number by which nothing that is divided traps. */
function isSafeDivisor(value: Expression): boolean {
  return value.form === "constant" && value.value !== 0 && value.value !== -1;
}

interface HostWork {
  readonly call: HostCall;
  readonly operands: readonly Value[];
}

/** What the host computes of an elementwise op that vectors do not. */
const hostWork: SomeOpRules<[count: number], HostWork> = {
  unary({ attributes: { fn, rounding, flushToZero }, operands: { source } }, count) {
    const dtype = dtypeOf(source).name;
    const manner = { rounding, flushToZero };
    return { call: { op: "unary", fn, dtype, count, manner }, operands: [source] };
  },
  binary({ attributes: { fn, rounding, flushToZero }, operands: { left, right } }, count) {
    const dtype = dtypeOf(left).name;
    const manner = { rounding, flushToZero };
    return { call: { op: "binary", fn, dtype, count, manner }, operands: [left, right] };
  },
  classify({ attributes: { fn }, operands: { source } }, count) {
    const dtype = dtypeOf(source).name;
    return { call: { op: "classify", fn, dtype, count }, operands: [source] };
  },
  compare({ attributes: { predicate }, operands: { left, right } }, count) {
    const dtype = dtypeOf(left).name;
    return { call: { op: "compare", predicate, dtype, count }, operands: [left, right] };
  },
  fma({ attributes: { rounding, flushToZero }, operands: { a, b, c } }, count) {
    const dtype = dtypeOf(a).name;
    const manner = { rounding, flushToZero };
    return { call: { op: "fma", dtype, count, manner }, operands: [a, b, c] };
  },
};

function onHost(lowering: Lowering, op: AnyOp): void {
  const [result] = op.results;
  if (result === undefined) throw new Error(`${op.kind} has no result`);
  const work = ruleOf(hostWork, op)?.(op, countOf(result));
  if (work === undefined) throw new Error(`${op.kind} is not computed element by element`);
  const { call, operands } = work;
  const sources = operands.map((value) => tileAddress(lowering.b, tileOf(lowering, value)));
  if (result.type.kind === "scalar") {
    const target = lowering.temporaryTile(dtypeOf(result), []);
    lowering.callHost(call, [...sources, tileAddress(lowering.b, target)]);
    lowering.holdScalar(result, tileScalar(lowering, target));
    return;
  }
  const target = lowering.allocateTile(result, dtypeOf(result), shapeOf(result));
  lowering.callHost(call, [...sources, tileAddress(lowering.b, target)]);
}

/** An elementwise op: of scalars at once; of tiles only where it is the host's. */
function computed(op: AnyOp, lowering: Lowering): void {
  const [result] = op.results;
  const found = elementwise(op);
  if (found === undefined || result?.type.kind !== "scalar") {
    onHost(lowering, op);
    return;
  }
  const one = direct(lowering, op);
  if (one !== undefined) {
    lowering.holdScalar(result, one);
    return;
  }
  const { b } = lowering;
  const operands = found.operands.map((value) =>
    splatLanes(b, dtypeOf(value), lowering.scalar(value)),
  );
  lowering.holdScalar(result, laneScalar(found.rule(lowering.code, ...operands), 0));
}

/** The same value under another name. */
export function pass(lowering: Lowering, source: Value, result: Value | undefined): void {
  if (result === undefined) throw new Error("an op without its result");
  const held = lowering.held(source);
  if (held.kind === "scalar") lowering.hold(result, held);
  else if (held.kind === "lazy" || held.kind === "tile") {
    const tile = tileOf(lowering, source);
    // Computed now, it is this value's.
    if (held.kind === "lazy") lowering.keepTemporary(tile);
    lowering.alias(result, tile, tile.dtype, shapeOf(result));
  } else lowering.hold(result, held);
}

function zeroIn(dtype: DType): HostValue {
  if (dtype.kind === "bool") return false;
  return isWide(dtype) ? 0n : 0;
}

function gridAxis(lowering: Lowering, name: string): number {
  return lowering.kernel.grid.findIndex((axis) => axis.name === name);
}

function assume(op: Op<"assume">, lowering: Lowering): void {
  // What is promised is not tested: the simulator finds promises that do not hold.
  pass(lowering, op.operands.source, op.results[0]);
}

export const valueRules: Pick<LoweringRules, keyof typeof valueOps> = {
  constant(op, lowering) {
    const { dtype, value } = op.attributes;
    lowering.holdScalar(op.results[0], constantScalar(dtype, elementOf(dtype, value)));
  },
  block_index(op, lowering) {
    const index = lowering.coordinates[gridAxis(lowering, op.attributes.axis)];
    if (index === undefined) throw new Error(`no grid axis ${op.attributes.axis}`);
    lowering.holdScalar(op.results[0], index);
  },
  grid_size(op, lowering) {
    const axis = lowering.kernel.grid[gridAxis(lowering, op.attributes.axis)];
    lowering.holdScalar(op.results[0], expressionOf(lowering.size(axis?.extent ?? 1)));
  },
  cluster_rank(op, lowering) {
    const place = gridAxis(lowering, op.attributes.axis);
    const cluster = lowering.kernel.grid[place]?.cluster ?? 1;
    const index = lowering.coordinates[place] ?? i32.of(0);
    lowering.holdScalar(op.results[0], operation("i32.rem_u", index, i32.of(cluster)));
  },
  thread_index(op, lowering) {
    lowering.holdScalar(op.results[0], i32.of(lowering.thread));
  },
  size(op, lowering) {
    const [result] = op.results;
    const size = expressionOf(lowering.size(op.attributes.of));
    const wide = result !== undefined && laneKind(dtypeOf(result)) === "i64";
    lowering.holdScalar(result, wide ? operation("i64.extend_i32_s", size) : size);
  },
  iota(op, lowering) {
    // Tiles of counts are computed where they are used.
    const { dtype } = op.attributes;
    lowering.holdScalar(op.results[0], constantScalar(dtype, elementOf(dtype, zeroIn(dtype))));
  },
  unary: computed,
  classify: computed,
  binary: computed,
  compare: computed,
  fma: computed,
  assume,
  select: computed,
  cast: computed,
  inline_ptx(op, lowering) {
    op.results.forEach((result, index) => {
      const meaning = op.operands.meaning[index];
      if (meaning === undefined) return lowering.refuse(op, "inline PTX without a meaning");
      pass(lowering, meaning, result);
    });
  },
  inline_ptx_memory(op, lowering) {
    op.results.forEach((result, index) => {
      const meaning = op.operands.meaning[index];
      if (meaning === undefined) return lowering.refuse(op, "inline PTX without a meaning");
      pass(lowering, meaning, result);
    });
  },
  is_simulated(op, lowering) {
    lowering.holdScalar(op.results[0], i32.of(1));
  },
  optimization_barrier(op, lowering) {
    op.operands.values.forEach((value, index) => pass(lowering, value, op.results[index]));
  },
  bitcast_width(op, lowering) {
    const { source } = op.operands;
    const [result] = op.results;
    const { dtype } = op.attributes;
    if (result === undefined) throw new Error("bitcast_width has no result");
    if (dtypeOf(source).bits === 4 || dtype.bits === 4)
      lowering.refuse(op, `a bit cast between ${dtypeOf(source).name} and ${dtype.name}`);
    const tile = tileOf(lowering, source);
    if (lowering.held(source).kind === "lazy") lowering.keepTemporary(tile);
    lowering.alias(result, tile, dtype, shapeOf(result));
  },
  bitcast: computed,
};
