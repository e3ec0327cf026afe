/**
 * Checks that several inference rules share. Each either returns the narrowed type or throws the
 * diagnostic with the op's location:
 *
 *   const source = dataOperand(draft, "the operand", draft.operands.source);   // a tile or scalar
 *   sameTypes(draft, left, right);                                             // TW2003, TW2004
 */
import { isArithmeticFloat } from "../../formats/arithmetic/functions.ts";
import { dtypeNames, dtypes, isFloat } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DiagnosticCode, DiagnosticDetails } from "../../support/diagnostics.ts";
import type { Region, Value } from "../node.ts";
import { opName } from "../op-names.ts";
import { evictions } from "../ops/asynchronous.ts";
import { dimensionsOf, sameShape, shapeText, sizeText } from "../size.ts";
import type { Size } from "../size.ts";
import { dataShape, sameType, typeText } from "../types.ts";
import type { DataType, RefType, Type, TypeKind } from "../types.ts";
import type { Draft, InferContext } from "./inference-input.ts";

/** Lanes share a tile; this many elements is already 8192 registers of each of the 128 lanes. */
const largestTile = 2 ** 20;

/** The draft of any kind: what a shared check needs of it. */
export type AnyDraft = Pick<Draft, "kind" | "attributes" | "location">;

type Details = Pick<DiagnosticDetails, "expected" | "found" | "remedy" | "notes">;

export function fail(
  draft: AnyDraft,
  code: DiagnosticCode,
  message: string,
  details: Details,
): never {
  throw new TilewrightError({ code, message, location: draft.location, ...details });
}

const kindNames: { readonly [K in TypeKind]: string } = {
  scalar: "a scalar",
  tile: "a tile",
  ref: "a ref",
  barrier: "a barrier",
  semaphore: "a semaphore",
  inflight: "an in-flight accumulator",
};

/** The operand's type where it is one of `kinds`. */
function operandOf<K extends TypeKind>(
  draft: AnyDraft,
  name: string,
  value: Value,
  kinds: readonly K[],
): Extract<Type, { kind: K }> {
  const { type } = value;
  if (isOneOf(type, kinds)) return type;
  const wanted = kinds.map((kind) => kindNames[kind]).join(" or ");
  return fail(draft, "TW2002", `${name} of ${opName(draft)} must be ${wanted}`, {
    expected: wanted,
    found: typeText(type),
    ...(type.kind === "ref" && { remedy: "load the window first" }),
    ...(type.kind === "inflight" && { remedy: "wait for the accumulator first" }),
  });
}

function isOneOf<K extends TypeKind>(
  type: Type,
  kinds: readonly K[],
): type is Extract<Type, { kind: K }> {
  return (kinds as readonly TypeKind[]).includes(type.kind);
}

export function dataOperand(draft: AnyDraft, name: string, value: Value): DataType {
  return operandOf(draft, name, value, ["tile", "scalar"]);
}

export function tileOperand(draft: AnyDraft, name: string, value: Value) {
  return operandOf(draft, name, value, ["tile"]);
}

export function scalarOperand(draft: AnyDraft, name: string, value: Value) {
  return operandOf(draft, name, value, ["scalar"]);
}

export function refOperand(draft: AnyDraft, name: string, value: Value): RefType {
  return operandOf(draft, name, value, ["ref"]);
}

export function barrierOperand(draft: AnyDraft, name: string, value: Value) {
  return operandOf(draft, name, value, ["barrier"]);
}

export function semaphoreOperand(draft: AnyDraft, name: string, value: Value) {
  return operandOf(draft, name, value, ["semaphore"]);
}

export function inflightOperand(draft: AnyDraft, name: string, value: Value) {
  return operandOf(draft, name, value, ["inflight"]);
}

/** A tile in registers or a window on memory. */
export function tileOrRefOperand(draft: AnyDraft, name: string, value: Value) {
  return operandOf(draft, name, value, ["tile", "ref"]);
}

/** Positions, counts and ranks are scalars of i32. */
export function indexOperand(draft: AnyDraft, name: string, value: Value): void {
  const { dtype } = scalarOperand(draft, name, value);
  if (dtype.name !== "i32")
    fail(draft, "TW2014", `${name} of ${opName(draft)} must be an i32 scalar`, {
      expected: "i32",
      found: dtype.name,
    });
}

