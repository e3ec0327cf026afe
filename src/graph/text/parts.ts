/**
 * An op as lists and attributes, as text has it, and as the table has it. Short and generic form both
 * read into parts and print from them, so a form knows text alone and nothing of the table's types.
 */
import type { Location } from "../../support/location.ts";
import type { Attribute, AttributeMap } from "../ops/attribute.ts";
import { stringAttribute } from "../ops/attribute.ts";
import { graphOp, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphOpParts, GraphRegion, GraphValue } from "../ops/node.ts";
import type { OperandArity, RegionArity } from "../ops/schema.ts";
import { graphOpTable, isGraphOpKind } from "../ops/table.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import type { GraphType } from "../ops/types.ts";

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

function fillSlots<T>(
  what: string,
  schema: { readonly [name: string]: OperandArity | RegionArity },
  items: readonly T[],
  sizes?: readonly number[],
): { readonly [name: string]: T | readonly T[] | undefined } {
  const arities = Object.values(schema);
  const counts = sizes ?? shares(arities, items.length);
  if (counts === undefined || counts.reduce((sum, each) => sum + each, 0) !== items.length)
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

function readAttributes(
  kind: GraphOpKind,
  given: AttributeMap,
): { readonly values: { readonly [name: string]: unknown }; readonly extra: AttributeMap } {
  const forms = graphOpTable[kind].attributes;
  const values: { [name: string]: unknown } = {};
  for (const [name, form] of Object.entries(forms)) {
    const attribute = given.get(name);
    if (attribute === undefined) {
      if (form.presence === undefined)
        throw new PartsMismatch(`the attribute ${name} is missing`, form.what, "nothing");
      if (form.presence === "default") values[name] = form.fallback;
      continue;
    }
    const value = form.read(attribute);
    if (value === undefined)
      throw new PartsMismatch(
        `the attribute ${name} is of another form`,
        form.what,
        `an attribute of the kind ${attribute.kind}`,
      );
    values[name] = value;
  }
  const extra = [...given].filter(
    ([name]) => !Object.hasOwn(forms, name) && !segmentNames.includes(name),
  );
  return { values, extra: new Map(extra) };
}

/** The op that text calls `name`; one that the table does not have is kept as foreign. */
export function opOfParts(
  name: string,
  parts: OpParts,
  at: { readonly location: Location; readonly name: string },
): AnyGraphOp {
  const kind = isGraphOpKind(name) ? name : "foreign";
  const given: AttributeMap =
    kind === "foreign"
      ? new Map([["op_name", stringAttribute(name)], ...parts.attributes])
      : parts.attributes;
  const schema = graphOpTable[kind];
  const { values, extra } = readAttributes(kind, given);
  const built = {
    operands: fillSlots("operands", schema.operands, parts.operands, segmentsOf(given)),
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
