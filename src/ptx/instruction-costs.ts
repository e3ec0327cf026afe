/**
 * What lanes execute for an element: the instructions that are written for it, each by how long it keeps its unit of an H200 busy, in
 * lane clocks of an addition of f32.
 *
 *   unary {fn = exp}, f32    mul, ex2.approx, …     6 instructions, 1 of the special unit
 *
 * Divisions, roots and conversions are several instructions of the machine to one of PTX.
 */
import { f32, isInteger } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import type { ElementCost } from "../ir/cost/index.ts";
import type { AnyOp, Value } from "../ir/node.ts";
import { ruleOf } from "../ir/ops.ts";
import type { SomeOpRules } from "../ir/ops.ts";
import { operandValues } from "../ir/traverse.ts";
import { defaultTarget } from "../targets/target.ts";
import { Code, SourceFiles } from "./function-builder.ts";
import { emitCast } from "./emit/elementwise/casts.ts";
import type { Emission } from "./emit/elementwise/emission.ts";
import {
  emitBinary,
  emitClassify,
  emitCompare,
  emitFma,
  emitSelect,
  emitUnary,
} from "./emit/elementwise/functions.ts";
import { elementClass } from "./emit/values.ts";
import type { Register, Statement } from "./module.ts";

type Weight = readonly [opcode: RegExp, instructions: number, special?: number];

/** The first that fits counts; others are one instruction. */
const weights: readonly Weight[] = [
  [/^mov\./, 0],
  [/^(ex2|lg2|sin|cos|tanh|rcp|rsqrt|sqrt)\.approx/, 2, 1],
  [/^div\.(full|approx)/, 3, 1],
  [/^(div|sqrt|rcp)\.r[nzmp]\.(ftz\.)?f32/, 10, 1],
  [/^(div|sqrt|rcp)\.r[nzmp]\.f64/, 60, 1],
  [/^(div|rem)\.[us](64)/, 100, 1],
  [/^(div|rem)\./, 24, 1],
  [/^cvt\..*f64|^cvt\.f64/, 8],
  [/^cvt\./, 2],
  [/\.f64/, 2],
  [/^(mul|mad)\.(lo|hi)\.[us]64/, 6],
  [/^(mul|mad)\.(lo|hi|wide)/, 2],
  [/\.[us]64|\.b64/, 2],
  [/^(popc|clz|brev|bfind)/, 8],
  [/^(shf|bfe|bfi|prmt)/, 2],
  [/^(bra|call|ret)/, 2],
];

function weigh(statements: readonly Statement[]): ElementCost {
  let [instructions, special] = [0, 0];
  for (const each of statements) {
    if (each.kind !== "instruction") continue;
    const [, count = 1, units = 0] = weights.find(([opcode]) => opcode.test(each.opcode)) ?? [];
    instructions += count;
    special += units;
  }
  return { instructions, special };
}

function dtypeOf({ type }: Value): DType | undefined {
  return type.kind === "tile" || type.kind === "scalar" ? type.dtype : undefined;
}

/** Writes an op for a lone element. */
type Writer = (emission: Emission, register: (value: Value) => Register) => void;

/** The writer of an op whose operands are of this format; none where they are no numbers. */
function writing(
  operand: Value,
  write: (dtype: DType, ...of: Parameters<Writer>) => Register,
): Writer | undefined {
  const dtype = dtypeOf(operand);
  return dtype && ((...of) => void write(dtype, ...of));
}

const writers: SomeOpRules<[], Writer | undefined> = {
  unary: ({ operands: { source }, attributes: { fn, ...manner } }) =>
    writing(source, (dtype, to, of) => emitUnary(to, fn, dtype, of(source), manner)),
  classify: ({ operands: { source }, attributes: { fn } }) =>
    writing(source, (dtype, to, of) => emitClassify(to, fn, dtype, of(source))),
  binary: ({ operands: { left, right }, attributes: { fn, ...manner } }) =>
    writing(left, (dtype, to, of) => emitBinary(to, fn, dtype, of(left), of(right), manner)),
  compare: ({ operands: { left, right }, attributes: { predicate } }) =>
    writing(left, (dtype, to, of) => emitCompare(to, predicate, dtype, of(left), of(right))),
  fma: ({ operands: { a, b, c }, attributes }) =>
    writing(a, (dtype, to, of) => emitFma(to, dtype, of(a), of(b), of(c), attributes)),
  select: ({ operands: { condition, ifTrue, ifFalse } }) =>
    writing(ifTrue, (dtype, to, of) =>
      emitSelect(to, dtype, of(condition), of(ifTrue), of(ifFalse)),
    ),
  cast: ({ operands: { source }, attributes: { dtype: result, ...choices } }) =>
    writing(source, (dtype, to, of) => emitCast(to, dtype, result, of(source), choices)),
};

/** Whole numbers divided by one that is known: a product and shifts, or a shift. */
const knownDivision: ElementCost = { instructions: 5, special: 0 };

function isKnownDivision(op: AnyOp, isConstant: (value: Value) => boolean): boolean {
  if (op.kind !== "binary" || (op.attributes.fn !== "div" && op.attributes.fn !== "rem"))
    return false;
  const { right } = op.operands;
  const dtype = dtypeOf(right);
  return dtype !== undefined && isInteger(dtype) && isConstant(right);
}

const known = new Map<string, ElementCost>();

/** What an op costs a lane, each element; undefined of ops that are no functions of elements. */
export function elementCost(
  op: AnyOp,
  isConstant: (value: Value) => boolean,
): ElementCost | undefined {
  const write = ruleOf(writers, op)?.(op);
  if (write === undefined) return undefined;
  if (isKnownDivision(op, isConstant)) return knownDivision;
  const dtypes = operandValues(op).map((value) => dtypeOf(value)?.name);
  const key = [op.kind, ...dtypes, JSON.stringify(op.attributes)].join();
  const found = known.get(key);
  if (found !== undefined) return found;
  const code = new Code(new SourceFiles());
  write({ code, target: defaultTarget }, (value) =>
    code.register(elementClass(dtypeOf(value) ?? f32)),
  );
  const made = weigh(code.statements);
  known.set(key, made);
  return made;
}