export function sameDTypes(draft: AnyDraft, left: DType, right: DType): void {
  if (left !== right)
    fail(draft, "TW2003", `operands of ${opName(draft)} have different dtypes`, {
      expected: left.name,
      found: right.name,
      remedy: castRemedy(left, right),
    });
}

/** A float that is only stored is not what the other operand should become. */
function castRemedy(left: DType, right: DType): string {
  const stored = [left, right].filter((dtype) => isFloat(dtype) && !isArithmeticFloat(dtype));
  const [first, ...others] = stored;
  if (first === undefined) return `cast one of them, for example with .cast(${left.name})`;
  if (others.length > 0) return "cast both, for example with .cast(f32)";
  const other = first === left ? right : left;
  return other.name === "f32"
    ? `cast the ${first.name} operand with .cast(f32)`
    : `cast the ${first.name} operand with .cast(f32), and the ${other.name} one too`;
}

export function sameShapes(
  draft: AnyDraft,
  left: readonly number[],
  right: readonly number[],
): void {
  if (!sameShape(left, right))
    fail(draft, "TW2004", `operands of ${opName(draft)} have different shapes`, {
      expected: shapeText(left),
      found: shapeText(right),
    });
}

/** Elementwise operands agree in dtype and shape. */
export function sameTypes(draft: AnyDraft, left: DataType, right: DataType): void {
  sameDTypes(draft, left.dtype, right.dtype);
  sameShapes(draft, dataShape(left), dataShape(right));
}

export function requireFunction(
  draft: AnyDraft,
  dtype: DType,
  accepts: (dtype: DType) => boolean,
): void {
  if (!accepts(dtype))
    fail(draft, "TW2005", `${opName(draft)} is not defined for ${dtype.name}`, {
      expected: dtypeNames.filter((name) => accepts(dtypes[name])).join(", "),
      found: dtype.name,
      remedy: functionRemedy(dtype, accepts),
    });
}

/** Numbers are converted; floats, which have their bits beside, may also mean these. */
function functionRemedy(dtype: DType, accepts: (dtype: DType) => boolean): string {
  if (accepts(dtypes.f32))
    return "cast to a format that has the function first, for example with .cast(f32)";
  const integer = "cast to an integer format first, for example with .cast(i32)";
  if (dtype.kind !== "float") return integer;
  return `take its bits first with .bitcast(u${dtype.bits}), or cast to an integer format with .cast(i32)`;
}

export function requireBool(draft: AnyDraft, name: string, dtype: DType): void {
  if (dtype.kind !== "bool")
    fail(draft, "TW2006", `${name} of ${opName(draft)} must be bool`, {
      expected: "bool",
      found: dtype.name,
    });
}

export function isPositiveInteger(number: number): boolean {
  return Number.isSafeInteger(number) && number > 0;
}

