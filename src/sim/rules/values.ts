/** Simulation of ops that make values and compute on them element by element. */
import {
  binaryElements,
  classifyElements,
  compareElements,
  fusedMultiplyAddElements,
  selectElements,
  unaryElements,
} from "../../formats/arithmetic/index.ts";
import { placeText } from "../../happens-before/access.ts";
import { coordinatesOf } from "../../formats/shape.ts";
import { keepsPromise } from "../../ir/promises.ts";
import { promiseReport } from "../print-messages.ts";
import { convertElements } from "../../formats/convert.ts";
import { allocateElements, i32 } from "../../formats/dtype.ts";
import type { DType, Elements } from "../../formats/dtype.ts";
import { packElements, unpackElements } from "../../formats/packed.ts";
import { writeElement } from "../../formats/values.ts";
import type { AnyOp, Op, OpOf } from "../../ir/node.ts";
import type { valueOps } from "../../ir/ops/values.ts";
import { bitcastElements, fillElements } from "../memory.ts";
import { moveSlots } from "../program.ts";
import type { Assembler, SimulationRules } from "../program.ts";
import { elementsAt, scalarAt, toElements, toScalar } from "../values.ts";
import type { SlotValue } from "../values.ts";
import { product } from "../view.ts";
import {
  axisOf,
  dtypeOf,
  emitElementwise,
  indexFunctions,
  indexPredicates,
  indexStep,
} from "./elementwise.ts";

function gridAxis(code: Assembler, name: string): number {
  const axis = code.kernel.grid.findIndex((candidate) => candidate.name === name);
  if (axis < 0) throw new Error(`there is no grid axis ${name}`);
  return axis;
}

/** Emits a step that gives the result a value known while assembling. */
function emitKnown(code: Assembler, op: AnyOp, value: SlotValue): void {
  const target = code.result(op);
  code.emit(op, (agent) => {
    agent.slots[target] = value;
    return "proceed";
  });
}

function constant(op: Op<"constant">, code: Assembler): void {
  const { dtype, shape, value } = op.attributes;
  const one = allocateElements(dtype, 1);
  writeElement(dtype, one, 0, value);
  if (shape.length === 0) {
    emitKnown(code, op, toScalar(one));
    return;
  }
  const elements = allocateElements(dtype, product(shape));
  fillElements(elements, toScalar(one));
  emitKnown(code, op, elements);
}

function assume(op: Op<"assume">, code: Assembler): void {
  const { source } = op.operands;
  const { below } = op.attributes;
  const [slot, target] = [code.slot(source), code.result(op)];
  const size = below === undefined ? undefined : code.size(below);
  const isTile = source.type.kind === "tile";
  const shape = isTile ? source.type.shape : [];
  code.emit(op, (agent) => {
    const elements: ArrayLike<number | bigint> = isTile
      ? elementsAt(agent, slot)
      : [scalarAt(agent, slot)];
    for (let element = 0; element < elements.length; element++) {
      const number = elements[element] ?? 0;
      if (keepsPromise(number, op.attributes, size)) continue;
      const at = isTile ? ` at [${coordinatesOf(element, shape).join(", ")}]` : "";
      const found = `${number}${at} in ${placeText(agent.place())}`;
      return agent.machine.findings.stop(promiseReport(op.attributes, op.location, found), op);
    }
    agent.slots[target] = agent.slots[slot];
    return "proceed";
  });
}

/** Counts along the axis, wrapped or rounded as a conversion from i32 does. */
function iotaElements(dtype: DType, shape: readonly number[], axis: number): Elements {
  const { length, inner } = axisOf(shape, [axis]);
  const counts = Int32Array.from(
    { length: product(shape) },
    (_, element) => Math.floor(element / inner) % length,
  );
  const elements = allocateElements(dtype, counts.length);
  convertElements(i32, dtype, counts, elements);
  return elements;
}

function binary(op: Op<"binary">, code: Assembler): void {
  const { left, right } = op.operands;
  const { fn, ...manner } = op.attributes;
  const dtype = dtypeOf(left);
  const direct = indexFunctions[fn];
  if (left.type.kind === "scalar" && dtype === i32 && direct !== undefined)
    code.emit(op, indexStep(code.result(op), code.slot(left), code.slot(right), direct));
  else
    emitElementwise(code, op, [left, right], (target, a, b) => {
      binaryElements(fn, dtype, a, b, target, manner);
    });
}

function compare(op: Op<"compare">, code: Assembler): void {
  const { left, right } = op.operands;
  const { predicate } = op.attributes;
  const dtype = dtypeOf(left);
  if (left.type.kind === "scalar" && dtype === i32)
    code.emit(
      op,
      indexStep(code.result(op), code.slot(left), code.slot(right), indexPredicates[predicate]),
    );
  else
    emitElementwise(code, op, [left, right], (target, a, b) => {
      compareElements(predicate, dtype, a, b, target as Uint8Array);
    });
}

/** A scalar condition chooses a whole tile; elsewhere each element has its own. */
function select(op: Op<"select">, code: Assembler): void {
  const { condition, ifTrue, ifFalse } = op.operands;
  if (condition.type.kind === "tile") {
    emitElementwise(code, op, [condition, ifTrue, ifFalse], (target, flags, a, b) => {
      selectElements(flags as Uint8Array, a, b, target);
    });
    return;
  }
  const [flag, a, b] = [code.slot(condition), code.slot(ifTrue), code.slot(ifFalse)];
  const target = code.result(op);
  const isTile = ifTrue.type.kind === "tile";
  code.emit(op, ({ slots }) => {
    const chosen = slots[flag] === 0 ? slots[b] : slots[a];
    // A copy, since the elements that were chosen belong to the other value.
    slots[target] = isTile ? (chosen as Elements).slice() : chosen;
    return "proceed";
  });
}

