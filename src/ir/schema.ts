/**
 * The form of an entry in the op table, and the TypeScript types that follow from it. An entry is plain
 * data; printer, parser and traversals read the data, rules get their types from it:
 *
 *   load: { operands: { ref: "one", fill: "optional" }, attributes: {}, … }
 *     =>  op.operands.ref: Value,  op.operands.fill?: Value
 *   reduce: { operands: { source: "one" }, attributes: { fn: reduceFunctions, axes: "integers" }, … }
 *     =>  op.attributes.fn: "sum" | "prod" | …,  op.attributes.axes: readonly number[]
 */
import type { DType } from "../formats/dtype.ts";
import { onceForEach } from "../support/memo.ts";
import type { Size } from "./size.ts";

/** A number as IR text can write it; bigint for 64-bit integers, boolean for bool. */
export type Literal = number | bigint | boolean;

export interface AttributeForms {
  integer: number;
  integers: readonly number[];
  text: string;
  texts: readonly string[];
  flag: boolean;
  literal: Literal;
  dtype: DType;
  size: Size;
  sizes: readonly Size[];
}

export type AttributeForm = keyof AttributeForms;

/** A list of allowed words that may be absent. */
export interface OptionalWords<W extends string = string> {
  readonly optional: readonly W[];
}

/** A form, a form that may be absent (`"integer?"`), or the list of allowed words. */
export type AttributeSchema =
  | AttributeForm
  | `${AttributeForm}?`
  | readonly string[]
  | OptionalWords;

export type AttributeValue = AttributeForms[AttributeForm];

/** A schema taken apart: `"integer?"` is the form `integer`, optional; a list of words has no form. */
export interface AttributeSlot {
  readonly form: AttributeForm | undefined;
  readonly words: readonly string[];
  readonly optional: boolean;
}

export function attributeSlot(schema: AttributeSchema): AttributeSlot {
  const known = attributeSlots.get(schema);
  if (known !== undefined) return known;
  const slot = Object.freeze(readSlot(schema));
  attributeSlots.set(schema, slot);
  return slot;
}

/** The attributes that a kind of op has, by name, with their slots; asked for each op that is made, verified or printed. */
export const attributeSlotsOf = onceForEach(
  ({ attributes }: Pick<OpSchema, "attributes">): readonly NamedSlot[] =>
    Object.entries(attributes).map(([name, schema]) => ({ name, slot: attributeSlot(schema) })),
);

interface NamedSlot {
  readonly name: string;
  readonly slot: AttributeSlot;
}

/** Every op asks for those of its attributes, and the op table has few of them. */
const attributeSlots = new Map<AttributeSchema, AttributeSlot>();

function readSlot(schema: AttributeSchema): AttributeSlot {
  if (typeof schema !== "string")
    return "optional" in schema
      ? { form: undefined, words: schema.optional, optional: true }
      : { form: undefined, words: schema, optional: false };
  const optional = schema.endsWith("?");
  return { form: schema.replace("?", "") as AttributeForm, words: [], optional };
}

export type OperandArity = "one" | "optional" | "many";
export type RegionArity = "one" | "many";

/** Whose accesses an op makes known, or who it learns of: those of its block, cluster or grid. */
export type Scope = "nobody" | "block" | "cluster" | "grid";

/** How an access of memory that others touch at the same time orders what stands around it: its attribute `order`. */
export const memoryOrders = ["relaxed", "acquire", "release", "acq_rel"] as const;

/** What an access orders: nothing more than itself (relaxed), what comes after it (acquire), what came before it (release), or both (acq_rel). */
export type MemoryOrder = (typeof memoryOrders)[number];

/** Within which threads it does so: its attribute `scope`. */
export const memoryScopes = ["block", "cluster", "device", "system"] as const;

/** Who shares an access that others may make at the same time: threads of the block, the cluster, the device, or whoever shares the memory. */
export type MemoryScope = (typeof memoryScopes)[number];

/**
 * What an op does to one of its operands: to the memory of a window, to the phases of a barrier, to the registers
 * of a tile that is still in flight when the op is over.
 */
export interface Access<O extends string = string> {
  readonly of: O;
  readonly mode: "read" | "write";
  /** All threads of the agent, or the one thread that starts it for all. */
  readonly actor: "threads" | "one thread";
  readonly proxy: "generic" | "async";
  /** "copy": once its barrier's phase or its copy group is over. "products": once they were waited for. */
  readonly done: "at once" | "copy" | "products";
}

/** What one method or instruction of an op does, where the placement chooses among several. */
export interface AccessesByMethod<O extends string = string> {
  readonly by: { readonly [method: string]: readonly Access<O>[] };
}

/**
 * Where an op's instructions synchronize threads. A cluster's barrier
 * is arrived at by one op and waited for by another: what lies between the two is not synchronized.
 */
