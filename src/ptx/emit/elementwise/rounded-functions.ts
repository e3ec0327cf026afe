/**
 * Functions of f32 whose results are rounded to bf16 or f16 at once, and so may be computed only as exactly as that shows:
 *
 *   %1 = unary %0 {fn = logistic}          may be off by 2^-11 of itself: %1 and %2 are seen by %3 alone
 *   %2 = binary %0, %1 {fn = mul}
 *   %3 = cast %2 {dtype = bf16}
 *
 * From the ends backwards, each value of f32 has the error, relative to itself, that all of its users permit. What may make an error greater
 * permits none: sums of numbers of other signs, functions of them, reductions, what is stored or carried in f32. Where both operands of a
 * product have errors, each may have half of its.
 */
import type { AnyOp, Op, Region, Value } from "../../../ir/node.ts";
import { definingOps } from "../../../ir/rewrite/analysis.ts";
import type { OpKind } from "../../../ir/ops.ts";
import { operandValues, walkOps } from "../../../ir/traverse.ts";
import { isMannered } from "../../../formats/arithmetic/rounded.ts";
import { isSingleFunction } from "../../math/index.ts";
import type { HalfFormat } from "../../math/index.ts";

/** What rounding to a format hides, in 2^-14 of a number, which is also how exact the format's functions are. */
const hidden: { readonly [F in HalfFormat]: number } = { bf16: 8, f16: 1 };

function isHidden(name: string): name is HalfFormat {
  return Object.hasOwn(hidden, name);
}

type Unary = Op<"unary">;

function isSingle({ type }: Value): boolean {
  return (type.kind === "tile" || type.kind === "scalar") && type.dtype.name === "f32";
}

/** Whether an op may be computed in a shorter form. */
function isCandidate(op: AnyOp): op is Unary {
  if (op.kind !== "unary") return false;
  const { fn, approximate = false, ...manner } = op.attributes;
  return (
    isSingleFunction(fn) && !approximate && !isMannered(manner) && isSingle(op.operands.source)
  );
}

/** Functions whose results have no sign. */
const unsigned: ReadonlySet<string> = new Set(["exp", "exp2", "logistic", "erfc", "abs", "sqrt"]);

/** Ops whose results have the elements of their operands, each as it is. */
const moves: ReadonlySet<OpKind> = new Set<OpKind>([
  ...(["broadcast", "reshape", "transpose", "slice", "concatenate"] as const),
  ...(["layout_cast", "convert_layout"] as const),
]);

class Analysis {
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  readonly #carries = new Map<Value, boolean>();
  readonly #permitted = new Map<Value, number>();

  constructor(body: Region) {
    this.#definitions = definingOps(body);
  }

  /** What all users of the op's result so far permit; they come before it. */
  ofResult({ results: [result] }: AnyOp): number {
    return result === undefined ? 0 : (this.#permitted.get(result) ?? 0);
  }

  /** Whether a value may have an error that this analysis gives it; of what is not known, it may. */
  carries(value: Value): boolean {
    const known = this.#carries.get(value);
    if (known !== undefined) return known;
    const op = this.#definitions.get(value);
    this.#carries.set(value, true);
    const found =
      op !== undefined &&
      (isCandidate(op) ||
        op.results.length !== 1 ||
        operandValues(op).some((operand) => this.carries(operand)));
    this.#carries.set(value, found);
    return found;
  }

  isUnsigned(value: Value): boolean {
    const op = this.#definitions.get(value);
    if (op?.kind === "constant") return Number(op.attributes.value) >= 0;
    if (op?.kind === "unary") return unsigned.has(op.attributes.fn) || this.#isUnsignedLog(op);
    if (op?.kind === "binary") return this.#isUnsignedBinary(op);
    const isMoved = op !== undefined && moves.has(op.kind);
    return isMoved && operandValues(op).every((operand) => this.isUnsigned(operand));
  }

  #isUnsignedBinary({ operands: { left, right }, attributes: { fn } }: Op<"binary">): boolean {
    if (fn === "max") return this.isUnsigned(left) || this.isUnsigned(right);
    if (fn === "mul" && left === right) return true;
    return ["add", "mul", "div"].includes(fn) && this.isUnsigned(left) && this.isUnsigned(right);
  }

  #isUnsignedLog(op: Unary): boolean {
    return op.attributes.fn === "log1p" && this.isUnsigned(op.operands.source);
  }

  /** What a use permits its operand. */
  #byUse(op: AnyOp, value: Value): number {
    if (op.kind === "cast") {
      const { dtype, rounding = "nearest" } = op.attributes;
      return rounding === "nearest" && isHidden(dtype.name) ? hidden[dtype.name] : 0;
    }
    if (op.kind === "select") return op.operands.condition === value ? 0 : this.ofResult(op);
    if (op.kind === "unary") return this.#byFunction(op);
    if (op.kind === "binary") return this.#byBinary(op);
    return moves.has(op.kind) ? this.ofResult(op) : 0;
  }

  #byFunction(op: Unary): number {
    const { fn, approximate: _, ...manner } = op.attributes;
    if (isMannered(manner)) return 0;
    if (fn === "neg" || fn === "abs" || fn === "sqrt") return this.ofResult(op);
    // u / (1 + u) is less than log1p u.
    return this.#isUnsignedLog(op) ? this.ofResult(op) / 2 : 0;
  }

  #byBinary(op: Op<"binary">): number {
    const { left, right } = op.operands;
    const { fn, approximate: _, oftenOne: __, ...manner } = op.attributes;
    if (isMannered(manner)) return 0;
    if (fn === "mul" || fn === "div")
      return this.ofResult(op) / (this.carries(left) && this.carries(right) ? 2 : 1);
    if (fn === "add" && this.isUnsigned(left) && this.isUnsigned(right)) return this.ofResult(op);
    return 0;
  }

  /** Ops are given from the last to the first. */
  visit(op: AnyOp): void {
    for (const value of operandValues(op)) {
      const permitted = Math.min(this.#permitted.get(value) ?? Infinity, this.#byUse(op, value));
      this.#permitted.set(value, permitted);
    }
  }

  /** The format as which a candidate is exact enough. */
  formatOf(op: Unary): HalfFormat | undefined {
    const passesOn = op.attributes.fn === "log1p" && this.carries(op.operands.source);
    const own = this.ofResult(op) / (passesOn ? 2 : 1);
    return (["bf16", "f16"] as const).find((format) => own >= hidden[format]);
  }
}

/** The functions of a kernel that need be no more exact than those of a format are. */
export function roundedFunctions(body: Region): ReadonlyMap<AnyOp, HalfFormat> {
  const ops: AnyOp[] = [];
  walkOps(body, (op) => {
    ops.push(op);
  });
  const found = new Map<AnyOp, HalfFormat>();
  if (!ops.some(isCandidate)) return found;
  const analysis = new Analysis(body);
  for (const op of ops.toReversed()) {
    const format = isCandidate(op) ? analysis.formatOf(op) : undefined;
    if (format !== undefined) found.set(op, format);
    analysis.visit(op);
  }
  return found;
}
