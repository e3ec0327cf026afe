/**
 * An op as lists and attributes, as text has it, and as the table has it. Short and generic form both
 * read into parts and print from them, so a form knows text alone and nothing of the table's types.
 */
import type { Location } from "../../support/location.ts";
import type { Attribute, AttributeMap } from "../ops/attribute.ts";
import type { Form } from "../ops/forms.ts";
import { graphOp, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphOpParts, GraphRegion, GraphValue } from "../ops/node.ts";
import type { OperandArity, RegionArity, TextForm } from "../ops/schema.ts";
import { graphOpTable, isGraphOpKind } from "../ops/table.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { typeText } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";
import { didYouMean, nearestName } from "../../support/options.ts";
import { attributeText } from "./attributes.ts";

export interface OpParts {
  readonly operands: readonly GraphValue[];
  readonly attributes: AttributeMap;
  readonly regions: readonly GraphRegion[];
  readonly resultTypes: readonly GraphType[];
}

/** What is wrong with the parts of an op. */
export class PartsMismatch extends Error {
  readonly expected: string;
  readonly found: string;

  constructor(message: string, expected: string, found: string) {
    super(message);
    this.expected = expected;
    this.found = found;
  }
}

/** Attributes of MLIR that say how operands are grouped; printed where an op needs them. */
const segmentNames = ["operandSegmentSizes", "operand_segment_sizes"];

export function segmentsOf(attributes: AttributeMap): readonly number[] | undefined {
  const found = segmentNames.map((name) => attributes.get(name)).find((each) => each !== undefined);
  return found?.kind === "array" ? found.items.map(Number) : undefined;
}

/** The sizes of an op's groups of operands, written where the groups would be ambiguous. */
export function writtenSegments(op: AnyGraphOp): readonly number[] | undefined {
  const slots = Object.entries(graphOpTable[op.kind].operands);
  const operands = op.operands as { readonly [name: string]: GraphValue | readonly GraphValue[] };
  const sizes = slots.map(([name]) => [operands[name] ?? []].flat().length);
  const total = sizes.reduce((sum, each) => sum + each, 0);
  const arities = slots.map(([, arity]) => arity);
  return op.kind === "chlo.scan" || shares(arities, total)?.join() !== sizes.join()
    ? sizes
    : undefined;
}

/** How many of `count` items each slot takes: one, none or one, or an equal share of the rest. */
function shares(
  slots: readonly (OperandArity | RegionArity)[],
  count: number,
): readonly number[] | undefined {
  const fixed = slots.filter((arity) => arity === "one").length;
  const many = slots.filter((arity) => arity === "many").length;
  const rest = count - fixed;
  const optional = slots.length - fixed - many;
  if (rest < 0) return undefined;
  if (many > 0 && (rest % many !== 0 || optional > 0)) return undefined;
  if (many === 0 && rest > optional) return undefined;
  let left = rest;
  return slots.map((arity) => {
    if (arity === "one") return 1;
    if (arity === "many") return rest / many;
    return left-- > 0 ? 1 : 0;
  });
}

/** The same by the sizes that an attribute gives, where one does. */
function countsOf(
  slots: readonly (OperandArity | RegionArity)[],
  count: number,
  sizes: readonly number[] | undefined,
): readonly number[] | undefined {
  if (sizes === undefined) return shares(slots, count);
  const isFilled =
    sizes.length === slots.length &&
    sizes.reduce((sum, each) => sum + each, 0) === count &&
    slots.every((arity, slot) => {
      const size = sizes[slot] ?? 0;
      return arity === "one" ? size === 1 : size >= 0 && (arity === "many" || size <= 1);
    });
  return isFilled ? sizes : undefined;
}

function fillSlots<T>(
  what: string,
  schema: { readonly [name: string]: OperandArity | RegionArity },
  items: readonly T[],
  sizes?: readonly number[],
): { readonly [name: string]: T | readonly T[] | undefined } {
  const counts = countsOf(Object.values(schema), items.length, sizes);
  if (counts === undefined)
    throw new PartsMismatch(
      `the op has ${items.length} ${what}`,
      Object.entries(schema)
        .map(([name, arity]) => (arity === "one" ? name : `${name} (${arity})`))
        .join(", ") || "none",
      `${items.length}`,
    );
  let next = 0;
  return Object.fromEntries(
    Object.entries(schema).map(([name, arity], slot) => {
      const taken = items.slice(next, (next += counts[slot] ?? 0));
      return [name, arity === "many" ? Object.freeze(taken) : taken[0]];
    }),
  );
}

/** The word of an enumeration that an attribute nearly spells. */
function meantWord(form: Form<unknown>, attribute: Attribute): string {
  const spelled =
    attribute.kind === "string"
      ? attribute.value
      : attribute.kind === "dialect"
        ? (attribute.body?.split(" ").at(-1) ?? "")
        : "";
  return form.words === undefined || spelled === "" ? "" : didYouMean(spelled, form.words);
}

