/** Probes of everything that elementwise emission can be asked for, in both of its forms. */
import {
  acceptsBinary,
  acceptsClassify,
  acceptsCompare,
  acceptsFused,
  acceptsUnary,
  binaryFunctions,
  acceptsFlush,
  acceptsRounding,
  classifyFunctions,
  comparePredicates,
  directedRoundings,
  roundedFunctions,
  unaryFunctions,
} from "../src/formats/arithmetic/functions.ts";
import type {
  BinaryFunction,
  ClassifyFunction,
  ComparePredicate,
  RoundingManner,
  UnaryFunction,
} from "../src/formats/arithmetic/functions.ts";
import { bool, dtypeNames, dtypes, isFloat } from "../src/formats/dtype.ts";
import type { DType } from "../src/formats/dtype.ts";
import { conversionChoices } from "../src/formats/conversion-rules.ts";
import type { ConversionOptions } from "../src/formats/floats.ts";
import { castWords } from "../src/ptx/emit/elementwise/cast-words.ts";
import { emitCast } from "../src/ptx/emit/elementwise/casts.ts";
import {
  emitBinary,
  emitClassify,
  emitCompare,
  emitFma,
  emitSelect,
  emitUnary,
} from "../src/ptx/emit/elementwise/functions.ts";
import {
  binaryWord,
  classifyWord,
  compareWord,
  fmaWord,
  selectWord,
  unaryWord,
} from "../src/ptx/emit/elementwise/words.ts";
import { slotsOf } from "../src/ptx/emit/values.ts";
import type { Register } from "../src/ptx/module.ts";
import type { Probe } from "./ptx-probe.ts";
import { probeWidth } from "./ptx-probe.ts";
import { inexactFunctions } from "./support/inexact-functions.ts";

/** What a probe computes, for a reference to compute the same. */
export type Elementwise =
  | ({ readonly kind: "unary"; readonly fn: UnaryFunction; readonly dtype: DType } & RoundingManner)
  | ({
      readonly kind: "binary";
      readonly fn: BinaryFunction;
      readonly dtype: DType;
    } & RoundingManner)
  | { readonly kind: "compare"; readonly predicate: ComparePredicate; readonly dtype: DType }
  | { readonly kind: "classify"; readonly fn: ClassifyFunction; readonly dtype: DType }
  | ({ readonly kind: "fma"; readonly dtype: DType } & RoundingManner)
  | { readonly kind: "select"; readonly dtype: DType }
  | ({ readonly kind: "cast"; readonly from: DType; readonly to: DType } & ConversionOptions);

export interface ElementwiseProbe extends Probe {
  readonly computes: Elementwise;
}

const formats = dtypeNames.map((name) => dtypes[name] as DType);

function some(registers: readonly Register[] | undefined, index = 0): Register {
  const register = registers?.[index];
  if (register === undefined) throw new Error("an operand is missing");
  return register;
}

/** Everything that is defined, once. */
export function allElementwise(): readonly Elementwise[] {
  return formats.flatMap((dtype): readonly Elementwise[] => [
    ...unaryFunctions
      .filter((fn) => acceptsUnary(fn, dtype))
      .map((fn) => ({ kind: "unary", fn, dtype }) as const),
    ...binaryFunctions
      .filter((fn) => acceptsBinary(fn, dtype))
      .map((fn) => ({ kind: "binary", fn, dtype }) as const),
    ...comparePredicates
      .filter((predicate) => acceptsCompare(predicate, dtype))
      .map((predicate) => ({ kind: "compare", predicate, dtype }) as const),
    ...classifyFunctions
      .filter((fn) => acceptsClassify(fn, dtype))
      .map((fn) => ({ kind: "classify", fn, dtype }) as const),
    ...(acceptsFused(dtype) ? [{ kind: "fma", dtype } as const] : []),
    { kind: "select", dtype },
    ...formats.flatMap((to) => castsTo(dtype, to)),
  ]);
}

function castsTo(from: DType, to: DType): readonly Elementwise[] {
  if (from === to) return [];
  const hasChoice = to.name === "f8e4m3fn" || to.name === "f8e5m2";
  const plain = { kind: "cast", from, to } as const;
  return hasChoice ? [plain, { ...plain, overflow: "nan" }] : [plain];
}

/** Conversions with options: every one that there is, and each rounding with the bound of the format. */
export function chosenCasts(): readonly Elementwise[] {
  return formats.flatMap((from) => formats.flatMap((to) => choicesOf(from, to)));
}

function choicesOf(from: DType, to: DType): readonly Elementwise[] {
  const { overflows, roundings } = conversionChoices(from, to);
  const bounds = [undefined, ...overflows];
  return bounds.flatMap((overflow) =>
    [undefined, ...roundings].flatMap((rounding): readonly Elementwise[] => {
      const isPlain = overflow === undefined && rounding === undefined;
      const isSame = from === to && overflow !== "unit";
      return isPlain || isSame ? [] : [{ kind: "cast", from, to, overflow, rounding }];
    }),
  );
}

