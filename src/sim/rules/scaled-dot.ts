/** Simulation of products with scales in registers: what tensor cores of sm_120a make of them, instruction after instruction. */
import { multiplyScaled } from "../../formats/arithmetic/scaled-product.ts";
import type { ScaledProduct } from "../../formats/arithmetic/scaled-product.ts";
import { f32 } from "../../formats/dtype.ts";
import { kindOfScaledDot } from "../../ir/infer/scaled-dot.ts";
import type { Op } from "../../ir/node.ts";
import { narrowName, scaleFormatOf } from "../../targets/scaled-products.ts";
import type { Agent } from "../agent.ts";
import type { Assembler } from "../program.ts";
import { elementsAt } from "../values.ts";
import { dtypeOf, shapeOf } from "./elementwise.ts";

export function scaledDot(op: Op<"scaled_dot">, code: Assembler): void {
  const { left, right, leftScales, rightScales, accumulator } = op.operands;
  const { block } = op.attributes;
  const kind = kindOfScaledDot(op);
  const [m = 0, k = 0] = shapeOf(left);
  const n = shapeOf(right)[1] ?? 0;
  const form: Omit<ScaledProduct, "a" | "b" | "scales"> = {
    ...{ m, n, k, block, depth: kind.depth },
    formats: [narrowName(dtypeOf(left)), narrowName(dtypeOf(right))],
    scaleColumns: [k / block, k / block],
    scaleFormat: scaleFormatOf(kind),
  };
  const [a, b, ofA, ofB] = [left, right, leftScales, rightScales].map((value) => {
    const slot = code.slot(value);
    return (agent: Agent): Uint8Array => codesAt(agent, slot);
  });
  if (!a || !b || !ofA || !ofB) throw new Error("a product with scales has four operands");
  const start = accumulator === undefined ? undefined : code.slot(accumulator);
  const target = code.result(op);
  const pool = code.pool(f32, m * n);
  code.emit(op, (agent) => {
    const sums = pool.take();
    const begun = start === undefined ? new Float32Array(m * n) : elementsAt(agent, start);
    if (!(sums instanceof Float32Array) || !(begun instanceof Float32Array))
      throw new Error("products with scales are summed in f32");
    sums.set(begun);
    const scales = [ofA(agent), ofB(agent)] as const;
    multiplyScaled({ ...form, a: a(agent), b: b(agent), scales }, sums);
    agent.slots[target] = sums;
    return "proceed";
  });
}

function codesAt(agent: Agent, slot: number): Uint8Array {
  const elements = elementsAt(agent, slot);
  if (!(elements instanceof Uint8Array)) throw new Error("narrow floats and scales are codes");
  return elements;
}
