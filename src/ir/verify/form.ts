/**
 * Verifies that ops have the form the op table declares: the named operands, attributes and regions,
 * frozen nodes, and one yield at the end of every region. The other checks rely on it.
 */
import { dtypes } from "../../formats/dtype.ts";
import { noSlots } from "../make-op.ts";
import type { AnyOp, Region, Value } from "../node.ts";
import { opTable } from "../ops.ts";
import { attributeSlot, attributeSlotsOf } from "../schema.ts";
import type { AttributeForm, AttributeSlot, OpSchema } from "../schema.ts";
import { regionList } from "../traverse.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { reject } from "./report.ts";
import { visitEach } from "../../support/visit-each.ts";

type Slots = { readonly [name: string]: unknown };

function isList(item: unknown): item is readonly unknown[] {
  return Array.isArray(item);
}

function isListOf(item: unknown, test: (element: unknown) => boolean): boolean {
  return isList(item) && item.every(test);
}

function isObject(item: unknown): item is object {
  return typeof item === "object" && item !== null;
}

function isText(item: unknown): boolean {
  return typeof item === "string";
}

function isSize(item: unknown): boolean {
  return Number.isInteger(item) || (isObject(item) && "kind" in item);
}

const formats = new Set<unknown>(Object.values(dtypes));

const formTests: { readonly [F in AttributeForm]: (item: unknown) => boolean } = {
  integer: Number.isInteger,
  integers: (item) => isListOf(item, Number.isInteger),
  text: isText,
  texts: (item) => isListOf(item, isText),
  flag: (item) => typeof item === "boolean",
  literal: (item) => ["number", "bigint", "boolean"].includes(typeof item),
  dtype: (item) => formats.has(item),
  size: isSize,
  sizes: (item) => isListOf(item, isSize),
};

function attributeFits({ form, words, optional }: AttributeSlot, item: unknown): boolean {
  if (optional && item === undefined) return true;
  return form === undefined ? words.some((word) => word === item) : formTests[form](item);
}

function slotText({ attributes }: OpSchema, name: string): string {
  const schema = attributes[name] ?? "";
  return typeof schema === "string" ? schema : `one of ${attributeSlot(schema).words.join(", ")}`;
}

/** A value or region, by its arity; what it is exactly, TypeScript has seen to. */
function slotFits(arity: "one" | "optional" | "many", item: unknown): boolean {
  if (arity === "many") return isListOf(item, isObject);
  return (arity === "optional" && item === undefined) || (isObject(item) && !isList(item));
}

function verifyNames(op: AnyOp, part: string, found: Slots, declared: object): void {
  for (const name in found)
    if (!(name in declared))
      reject(op, "TW2001", `${op.kind} has no ${part} ${name}`, {
        expected: Object.keys(declared).join(", ") || "none",
        found: name,
      });
}

function verifyArities(
  op: AnyOp,
  part: "operand" | "region",
  slots: Slots,
  arities: OpSchema["operands" | "regions"],
): void {
  for (const name in arities) {
    const arity = arities[name] ?? "one";
    if (!slotFits(arity, slots[name]))
      reject(op, "TW2001", `${part} ${name} of ${op.kind} is missing or not ${arity}`, {
        expected: arity,
        found: slots[name] === undefined ? "nothing" : isList(slots[name]) ? "a list" : "one",
      });
  }
}

function verifySlots(op: AnyOp, schema: OpSchema): void {
  const operands: Slots = op.operands;
  const attributes: Slots = op.attributes;
  const regions: Slots = op.regions;
  verifyNames(op, "operand", operands, schema.operands);
  verifyNames(op, "attribute", attributes, schema.attributes);
  if (regions !== noSlots) verifyNames(op, "region", regions, schema.regions);
  verifyArities(op, "operand", operands, schema.operands);
  verifyArities(op, "region", regions, schema.regions);
  const slots = attributeSlotsOf(schema);
  for (let place = 0; place < slots.length; place += 1) {
    const { name, slot } = slots[place] as (typeof slots)[number];
    if (!attributeFits(slot, attributes[name]))
      reject(op, "TW2001", `attribute ${name} of ${op.kind} is not ${slotText(schema, name)}`, {
        expected: slotText(schema, name),
        found: optionText(attributes[name]),
      });
  }
}

function verifyFrozen(owner: { readonly location: Location }, what: string, node: object): void {
  if (!Object.isFrozen(node)) rejectUnfrozen(owner, what);
  const parts = node as Slots;
  for (const name in parts) {
    const part = parts[name];
    if (isList(part) && !Object.isFrozen(part)) rejectUnfrozen(owner, what);
  }
}

function rejectUnfrozen(owner: { readonly location: Location }, what: string): never {
  return reject(owner, "TW2201", `${what} is not frozen`, {
    expected: "nodes that nobody can change, as builders make them",
    found: "one that can be changed",
  });
}

function verifyOp(op: AnyOp): void {
  const schema = opTable[op.kind];
  if (schema === undefined)
    return reject(op, "TW2001", `there is no operation ${String(op.kind)}`, {
      expected: "a kind of the op table",
      found: String(op.kind),
    });
  verifySlots(op, schema);
  verifyFrozen(op, op.kind, op);
  verifyFrozen(op, op.kind, op.operands);
  verifyFrozen(op, op.kind, op.attributes);
  if (op.regions !== noSlots) verifyFrozen(op, op.kind, op.regions);
  for (let place = 0; place < op.results.length; place += 1)
    verifyFrozen(op, op.kind, op.results[place] as Value);
  if (op.regions !== noSlots) for (const region of regionList(op)) verifyForm(region, op);
}

/** Checks a region and everything in it; `owner` says where the region was written. */
export function verifyForm(region: Region, owner: { readonly location: Location }): void {
  verifyFrozen(owner, "a region", region);
  const last = region.ops.length - 1;
  visitEach(region.ops, (op, position) => {
    if (op.kind === "yield" && position !== last)
      reject(op, "TW2202", "a yield stands before the end of its region", {
        expected: "a yield as the last op",
        found: `one at place ${position + 1} of ${last + 1}`,
      });
    verifyOp(op);
  });
  if (region.ops.at(-1)?.kind !== "yield")
    reject(owner, "TW2202", "a region ends without a yield", {
      expected: "a yield as the last op",
      found: region.ops.at(-1)?.kind ?? "no op",
    });
}
