/**
 * What the rest of the graph layer uses of ops, types and literals.
 *
 *   "stablehlo.pad": { operands: { operand: "one", padding_value: "one" }, … }      an entry of the table
 *     ──▶  op.operands.padding_value: GraphValue                                    what rules get
 */
export * from "./attribute.ts";
export * from "./captures.ts";
export * from "./combiner.ts";
export * from "./elements.ts";
export { floatOrders } from "./elementwise.ts";
export type { FloatOrder } from "./elementwise.ts";
export { expandElements, literal } from "./literal.ts";
export type { Literal } from "./literal.ts";
export * from "./node.ts";
export * from "./rebuild.ts";
export * from "./small-floats.ts";
export type * from "./schema.ts";
export * from "./sharding.ts";
export type * from "./structures.ts";
export * from "./table.ts";
export * from "./traverse.ts";
export * from "./types.ts";
