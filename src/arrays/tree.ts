/**
 * Trees: lists and records of arrays, nested. Everything else in them (numbers, text, null) is static: part of
 * the structure and not of the data.
 *
 *   { w: Array, layers: [Array, Array], rate: 0.1 }   leaves: w, layers[0], layers[1]
 */
import { LazyArray } from "./array.ts";

export type Tree = unknown;

interface Flat {
  readonly leaves: readonly LazyArray[];
  /** Equal for trees of the same form and the same static parts. */
  readonly structure: string;
}

function isRecord(tree: object): tree is { readonly [name: string]: unknown } {
  const prototype: unknown = Object.getPrototypeOf(tree);
  return prototype === Object.prototype || prototype === null;
}

/** Whether a part of a tree holds further parts. */
function membersOf(tree: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (typeof tree !== "object" || tree === null || tree instanceof LazyArray) return undefined;
  if (Array.isArray(tree)) return tree.map((each: unknown, i) => [String(i), each] as const);
  if (!isRecord(tree)) return undefined;
  return Object.keys(tree)
    .sort()
    .map((name) => [name, tree[name]] as const);
}

function staticText(value: unknown): string {
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value === "bigint") return `${value}n`;
  return typeof value === "symbol" ? value.toString() : (JSON.stringify(value) ?? "undefined");
}

export function flatten(tree: Tree): Flat {
  const leaves: LazyArray[] = [];
  const visit = (part: unknown): string => {
    if (part instanceof LazyArray) {
      leaves.push(part as LazyArray);
      return "*";
    }
    const members = membersOf(part);
    if (members === undefined) return staticText(part);
    const open = Array.isArray(part) ? "[" : "{";
    return `${open}${members.map(([name, each]) => `${name}:${visit(each)}`).join()}`;
  };
  const structure = visit(tree);
  return { leaves, structure };
}

/** The tree with other leaves, in the order of `flatten`. */
export function rebuild<T>(tree: T, leaves: readonly unknown[]): T {
  let next = 0;
  const visit = (part: unknown): unknown => {
    if (part instanceof LazyArray) return leaves[next++];
    const members = membersOf(part);
    if (members === undefined) return part;
    if (Array.isArray(part)) return members.map(([, each]) => visit(each));
    return Object.fromEntries(members.map(([name, each]) => [name, visit(each)]));
  };
  return visit(tree) as T;
}

/** The tree with each array mapped. */
export function mapTree<T>(tree: T, map: (leaf: LazyArray, place: number) => unknown): T {
  return rebuild(tree, flatten(tree).leaves.map(map));
}
