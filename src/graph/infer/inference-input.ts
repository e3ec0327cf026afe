/**
 * What inference sees of an op, and how it reports. A draft has everything of an op but its results;
 * `declared` are the types that the text or the recorder asks for, which ops such as convert need.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DiagnosticCode } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { elementKind, elements } from "../ops/elements.ts";
import type { ElementKind } from "../ops/elements.ts";
import type { GraphRegion, GraphValue } from "../ops/node.ts";
import type { GraphAttributes, GraphOpKind, GraphOperands, GraphRegions } from "../ops/table.ts";
import { isTensor, sameType, tensorType, typeText } from "../ops/types.ts";
import type { GraphType, TensorType } from "../ops/types.ts";

export interface Draft<K extends GraphOpKind = GraphOpKind> {
  readonly kind: K;
  readonly operands: GraphOperands<K>;
  readonly attributes: GraphAttributes<K>;
  readonly regions: GraphRegions<K>;
  readonly declared: readonly GraphType[];
  readonly location: Location;
}

export type InferRule<K extends GraphOpKind> = (draft: Draft<K>) => readonly GraphType[];

export type InferRules<K extends GraphOpKind> = { readonly [N in K]: InferRule<N> };

export function reject(
  draft: Draft,
  code: DiagnosticCode,
  message: string,
  expected: string,
  found: string,
): never {
  const { kind, location } = draft;
  throw new TilewrightError({ code, message: `${kind}: ${message}`, location, expected, found });
}

/** The type of an operand that has to be a tensor of a known shape. */
export function tensorOf(draft: Draft, value: GraphValue): TensorType {
  if (isTensor(value.type)) return value.type;
  return reject(draft, "TW9102", "an operand is no tensor", "a tensor", typeText(value.type));
}

/** The type that the op was declared to have; ops whose operands say nothing of it need one. */
export function declaredTensor(draft: Draft, index = 0): TensorType {
  const type = draft.declared[index];
  if (type !== undefined && isTensor(type)) return type;
  const found = type === undefined ? "nothing" : typeText(type);
  return reject(draft, "TW9106", "the result's type has to be given", "a tensor type", found);
}

export function shapeText(shape: readonly number[]): string {
  return `[${shape.join(", ")}]`;
}

export function requireKinds(
  draft: Draft,
  type: TensorType,
  kinds: readonly ElementKind[],
): TensorType {
  if (kinds.includes(elementKind(type.element))) return type;
  return reject(
    draft,
    "TW9102",
    `it is not defined for ${type.element}`,
    `elements that are ${kinds.join(", ")}`,
    typeText(type),
  );
}

/** Fails unless all operands have one type, which is returned. */
export function requireSame(draft: Draft, values: readonly GraphValue[]): TensorType {
  const [first, ...rest] = values.map((value) => tensorOf(draft, value));
  if (first === undefined) throw new Error("an op has operands");
  const other = rest.find((type) => !sameType(type, first));
  if (other === undefined) return first;
  return reject(
    draft,
    "TW9101",
    "its operands have different types",
    typeText(first),
    typeText(other),
  );
}

export function sameShape(left: readonly number[], right: readonly number[]): boolean {
  return left.length === right.length && left.every((extent, axis) => extent === right[axis]);
}

export function requireShape(
  draft: Draft,
  what: string,
  expected: readonly number[],
  found: readonly number[],
): void {
  if (!sameShape(expected, found))
    reject(draft, "TW9104", `${what} do not fit`, shapeText(expected), shapeText(found));
}

export function requireFit(
  draft: Draft,
  holds: boolean,
  message: string,
  expected: string,
  found: string,
): void {
  if (!holds) reject(draft, "TW9104", message, expected, found);
}

/** Fails unless the axes are different ones of a rank. */
export function requireAxes(
  draft: Draft,
  name: string,
  axes: readonly number[],
  rank: number,
): void {
  const valid = axes.every((axis) => Number.isInteger(axis) && axis >= 0 && axis < rank);
  if (!valid || new Set(axes).size !== axes.length)
    reject(
      draft,
      "TW9103",
      `${name} are not different axes of rank ${rank}`,
      rank === 0 ? "no axes" : `different axes from 0 to ${rank - 1}`,
      shapeText(axes),
    );
}

/** Fails unless axes are listed in rising order. */
export function requireRising(draft: Draft, name: string, axes: readonly number[]): void {
  if (axes.some((axis, i) => i > 0 && axis < (axes[i - 1] ?? axis)))
    reject(draft, "TW9103", `${name} are not in order`, "rising axes", shapeText(axes));
}

/** Fails unless a region computes in the elements' own types, or in wider ones of their kind. */
export function requirePromotion(
  draft: Draft,
  from: readonly TensorType[],
  to: readonly TensorType[],
): void {
  for (const [i, { element }] of from.entries()) {
    const wide = to[i]?.element ?? element;
    const isWider =
      elementKind(element) === elementKind(wide) && elements[wide].bits > elements[element].bits;
    if (wide !== element && !isWider)
      reject(draft, "TW9105", "a region computes in another type", `${element} or wider`, wide);
  }
}

/** Fails unless values are scalars with the elements of the given types. */
export function requireScalars(
  draft: Draft,
  name: string,
  values: readonly GraphValue[],
  types: readonly TensorType[],
): void {
  for (const [i, type] of types.entries()) {
    const expected = scalarOf(type);
    const found = values[i]?.type ?? expected;
    if (!sameType(expected, found))
      reject(draft, "TW9101", `${name} have other types`, typeText(expected), typeText(found));
  }
}

export function requireCount(
  draft: Draft,
  name: string,
  list: readonly unknown[],
  count: number,
): void {
  if (list.length !== count)
    reject(draft, "TW9104", `${name} has another length`, `${count}`, `${list.length}`);
}

/** The extent of an axis that is known to be there. */
export function extentOf(shape: readonly number[], axis: number): number {
  const extent = shape[axis];
  if (extent === undefined) throw new Error(`axis ${axis} of ${shapeText(shape)}`);
  return extent;
}

export function scalarOf({ element }: TensorType): TensorType {
  return tensorType(element, []);
}

function typesText(types: readonly GraphType[]): string {
  return types.length === 0 ? "nothing" : types.map(typeText).join(", ");
}

/** Fails unless the region takes these types. */
export function requireParameters(
  draft: Draft,
  region: GraphRegion,
  types: readonly GraphType[],
): void {
  requireTypes(draft, "parameters", types, region.parameters);
}

/** Fails unless the region returns these types. */
export function requireResults(
  draft: Draft,
  region: GraphRegion,
  types: readonly GraphType[],
): void {
  requireTypes(draft, "results", types, region.results);
}

function requireTypes(
  draft: Draft,
  what: string,
  types: readonly GraphType[],
  values: readonly GraphValue[],
): void {
  const found = values.map(({ type }) => type);
  const equal =
    found.length === types.length && types.every((type, i) => sameType(type, found[i] ?? type));
  if (!equal)
    reject(draft, "TW9105", `a region's ${what} are others`, typesText(types), typesText(found));
}

/** The single tensors that a region returns; used where their element decides the op's result. */
export function scalarResults(
  draft: Draft,
  region: GraphRegion,
  count: number,
): readonly TensorType[] {
  const found = region.results.map(({ type }) => type);
  if (found.length === count && found.every((type) => isTensor(type) && type.shape.length === 0))
    return found as readonly TensorType[];
  return reject(
    draft,
    "TW9105",
    "a region's results are others",
    `${count} scalars`,
    typesText(found),
  );
}