/** The extents are positive and the tile is not larger than registers can ever hold. */
export function requireTileShape(draft: AnyDraft, shape: readonly number[]): void {
  if (!shape.every(isPositiveInteger))
    fail(draft, "TW2008", `extents of a tile must be positive integers, not ${shapeText(shape)}`, {
      expected: "positive integers",
      found: shapeText(shape),
    });
  const elements = elementCount(shape);
  if (elements > largestTile)
    fail(draft, "TW2009", `a tile of shape ${shapeText(shape)} is too large`, {
      expected: `at most ${largestTile} elements`,
      found: `${elements} elements, ${Math.ceil(elements / 128)} for each of a program thread's 128 threads`,
    });
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

export function requireAxis(draft: AnyDraft, axis: number, rank: number): void {
  if (!Number.isInteger(axis) || axis < 0 || axis >= rank)
    fail(draft, "TW2020", `${opName(draft)} has no axis ${axis}`, {
      expected: rank === 0 ? "a tile, which has axes" : `an axis from 0 to ${rank - 1}`,
      found: String(axis),
    });
}

/** Each axis exists and none is named twice. */
export function requireAxes(draft: AnyDraft, axes: readonly number[], rank: number): void {
  for (const axis of axes) requireAxis(draft, axis, rank);
  if (new Set(axes).size !== axes.length)
    fail(draft, "TW2021", `${opName(draft)} names an axis twice`, {
      expected: "each axis once",
      found: `[${axes.join(", ")}]`,
    });
}

export function requirePermutation(
  draft: AnyDraft,
  permutation: readonly number[],
  rank: number,
): void {
  const axes = [...permutation].sort((left, right) => left - right);
  if (permutation.length !== rank || axes.some((axis, position) => axis !== position))
    fail(draft, "TW2022", `[${permutation.join(", ")}] does not permute ${rank} axes`, {
      expected: `each of 0 to ${rank - 1} once`,
      found: `[${permutation.join(", ")}]`,
    });
}

/** `items` picked by a permutation that has been checked. */
export function permute<T>(items: readonly T[], permutation: readonly number[]): T[] {
  return permutation.flatMap((axis) => items.slice(axis, axis + 1));
}

/** Numbers among the sizes are positive and named dimensions belong to the kernel. */
export function requireSizes(draft: AnyDraft, sizes: readonly Size[], context: InferContext): void {
  for (const size of sizes) {
    if (typeof size === "number" && !isPositiveInteger(size))
      fail(draft, "TW2008", `extents must be positive integers, not ${shapeText(sizes)}`, {
        expected: "positive integers",
        found: sizeText(size),
      });
    requireDimensions(draft, size, context);
  }
}

/** Named dimensions of a size belong to the kernel and promise what they promise there. */
export function requireDimensions(draft: AnyDraft, size: Size, context: InferContext): void {
  for (const { name, multipleOf } of dimensionsOf(size)) {
    const declared = context.dimensions.find((dimension) => dimension.name === name);
    if (declared === undefined)
      return fail(draft, "TW2011", `the kernel has no dimension ${name}`, {
        expected: listText(context.dimensions.map((dimension) => dimension.name)),
        found: name,
      });
    if (declared.multipleOf !== multipleOf)
      fail(draft, "TW2219", `dimension ${name} promises different divisors`, {
        expected: `a multiple of ${declared.multipleOf}`,
        found: `a multiple of ${multipleOf}`,
      });
  }
}

export function listText(names: readonly string[]): string {
  return names.length === 0 ? "none" : `one of ${names.join(", ")}`;
}

/** "1 index", "2 indices". */
export function countText(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The window's shape where no extent depends on the launch. */
export function staticShape(draft: AnyDraft, ref: RefType): readonly number[] {
  const shape: number[] = [];
  for (const size of ref.shape) {
    if (typeof size !== "number")
      return fail(
        draft,
        "TW2040",
        `${opName(draft)} needs static extents, and ${sizeText(size)} is known at launch`,
        {
          expected: "extents that are numbers",
          found: typeText(ref),
        },
      );
    shape.push(size);
  }
  return shape;
}

export function requireSpace(
  draft: AnyDraft,
  name: string,
  ref: RefType,
  spaces: readonly RefType["space"][],
): void {
  if (!spaces.includes(ref.space))
    fail(draft, "TW2049", `${name} of ${opName(draft)} must lie in ${spaces.join(" or ")}`, {
      expected: spaces.join(" or "),
      found: typeText(ref),
    });
}

export function requireCluster(draft: AnyDraft, context: InferContext): void {
  if (context.grid.every(({ cluster }) => cluster === 1))
    fail(draft, "TW2050", `${opName(draft)} addresses a peer, and the kernel has no cluster`, {
      expected: "a kernel with a cluster",
      found: "a grid without one",
    });
}

/** What is said to the L2 cache is something that it knows. */
export function requireEviction(draft: AnyDraft, evict: string | undefined): void {
  if (evict === undefined || evictions.some((known) => known === evict)) return;
  fail(draft, "TW2079", `the cache cannot evict "${evict}"`, {
    expected: evictions.map((known) => `"${known}"`).join(" or "),
    found: `"${evict}"`,
  });
}

/** The region's parameters have exactly these types. A tracer always gets this right. */
export function requireParameters(
  draft: AnyDraft,
  name: string,
  region: Region,
  types: readonly Type[],
): void {
  const found = region.parameters.map(({ type }) => type);
  if (!sameTypeLists(found, types))
    fail(
      draft,
      "TW2001",
      `region ${name} of ${draft.kind} takes other parameters than it is given`,
      {
        expected: typesText(types),
        found: typesText(found),
      },
    );
}

export function sameTypeLists(left: readonly Type[], right: readonly Type[]): boolean {
  return (
    left.length === right.length &&
    left.every((type, position) => {
      const other = right[position];
      return other !== undefined && sameType(type, other);
    })
  );
}

export function typesText(types: readonly Type[]): string {
  return `(${types.map(typeText).join(", ")})`;
}