const longestShown = 80;

/** An attribute as a report shows it. */
function shortText(attribute: Attribute): string {
  if (attribute.kind === "dense") return `a constant of type ${typeText(attribute.literal.type)}`;
  const text = attributeText(attribute);
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
}

function readAttributes(
  kind: GraphOpKind,
  given: AttributeMap,
): { readonly values: { readonly [name: string]: unknown }; readonly extra: AttributeMap } {
  const forms = graphOpTable[kind].attributes;
  const values: { [name: string]: unknown } = {};
  for (const [name, form] of Object.entries(forms)) {
    const attribute = given.get(name);
    if (attribute === undefined) {
      if (form.presence === undefined) {
        const others = [...given.keys()].filter((each) => !Object.hasOwn(forms, each));
        const near = nearestName(name, others);
        const message = `the attribute ${name} is missing`;
        throw new PartsMismatch(
          near === undefined ? message : `${message}, and ${near} is none of the op's`,
          form.what,
          near ?? "nothing",
        );
      }
      if (form.presence === "default") values[name] = form.fallback;
      continue;
    }
    const value = form.read(attribute);
    if (value === undefined)
      throw new PartsMismatch(
        `the attribute ${name} is of another form${meantWord(form, attribute)}`,
        form.what,
        shortText(attribute),
      );
    values[name] = value;
  }
  const extra = [...given].filter(
    ([name]) => !Object.hasOwn(forms, name) && !segmentNames.includes(name),
  );
  return { values, extra: new Map(extra) };
}

/** Forms of ops with one result, and of those with none; the others may have any number. */
const oneResult: ReadonlySet<TextForm> = new Set([
  ...(["short", "function", "arrow", "result", "compare", "select", "constant", "slice"] as const),
  ...(["reduce_precision", "dot_general", "convolution", "get_tuple_element"] as const),
  ...(["sharding_constraint"] as const),
]);
const noResult: ReadonlySet<TextForm> = new Set(["expect", "expect_types", "expect_const"]);

/** How many results an op has; undefined where its kind does not say. */
function resultCount(kind: GraphOpKind): number | undefined {
  if (kind === "stablehlo.rng_bit_generator") return 2;
  const { text } = graphOpTable[kind];
  return oneResult.has(text) ? 1 : noResult.has(text) ? 0 : undefined;
}

function requireResultCount(kind: GraphOpKind, found: number): void {
  const expected = resultCount(kind);
  if (expected !== undefined && found !== expected)
    throw new PartsMismatch(`the op has ${found} results`, `${expected}`, `${found}`);
}

/** The op that text calls `name`; one that the table does not have is kept as foreign. */
export function opOfParts(
  name: string,
  parts: OpParts,
  at: { readonly location: Location; readonly name: string },
): AnyGraphOp {
  const kind = isGraphOpKind(name) ? name : "foreign";
  const schema = graphOpTable[kind];
  requireResultCount(kind, parts.resultTypes.length);
  const { values, extra } =
    kind === "foreign"
      ? { values: { op_name: name }, extra: parts.attributes }
      : readAttributes(kind, parts.attributes);
  const built = {
    operands: fillSlots(
      "operands",
      schema.operands,
      parts.operands,
      kind === "foreign" ? undefined : segmentsOf(parts.attributes),
    ),
    attributes: values,
    regions: fillSlots("regions", schema.regions, parts.regions),
    results: parts.resultTypes.map((type) => graphValue(type)),
    location: at.location,
    name: at.name,
    extra,
  };
  // The table's schema of this kind is what the parts were filled by.
  return graphOp(kind, built as unknown as GraphOpParts<typeof kind>) as AnyGraphOp;
}

function sameValue(left: unknown, right: unknown): boolean {
  if (left instanceof Map && right instanceof Map) return left.size === 0 && right.size === 0;
  return Object.is(left, right) || JSON.stringify(left) === JSON.stringify(right);
}

/** The attributes of an op for printing: those of the table that differ from their default, then the rest. */
export function attributesOf(op: AnyGraphOp): AttributeMap {
  if (op.kind === "foreign") return op.extra;
  const forms = graphOpTable[op.kind].attributes;
  const values = op.attributes as { readonly [name: string]: unknown };
  const written: [string, Attribute][] = [];
  for (const [name, form] of Object.entries(forms)) {
    const value = values[name];
    if (value === undefined) continue;
    if (form.presence === "default" && sameValue(value, form.fallback)) continue;
    written.push([name, form.write(value)]);
  }
  return new Map([...written, ...op.extra]);
}

/** The parts of an op for printing. */
export function partsOf(op: AnyGraphOp): OpParts {
  return {
    operands: operandsOf(op),
    attributes: attributesOf(op),
    regions: regionsOf(op),
    resultTypes: op.results.map(({ type }) => type),
  };
}
