/** Steps on single elements, of every format that has them. */
import {
  acceptsBinary,
  acceptsClassify,
  acceptsCompare,
  acceptsFused,
  acceptsUnary,
  binaryFunctions,
  comparePredicates,
  unaryFunctions,
} from "../../../src/formats/arithmetic/functions.ts";
import { bool } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import { conversionChoices } from "../../../src/formats/conversion-rules.ts";
import { methodName } from "../../../src/ir/op-names.ts";
import { inexactFunctions } from "../../support/inexact-functions.ts";
import { formats, isFloat, isInteger } from "./draft.ts";
import type { Draft } from "./draft.ts";
import { countOf, elementwise, joined } from "./held.ts";
import { binary, cast, compare, fma, integerLimits, sameBits, unary } from "./numbers.ts";
import type { CastChoice } from "./numbers.ts";
import { called } from "./steps.ts";
import type { Slot } from "./steps.ts";

const inexact: ReadonlySet<string> = inexactFunctions;

function isExact(fn: string, dtype: DType): boolean {
  return !isFloat(dtype) || !inexact.has(fn);
}

function shapeWith(left: Slot, right: Slot): readonly number[] {
  const shape = joined(left.shape, right.shape);
  if (shape === undefined) throw new Error("operands repeat to one shape");
  return shape;
}

function unaryStep(draft: Draft): void {
  const source = draft.some(({ dtype }) => unaryFunctions.some((fn) => acceptsUnary(fn, dtype)));
  const { dtype, shape } = source;
  const fns = unaryFunctions.filter((fn) => acceptsUnary(fn, dtype) && isExact(fn, dtype));
  const fn = draft.random.pick(fns);
  draft.give(
    fn,
    [source],
    dtype,
    shape,
    (value) => called(value, methodName(fn)),
    (...values) => elementwise(dtype, values, (item = 0) => unary(fn, dtype, item)),
  );
}

function binaryStep(draft: Draft): void {
  const left = draft.some(({ dtype }) => binaryFunctions.some((fn) => acceptsBinary(fn, dtype)));
  const { dtype } = left;
  const fns = binaryFunctions.filter((fn) => acceptsBinary(fn, dtype) && isExact(fn, dtype));
  const fn = draft.random.pick(fns);
  const method = methodName(fn);
  if (draft.chance(0.2)) {
    const item = draft.literal(dtype);
    draft.give(
      `${fn} ${String(item)}`,
      [left],
      dtype,
      left.shape,
      (value) => called(value, method, item),
      (...values) => elementwise(dtype, values, (each = 0) => binary(fn, dtype, each, item)),
    );
    return;
  }
  const right = draft.partner(dtype, left.shape);
  const operands = draft.chance(0.5) ? [left, right] : [right, left];
  draft.give(
    fn,
    operands,
    dtype,
    shapeWith(left, right),
    (a, b) => called(a, method, b),
    (...values) => elementwise(dtype, values, (a = 0, b = 0) => binary(fn, dtype, a, b)),
  );
}

function compareStep(draft: Draft): void {
  const left = draft.some(({ dtype }) => acceptsCompare("eq", dtype));
  const { dtype } = left;
  const predicate = draft.random.pick(
    comparePredicates.filter((each) => acceptsCompare(each, dtype)),
  );
  const right = draft.partner(dtype, left.shape);
  draft.give(
    predicate,
    [left, right],
    bool,
    shapeWith(left, right),
    (a, b) => called(a, predicate, b),
    (...values) => elementwise(bool, values, (a = 0, b = 0) => compare(predicate, a, b)),
  );
}

function classifyStep(draft: Draft): void {
  const source = draft.some(({ dtype }) => acceptsClassify("is_nan", dtype));
  const isNan = draft.chance(0.5);
  draft.give(
    isNan ? "isNan" : "isFinite",
    [source],
    bool,
    source.shape,
    (value) => (isNan ? value.isNan() : value.isFinite()),
    (...values) =>
      elementwise(bool, values, (item) =>
        isNan ? Number.isNaN(Number(item)) : Number.isFinite(Number(item)),
      ),
  );
}

