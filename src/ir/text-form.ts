/**
 * What printer and parser agree on beyond the op table: which operands an op writes without their
 * names, how names and literals are spelled.
 *
 * | schema of the operands                    | text                                  |
 * |-------------------------------------------|---------------------------------------|
 * | `{ left: one, right: one }`               | `binary %0, %1`                       |
 * | `{ ref: one, fill: optional }`            | `load %0 fill(%1)`                    |
 * | `{ ref: one, offsets: many }`             | `slice_ref %0 offsets(%1, %2)`        |
 * | `{ values: many, scratch: optional }`     | `debug_print %0, %1 scratch(%2)`      |
 */
import { opKinds, opTable } from "./ops.ts";
import type { OpKind } from "./ops.ts";
import type { Literal, OpSchema } from "./schema.ts";

export interface OperandForm {
  /** Written first and without names, one value each. */
  readonly positional: readonly string[];
  /** The only operand that is not optional, where that is a list; written without its name. */
  readonly list: string | undefined;
  /** Written as `name(values)`, left out where there are none. */
  readonly named: readonly string[];
}

function formOf(schema: OpSchema): OperandForm {
  const slots = Object.entries(schema.operands);
  const [only, ...others] = slots;
  if (only?.[1] === "many" && others.every(([, arity]) => arity === "optional"))
    return { positional: [], list: only[0], named: others.map(([name]) => name) };
  const names = (positional: boolean) =>
    slots.filter(([, arity]) => (arity === "one") === positional).map(([name]) => name);
  return { positional: names(true), list: undefined, named: names(false) };
}

const forms = Object.freeze(
  Object.fromEntries(opKinds.map((kind) => [kind, formOf(opTable[kind])])),
) as { readonly [K in OpKind]: OperandForm };

export function operandForm(kind: OpKind): OperandForm {
  return forms[kind];
}

const plainName = /^[A-Za-z_$][\w$]*$/;

/** A name as a bare word where it is one, quoted elsewhere. */
export function nameText(name: string): string {
  return plainName.test(name) ? name : JSON.stringify(name);
}

/** `-0`, `nan`, `inf` and `-inf` are spelled out; a bigint ends in `n`. */
export function literalText(literal: Literal): string {
  if (typeof literal === "bigint") return `${literal}n`;
  if (typeof literal === "boolean") return String(literal);
  if (Number.isNaN(literal)) return "nan";
  if (Object.is(literal, -0)) return "-0";
  return String(literal).replace("Infinity", "inf");
}