export interface Synchronization {
  readonly who: "warp" | "thread" | "block" | "cluster";
  readonly part: "whole" | "arrive" | "wait";
  /** Before or after what the op itself accesses. */
  readonly at: "before" | "after";
}

/**
 * What the results are.
 *
 * | results   | meaning                                                                          |
 * |-----------|----------------------------------------------------------------------------------|
 * | new       | values of their own                                                              |
 * | fixed     | values of their own that are the same each time, so that they may be made once   |
 * | none      | there are none                                                                   |
 * | memory    | memory, barriers or counters of their own                                        |
 * | window    | the operand's memory, under another shape or a part of it                        |
 * | peer      | the operand's memory in another block                                            |
 * | one of    | a whole array that one of the operands is                                        |
 * | same      | the operand's registers under another name                                       |
 * | handed    | what regions yield, beginning with the operand where one is named                |
 */
export type Results<O extends string = string> =
  | "new"
  | "fixed"
  | "none"
  | "memory"
  | { readonly window: O }
  | { readonly peer: O }
  | { readonly oneOf: O }
  | { readonly same: O }
  | { readonly handed: O | "yields" };

/**
 * What elements of the results follow from.
 *
 * | elements       | meaning                                                                                     |
 * |----------------|---------------------------------------------------------------------------------------------|
 * | each           | from the operands' elements in the same place alone, and alike wherever that is             |
 * | mixed          | perhaps from other elements, from the place in the tile, or from who computes them          |
 * | as its regions | whatever the regions make of them                                                           |
 * | each without   | `each` where the attribute is absent, `mixed` where it is given                             |
 */
export type Elements<A extends string = string> =
  | "each"
  | "mixed"
  | "as its regions"
  | { readonly eachWithout: A };

/**
 * What passes may do with an op.
 *
 * | may            | unused: removed     | equal: merged | out of loops: moved |
 * |----------------|---------------------|---------------|---------------------|
 * | anything       | yes                 | yes           | yes                 |
 * | drop           | yes                 | no            | no                  |
 * | nothing        | no                  | no            | no                  |
 * | as its regions | if its regions are  | no            | no                  |
 */
export type Freedom = "anything" | "drop" | "nothing" | "as its regions";

/**
 * What an op does besides computing its results. Every field must be given, so that nothing holds of a new op by
 * silence. A trait is a claim about the instructions that are emitted for the op: passes, placement, ordering of lanes
 * and simulator believe it, and `test/traits` holds it against the emulator.
 */
export interface Traits<O extends string = string, A extends string = string> {
  readonly accesses: readonly Access<O>[] | AccessesByMethod<O>;
  readonly results: Results<O>;
  /** What functions that are given arrays piece by piece may use: those of elements alone. */
  readonly elements: Elements<A>;
  /** "as ordered": all threads before an access that releases, and after one that acquires. */
  readonly synchronizes: readonly Synchronization[] | "as ordered";
  /** To whom what the threads did before is released; wider where the optional operand or the list is given. */
  readonly releases:
    | Scope
    | "as ordered"
    | { readonly with: O | A; readonly scope: Scope; readonly otherwise: Scope };
  /** Whose accesses are acquired. */
  readonly acquires: Scope | "as ordered";
  /** Whether its lanes may need shared memory of their own; `src/layout/plan/scratch.ts` has a rule then. */
  readonly scratch: "never" | "by layout";
  /** Where it may stand: "body" is the kernel's or a scope's; "whole thread" is anywhere but in `warps`. */
  readonly stands: "anywhere" | "body" | "all threads" | "whole thread";
  /** How its regions run. */
  readonly regions: "none" | "once" | "repeat" | "one of" | "each warp" | "some threads";
  /** Whether it ends by itself, or only once others have acted or its own condition turns: what a failure must interrupt. */
  readonly ends: "always" | "perhaps never";
  /** Whether the assembler may unroll a loop with it. */
  readonly unrolls: "freely" | "never";
  readonly may: Freedom;
}

export interface OpSchema<O extends string = string, A extends string = string> {
  /** One sentence for the reference. */
  readonly summary: string;
  readonly operands: { readonly [name: string]: OperandArity };
  readonly attributes: { readonly [name: string]: AttributeSchema };
  readonly regions: { readonly [name: string]: RegionArity };
  readonly traits: Traits<O, A>;
}

type ValueOfSchema<S> = S extends AttributeForm
  ? AttributeForms[S]
  : S extends `${infer F extends AttributeForm}?`
    ? AttributeForms[F]
    : S extends readonly (infer W)[]
      ? W
      : S extends OptionalWords<infer W>
        ? W
        : never;
type OptionalAttributes<T> = {
  [N in keyof T]: T[N] extends `${string}?` | OptionalWords ? N : never;
}[keyof T];

export type Attributes<T> = {
  readonly [N in Exclude<keyof T, OptionalAttributes<T>>]: ValueOfSchema<T[N]>;
} & { readonly [N in OptionalAttributes<T>]?: ValueOfSchema<T[N]> | undefined };