function fusedStep(draft: Draft): void {
  const a = draft.some(({ dtype }) => acceptsFused(dtype));
  const { dtype } = a;
  const b = draft.partner(dtype, a.shape);
  const shape = shapeWith(a, b);
  const c = draft.partner(dtype, shape);
  const whole = joined(shape, c.shape);
  if (whole === undefined || countOf(whole) > draft.room) return;
  draft.give(
    "fma",
    [a, b, c],
    dtype,
    whole,
    (x, y, z) => x.fma(y, z),
    (...values) =>
      elementwise(dtype, values, (x, y, z) => fma(dtype, Number(x), Number(y), Number(z))),
  );
}

function selectStep(draft: Draft): void {
  const ifTrue = draft.some(() => true, formats);
  const { dtype } = ifTrue;
  const ifFalse = draft.partner(dtype, ifTrue.shape);
  const shape = shapeWith(ifTrue, ifFalse);
  const condition = draft.condition(shape);
  const whole = joined(shape, condition.shape);
  if (whole === undefined || countOf(whole) > draft.room) return;
  draft.give(
    "select",
    [condition, ifTrue, ifFalse],
    dtype,
    whole,
    (where, a, b) => where.select(a, b),
    (...values) => elementwise(dtype, values, (where, a = 0, b = 0) => (where === true ? a : b)),
  );
}

function castStep(draft: Draft): void {
  const source = draft.some(() => true, formats);
  const from = source.dtype;
  const to = draft.random.pick(formats);
  const choices = conversionChoices(from, to);
  const { random } = draft;
  const choice: CastChoice = {
    ...(choices.roundings.length > 0 &&
      draft.chance(0.4) && { rounding: random.pick(choices.roundings) }),
    ...(choices.overflows.length > 0 &&
      draft.chance(0.4) && { overflow: random.pick(choices.overflows) }),
  };
  draft.give(
    `cast ${JSON.stringify(choice)}`,
    [source],
    to,
    source.shape,
    (value) => value.cast(to, choice),
    (...values) => elementwise(to, values, (item = 0) => cast(from, to, item, choice)),
  );
}

/** Bits of floats show the payloads of NaNs, which are not part of a value; so only bits of integers. */
function bitcastStep(draft: Draft): void {
  const source = draft.some(({ dtype }) => isInteger(dtype));
  const names = { 64: ["f64", "i64", "u64"], 32: ["f32", "i32", "u32"], 16: ["i16", "u16"] };
  const others: readonly string[] = { ...names, 8: ["i8", "u8"], 4: ["i4", "u4"] }[
    source.dtype.bits
  ];
  const to = draft.random.pick(formats.filter(({ name }) => others.includes(name)));
  draft.give(
    "bitcast",
    [source],
    to,
    source.shape,
    (value) => value.bitcast(to),
    (...values) => elementwise(to, values, (item = 0) => sameBits(source.dtype, to, item)),
  );
}

function constantStep(draft: Draft): void {
  draft.constantOf(draft.random.pick(formats), draft.chance(0.4) ? [] : draft.shape());
}

function iotaStep(draft: Draft): void {
  const shape = draft.shape();
  const dtype = draft.random.pick(
    formats.filter((each) => acceptsCompare("lt", each) && each.kind !== "bool"),
  );
  const axis = draft.random.below(shape.length);
  const last = (shape[axis] ?? 1) - 1;
  const most = isInteger(dtype) ? Number(integerLimits(dtype)[1]) : last;
  if (last <= most) draft.count(shape, axis, dtype);
}

export type StepMaker = (draft: Draft) => void;

export const elementSteps: readonly StepMaker[] = [
  ...[unaryStep, unaryStep, binaryStep, binaryStep, binaryStep, binaryStep, compareStep],
  ...[classifyStep, fusedStep, selectStep, castStep, castStep, castStep, bitcastStep],
  ...[constantStep, iotaStep],
];