/** Arithmetic in every manner that there is but the usual one. */
export function manneredArithmetic(): readonly Elementwise[] {
  return formats.flatMap((dtype) =>
    roundedFunctions.flatMap((fn) =>
      [undefined, ...directedRoundings].flatMap((rounding) =>
        [undefined, true].flatMap((flushToZero): readonly Elementwise[] => {
          const accepted =
            (rounding === undefined || acceptsRounding(fn, dtype)) &&
            (flushToZero === undefined || acceptsFlush(fn, dtype));
          if (!accepted || (rounding === undefined && flushToZero === undefined)) return [];
          const manner = { dtype, rounding, flushToZero };
          if (fn === "fma") return [{ kind: "fma", ...manner }];
          if (fn === "sqrt") return [{ kind: "unary", fn, ...manner }];
          return [{ kind: "binary", fn, ...manner }];
        }),
      ),
    ),
  );
}

/** The formats of the operands. */
function operandsOf(computes: Elementwise): readonly DType[] {
  switch (computes.kind) {
    case "unary":
    case "classify":
      return [computes.dtype];
    case "binary":
    case "compare":
      return [computes.dtype, computes.dtype];
    case "fma":
      return [computes.dtype, computes.dtype, computes.dtype];
    case "select":
      return [bool, computes.dtype, computes.dtype];
    case "cast":
      return [computes.from];
  }
}

/** The format of the result. */
export function resultFormat(computes: Elementwise): DType {
  if (computes.kind === "cast") return computes.to;
  return computes.kind === "compare" || computes.kind === "classify" ? bool : computes.dtype;
}

function nameOf(computes: Elementwise): string {
  switch (computes.kind) {
    case "cast":
      return ["cast", computes.from.name, computes.to.name, computes.overflow, computes.rounding]
        .filter((part) => part !== undefined)
        .join("_");
    case "compare":
      return `compare_${computes.predicate}_${computes.dtype.name}`;
    case "select":
      return `${computes.kind}_${computes.dtype.name}`;
    case "fma":
      return `fma_${computes.dtype.name}${mannerName(computes)}`;
    case "unary":
    case "binary":
      return `${computes.kind}_${computes.fn}_${computes.dtype.name}${mannerName(computes)}`;
    case "classify":
      return `${computes.kind}_${computes.fn}_${computes.dtype.name}`;
  }
}

function mannerName({ rounding, flushToZero }: RoundingManner): string {
  const parts = [rounding, flushToZero === true ? "flushed" : undefined];
  return parts.map((part) => (part === undefined ? "" : `_${part}`)).join("");
}

function emitElement(computes: Elementwise): Probe["emit"] {
  return (emission, [first, second, third]) => {
    const [a, b, c] = [() => some(first), () => some(second), () => some(third)];
    switch (computes.kind) {
      case "unary":
        return [emitUnary(emission, computes.fn, computes.dtype, a(), computes)];
      case "classify":
        return [emitClassify(emission, computes.fn, computes.dtype, a())];
      case "binary":
        return [emitBinary(emission, computes.fn, computes.dtype, a(), b(), computes)];
      case "compare":
        return [emitCompare(emission, computes.predicate, computes.dtype, a(), b())];
      case "fma":
        return [emitFma(emission, computes.dtype, a(), b(), c(), computes)];
      case "select":
        return [emitSelect(emission, computes.dtype, a(), b(), c())];
      case "cast": {
        const { from, to } = computes;
        return [emitCast(emission, from, to, a(), computes)];
      }
    }
  };
}

function emitWords(computes: Elementwise, width: number): Probe["emit"] {
  return (emission, operands) => {
    if (computes.kind === "cast") return castWords(emission, computes, operands[0] ?? [], width);
    const { dtype } = computes;
    const slots = slotsOf(dtype);
    return Array.from({ length: width / slots }, (_, index) => {
      const [a, b, c] = [0, 1, 2].map((operand) => () => some(operands[operand], index)) as [
        () => Register,
        () => Register,
        () => Register,
      ];
      switch (computes.kind) {
        case "unary":
          return [unaryWord(emission, computes.fn, dtype, a(), slots, computes)];
        case "classify":
          return classifyWord(emission, computes.fn, dtype, a(), slots);
        case "binary":
          return [binaryWord(emission, computes.fn, dtype, a(), b(), slots, computes)];
        case "compare":
          return compareWord(emission, computes.predicate, dtype, a(), b(), slots);
        case "fma":
          return [fmaWord(emission, dtype, a(), b(), c(), computes)];
        case "select": {
          const conditions = operands[0]?.slice(index * slots, (index + 1) * slots) ?? [];
          return [selectWord(emission, dtype, conditions, b(), c())];
        }
      }
    }).flat();
  };
}

export function elementwiseProbe(computes: Elementwise, level: Probe["level"]): ElementwiseProbe {
  const shape = { level, operands: operandsOf(computes), result: resultFormat(computes) } as const;
  const name = `${nameOf(computes)}_${level}`;
  const outline = { ...shape, name, computes, emit: emitElement(computes) };
  return level === "element"
    ? outline
    : { ...outline, emit: emitWords(computes, probeWidth(outline)) };
}

/** Floats by way of their transcendental functions are not exact; all others are. */
export function isExact(computes: Elementwise): boolean {
  if (computes.kind === "binary" && computes.fn === "pow") return !isFloat(computes.dtype);
  return !("fn" in computes) || !inexactFunctions.has(computes.fn);
}
