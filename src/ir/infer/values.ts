/** Inference for ops that make values and compute on them element by element. */
import {
  acceptsApproximate,
  acceptsBinary,
  acceptsClassify,
  acceptsCompare,
  acceptsFlush,
  acceptsFused,
  acceptsRounding,
  acceptsUnary,
  approximateFunctions,
  inDomain,
  roundedFunctions,
} from "../../formats/arithmetic/functions.ts";
import type {
  BinaryFunction,
  RoundingManner,
  UnaryFunction,
} from "../../formats/arithmetic/functions.ts";
import { isMannered } from "../../formats/arithmetic/rounded.ts";
import { conversionChoices } from "../../formats/conversion-rules.ts";
import { bool, f16, i32, isFloat, isInteger, isWide } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { opName } from "../op-names.ts";
import type { valueOps } from "../ops/values.ts";
import { promiseText } from "../promises.ts";
import type { Literal } from "../schema.ts";
import { dataShape, dataType, scalarType, typeText } from "../types.ts";
import type { Type } from "../types.ts";
import {
  dataOperand,
  fail,
  isPositiveInteger,
  listText,
  requireAxis,
  requireBool,
  requireDimensions,
  requireFunction,
  requireTileShape,
  sameShapes,
  sameTypes,
} from "./checks.ts";
import type { AnyDraft } from "./checks.ts";
import type { Draft, InferContext, InferRules } from "./inference-input.ts";
import { inlinePtx } from "./inline.ts";

/** The least and greatest value of an integer format. */
function integerRange(dtype: DType): readonly [bigint, bigint] {
  const bits = BigInt(dtype.bits);
  return dtype.kind === "signed"
    ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
    : [0n, (1n << bits) - 1n];
}

function fitsInteger(dtype: DType, value: bigint): boolean {
  const [least, greatest] = integerRange(dtype);
  return value >= least && value <= greatest;
}

function literalFits(dtype: DType, value: Literal): boolean {
  if (dtype.kind === "bool") return typeof value === "boolean";
  if (isFloat(dtype)) return typeof value === "number";
  if (isWide(dtype)) return typeof value === "bigint" && fitsInteger(dtype, value);
  return typeof value === "number" && Number.isInteger(value) && fitsInteger(dtype, BigInt(value));
}

/** What a literal of the format looks like. */
function literalText(dtype: DType): string {
  if (dtype.kind === "bool") return "true or false";
  if (isFloat(dtype)) return "a number";
  const [least, greatest] = integerRange(dtype);
  return `${isWide(dtype) ? "a bigint" : "an integer"} from ${least} to ${greatest}`;
}

function gridScalar(
  draft: AnyDraft & { readonly attributes: { readonly axis: string } },
  context: InferContext,
): readonly Type[] {
  const { axis } = draft.attributes;
  if (!context.grid.some(({ name }) => name === axis))
    fail(draft, "TW2010", `the grid has no axis ${axis}`, {
      expected: listText(context.grid.map(({ name }) => name)),
      found: axis,
    });
  return [scalarType(i32)];
}

/** Whether an approximation that is asked for exists. */
function requireApproximation(
  draft: AnyDraft & {
    readonly attributes: {
      readonly fn: UnaryFunction | BinaryFunction;
      readonly approximate?: boolean | undefined;
    };
  },
  dtype: DType,
): void {
  const { fn, approximate } = draft.attributes;
  if (approximate !== true || acceptsApproximate(fn, dtype)) return;
  fail(draft, "TW2015", `${opName(draft)} has no approximate form for ${dtype.name}`, {
    expected: `${listText(approximateFunctions)}; in f32, tf32, f16 or bf16`,
    found: `${opName(draft)} of ${dtype.name}`,
  });
}

/** Refuses a rounding, or the flush of subnormal numbers, that a function has not in a format. */
function requireManner(
  draft: AnyDraft & {
    readonly attributes: RoundingManner & {
      readonly fn?: UnaryFunction | BinaryFunction;
      readonly approximate?: boolean | undefined;
    };
  },
  dtype: DType,
): void {
  const { fn = "fma", rounding, flushToZero, approximate } = draft.attributes;
  const text = `${opName(draft)} of ${dtype.name}`;
  if (approximate === true && (rounding !== undefined || flushToZero === true))
    fail(draft, "TW2018", `an approximation is not rounded as asked`, {
      expected: "approximate, or rounding and flushToZero",
      found: "both",
      remedy: "leave approximate out; an approximation flushes subnormal numbers anyway",
    });
  if (rounding !== undefined && !acceptsRounding(fn, dtype))
    fail(draft, "TW2018", `${text} has no rounding ${JSON.stringify(rounding)}`, {
      expected: `${listText(roundedFunctions)}; in f32 or f64`,
      found: text,
    });
  if (flushToZero === true && !acceptsFlush(fn, dtype))
    fail(draft, "TW2018", `${text} does not flush subnormal numbers`, {
      expected: `${listText(roundedFunctions)} in f32; ${listText(roundedFunctions.filter((each) => acceptsFlush(each, f16)))} in f16`,
      found: text,
      remedy: "leave flushToZero out, or compute in f32",
    });
}