/** Code that the user wrote is what its meaning says. */
function inlinePtx(op: OpOf<"inline_ptx" | "inline_ptx_memory">, code: Assembler): void {
  const { meaning } = op.operands;
  if (meaning.length !== op.results.length)
    throw new Error(`inline_ptx of a lowered kernel has no meaning to simulate`);
  const slots = code.slotsOf(meaning);
  const targets = code.slotsOf(op.results);
  code.emit(op, (agent) => {
    for (const [position, target] of targets.entries()) {
      const meant = agent.slots[slots[position] ?? 0];
      // A copy, since the elements of the meaning are free for others from here on.
      agent.slots[target] = ArrayBuffer.isView(meant) ? (meant as Elements).slice() : meant;
    }
    return "proceed";
  });
}

function bitcast(op: Op<"bitcast">, code: Assembler): void {
  const { source } = op.operands;
  const [from, to] = [dtypeOf(source), op.attributes.dtype];
  const [slot, target] = [code.slot(source), code.result(op)];
  const isTile = source.type.kind === "tile";
  // Elements of i4 carry their sign beyond the four bits that the formats share.
  const narrow = from.bits === 4;
  const convert = (elements: Elements): Elements => {
    if (!narrow) return bitcastElements(elements, to);
    const nibbles = allocateElements(to, elements.length);
    for (let i = 0; i < elements.length; i++) {
      const bits = (elements[i] as number) & 15;
      nibbles[i] = to.kind === "signed" ? (bits << 28) >> 28 : bits;
    }
    return nibbles;
  };
  code.emit(op, (agent) => {
    agent.slots[target] = isTile
      ? convert(elementsAt(agent, slot))
      : toScalar(convert(toElements(from, scalarAt(agent, slot))));
    return "proceed";
  });
}

/** The bytes of the tile as elements of another width. */
function bitcastWidth(op: Op<"bitcast_width">, code: Assembler): void {
  const [from, to] = [dtypeOf(op.operands.source), op.attributes.dtype];
  const [slot, target] = [code.slot(op.operands.source), code.result(op)];
  code.emit(op, (agent) => {
    const elements = elementsAt(agent, slot);
    const count = (elements.length * from.bits) / to.bits;
    agent.slots[target] = unpackElements(to, packElements(from, elements), count);
    return "proceed";
  });
}

export const valueRules: Pick<SimulationRules, keyof typeof valueOps> = {
  constant,

  block_index(op, code) {
    const axis = gridAxis(code, op.attributes.axis);
    const target = code.result(op);
    code.emit(op, (agent) => {
      agent.slots[target] = agent.block.coordinates[axis];
      return "proceed";
    });
  },

  grid_size(op, code) {
    const axis = code.kernel.grid[gridAxis(code, op.attributes.axis)];
    emitKnown(code, op, code.size(axis?.extent ?? 0));
  },

  cluster_rank(op, code) {
    const axis = gridAxis(code, op.attributes.axis);
    const target = code.result(op);
    code.emit(op, (agent) => {
      const { machine, block } = agent;
      agent.slots[target] = machine.grid.positionInCluster(block.rank)[axis];
      return "proceed";
    });
  },

  thread_index(op, code) {
    const target = code.result(op);
    code.emit(op, (agent) => {
      agent.slots[target] = agent.thread;
      return "proceed";
    });
  },

  size(op, code) {
    emitKnown(code, op, code.indexSize(op.attributes.of));
  },

  iota(op, code) {
    const { dtype, shape, axis } = op.attributes;
    emitKnown(code, op, iotaElements(dtype, shape, axis));
  },

  unary(op, code) {
    const { source } = op.operands;
    const { fn, ...manner } = op.attributes;
    const dtype = dtypeOf(source);
    emitElementwise(code, op, [source], (target, elements) => {
      unaryElements(fn, dtype, elements, target, manner);
    });
  },

  classify(op, code) {
    const { source } = op.operands;
    const { fn } = op.attributes;
    const dtype = dtypeOf(source);
    emitElementwise(code, op, [source], (target, elements) => {
      classifyElements(fn, dtype, elements, target as Uint8Array);
    });
  },

  binary,
  compare,

  assume,

  fma(op, code) {
    const { a, b, c } = op.operands;
    const dtype = dtypeOf(a);
    emitElementwise(code, op, [a, b, c], (target, x, y, z) => {
      fusedMultiplyAddElements(dtype, x, y, z, target, op.attributes);
    });
  },

  select,

  cast(op, code) {
    const { source } = op.operands;
    const { dtype: to, ...choices } = op.attributes;
    const from = dtypeOf(source);
    emitElementwise(code, op, [source], (target, elements) => {
      convertElements(from, to, elements, target, choices);
    });
  },

  inline_ptx: inlinePtx,
  inline_ptx_memory: inlinePtx,
  is_simulated(op, code) {
    const target = code.result(op);
    code.emit(op, (agent) => {
      agent.slots[target] = 1;
      return "proceed";
    });
  },
  optimization_barrier(op, code) {
    const move = moveSlots(code.slotsOf(op.operands.values), code.slotsOf(op.results));
    code.emit(op, (agent) => {
      move(agent);
      return "proceed";
    });
  },
  bitcast,
  bitcast_width: bitcastWidth,
};
