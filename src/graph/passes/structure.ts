/**
 * What a graph computes, as text: equal for two graphs that differ in the identity of their values, in locations and in names alone,
 * so that what was compiled for one of them serves the other.
 *
 *   add(x, mul(y, 2))      recorded twice, of arrays of the same types: one text
 *   add(x, mul(y, 3))      another: constants are a part of what is compiled
 */
import { attributesOf } from "../text/parts.ts";
import { attributeText } from "../text/attributes.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { regionsOf } from "../ops/traverse.ts";
import { typeText } from "../ops/types.ts";

/** An op's attributes, whatever their order. */
export function attributesText(op: AnyGraphOp): string {
  return Array.from(attributesOf(op), ([name, value]) => `${name}=${attributeText(value)}`)
    .sort()
    .join(";");
}

/** What an op does to its operands, whichever they are: kind, attributes and types. */
export function opText(op: AnyGraphOp): string {
  const types = op.results.map(({ type }) => typeText(type));
  return `${op.kind}{${attributesText(op)}}${types.join()}`;
}

/** Values are called by the order in which they are defined, and those of the surroundings of a region by their identity. */
export function structureText(graph: GraphRegion): string {
  const numbers = new Map<GraphValue, number>();
  const parts: string[] = [];
  const define = (value: GraphValue): void => {
    numbers.set(value, numbers.size);
  };
  const use = (value: GraphValue): string => `${numbers.get(value) ?? `%${value.id}`}`;
  const visitOp = (op: AnyGraphOp): void => {
    parts.push(opText(op));
    // By slot: an op may have two of them that can be left out.
    for (const [slot, used] of Object.entries<GraphValue | readonly GraphValue[]>(op.operands))
      parts.push(`${slot}(${[used].flat().map(use).join()})`);
    for (const region of regionsOf(op)) visit(region);
    op.results.forEach(define);
  };
  const visit = ({ parameters, ops, results }: GraphRegion): void => {
    parts.push(`{${parameters.map(({ type }) => typeText(type)).join()}:`);
    parameters.forEach(define);
    for (const op of ops) visitOp(op);
    parts.push(`}${results.map(use).join()}`);
  };
  visit(graph);
  return parts.join("\n");
}