/** Whether factors that are often one are those of a product that has a form for them. */
function requireFactors(draft: Draft<"binary">, dtype: DType): void {
  const { fn, oftenOne, ...manner } = draft.attributes;
  const isUsual = fn === "mul" && dtype.name === "f32" && !isMannered(manner);
  if (oftenOne !== true || isUsual) return;
  fail(
    draft,
    "TW2017",
    `${opName(draft)} of ${dtype.name} has no form for factors that are often one`,
    {
      expected: "mul of f32",
      found: `${opName(draft)} of ${dtype.name}`,
    },
  );
}

/** Refuses an option that the conversion has not. */
function requireChoice(
  draft: Draft<"cast">,
  from: DType,
  option: "overflow" | "rounding",
  chosen: string | undefined,
  choices: readonly string[],
): void {
  if (chosen === undefined || choices.includes(chosen)) return;
  const list = choices.map((choice) => JSON.stringify(choice)).join(", ");
  const { dtype } = draft.attributes;
  fail(draft, "TW2104", `a conversion from ${from.name} to ${dtype.name} has no such ${option}`, {
    expected: choices.length === 0 ? `no ${option}: there is nothing to choose` : list,
    found: JSON.stringify(chosen),
    remedy: choices.length === 0 ? `leave ${option} out` : `choose ${list}, or leave it out`,
  });
}

/** Refuses bool, which has no bits. */
function requireBits(draft: AnyDraft, from: DType, to: DType): void {
  if (from.kind !== "bool" && to.kind !== "bool") return;
  fail(draft, "TW2013", "bool has no bits to reinterpret", {
    expected: "two formats of integers or floats",
    found: `${from.name} as ${to.name}`,
  });
}

export const valueRules: InferRules<keyof typeof valueOps> = {
  constant(draft) {
    const { value, dtype, shape } = draft.attributes;
    if (!literalFits(dtype, value))
      fail(draft, "TW2007", `${String(value)} is not a value of ${dtype.name}`, {
        expected: literalText(dtype),
        found: `${typeof value} ${String(value)}`,
      });
    requireTileShape(draft, shape);
    return [dataType(dtype, shape)];
  },

  block_index: gridScalar,
  grid_size: gridScalar,
  cluster_rank: gridScalar,
  thread_index: () => [scalarType(i32)],

  size(draft, context) {
    requireDimensions(draft, draft.attributes.of, context);
    return [scalarType(i32)];
  },

  iota(draft) {
    const { dtype, shape, axis } = draft.attributes;
    requireFunction(draft, dtype, (each) => inDomain("number", each));
    requireTileShape(draft, shape);
    requireAxis(draft, axis, shape.length);
    const last = (shape[axis] ?? 1) - 1;
    if (isInteger(dtype) && !fitsInteger(dtype, BigInt(last)))
      fail(draft, "TW2007", `iota counts to ${last}, which ${dtype.name} cannot hold`, {
        expected: literalText(dtype),
        found: String(last),
      });
    return [dataType(dtype, shape)];
  },

  unary(draft) {
    const source = dataOperand(draft, "the operand", draft.operands.source);
    const { fn } = draft.attributes;
    requireFunction(draft, source.dtype, (each) => acceptsUnary(fn, each));
    requireApproximation(draft, source.dtype);
    requireManner(draft, source.dtype);
    return [source];
  },

  classify(draft) {
    const source = dataOperand(draft, "the operand", draft.operands.source);
    const { fn } = draft.attributes;
    requireFunction(draft, source.dtype, (each) => acceptsClassify(fn, each));
    return [dataType(bool, dataShape(source))];
  },

  binary(draft) {
    const left = dataOperand(draft, "the left operand", draft.operands.left);
    const right = dataOperand(draft, "the right operand", draft.operands.right);
    const { fn } = draft.attributes;
    sameTypes(draft, left, right);
    requireFunction(draft, left.dtype, (each) => acceptsBinary(fn, each));
    requireApproximation(draft, left.dtype);
    requireManner(draft, left.dtype);
    requireFactors(draft, left.dtype);
    return [left];
  },

  compare(draft) {
    const left = dataOperand(draft, "the left operand", draft.operands.left);
    const right = dataOperand(draft, "the right operand", draft.operands.right);
    const { predicate } = draft.attributes;
    sameTypes(draft, left, right);
    requireFunction(draft, left.dtype, (each) => acceptsCompare(predicate, each));
    return [dataType(bool, dataShape(left))];
  },

  fma(draft) {
    const a = dataOperand(draft, "the first operand", draft.operands.a);
    const b = dataOperand(draft, "the second operand", draft.operands.b);
    const c = dataOperand(draft, "the third operand", draft.operands.c);
    sameTypes(draft, a, b);
    sameTypes(draft, a, c);
    requireFunction(draft, a.dtype, acceptsFused);
    requireManner(draft, a.dtype);
    return [a];
  },

  assume(draft, context) {
    const source = dataOperand(draft, "the operand", draft.operands.source);
    const { multipleOf = 1, least, greatest, below } = draft.attributes;
    if (!isInteger(source.dtype))
      fail(draft, "TW2106", `${opName(draft)} promises something of ${source.dtype.name}`, {
        expected: "an integer format",
        found: source.dtype.name,
      });
    if (below !== undefined) requireDimensions(draft, below, context);
    const isEmpty = least !== undefined && greatest !== undefined && least > greatest;
    if (!isPositiveInteger(multipleOf) || isEmpty)
      fail(draft, "TW2106", `${opName(draft)} promises what no number is`, {
        expected:
          "a multiple of a positive number, or bounds of which the second is not below the first",
        found: promiseText(draft.attributes),
      });
    return [source];
  },

  select(draft) {
    const condition = dataOperand(draft, "the condition", draft.operands.condition);
    const ifTrue = dataOperand(draft, "the first choice", draft.operands.ifTrue);
    const ifFalse = dataOperand(draft, "the second choice", draft.operands.ifFalse);
    requireBool(draft, "the condition", condition.dtype);
    sameTypes(draft, ifTrue, ifFalse);
    sameShapes(draft, dataShape(ifTrue), dataShape(condition));
    return [ifTrue];
  },

  cast(draft) {
    const source = dataOperand(draft, "the operand", draft.operands.source);
    const { dtype, overflow, rounding } = draft.attributes;
    const { overflows, roundings } = conversionChoices(source.dtype, dtype);
    requireChoice(draft, source.dtype, "overflow", overflow, overflows);
    requireChoice(draft, source.dtype, "rounding", rounding, roundings);
    return [dataType(dtype, dataShape(source))];
  },

  inline_ptx: inlinePtx,
  inline_ptx_memory: inlinePtx,
  is_simulated: () => [scalarType(bool)],
  optimization_barrier: (draft) =>
    draft.operands.values.map((value) => dataOperand(draft, "a value", value)),

  bitcast_width(draft) {
    const source = dataOperand(draft, "the operand", draft.operands.source);
    const { dtype } = draft.attributes;
    requireBits(draft, source.dtype, dtype);
    const shape = dataShape(source);
    const bits = (shape.at(-1) ?? 0) * source.dtype.bits;
    if (shape.length > 0 && source.dtype.bits !== dtype.bits && bits % dtype.bits === 0)
      return [dataType(dtype, shape.with(-1, bits / dtype.bits))];
    const multiple = dtype.bits / source.dtype.bits;
    return fail(draft, "TW2012", `the bits of ${typeText(source)} are no ${dtype.name}`, {
      expected: `a last axis of a multiple of ${multiple} elements`,
      found: typeText(source),
      remedy:
        shape.length === 0
          ? `choose a format of ${source.dtype.bits} bits, or cast`
          : `make the last axis a multiple of ${multiple}`,
    });
  },

  bitcast(draft) {
    const source = dataOperand(draft, "the operand", draft.operands.source);
    const { dtype } = draft.attributes;
    requireBits(draft, source.dtype, dtype);
    if (source.dtype.bits !== dtype.bits)
      fail(draft, "TW2012", `${source.dtype.name} and ${dtype.name} differ in width`, {
        expected: `a format of ${source.dtype.bits} bits`,
        found: `${dtype.name}, of ${dtype.bits} bits`,
      });
    return [dataType(dtype, dataShape(source))];
  },
};
