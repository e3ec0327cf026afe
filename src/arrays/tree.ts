/**
 * Trees: lists and records of arrays, nested. Everything else in them (numbers, text, null) is static: part of
 * the structure and not of the data.
 *
 *   { w: NDArray, layers: [NDArray, NDArray], rate: 0.1 }   leaves: w, layers[0], layers[1]
 */
import { refuseForeign } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { NDArray } from "./array.ts";

export type Tree = unknown;

interface Flat {
  readonly leaves: readonly NDArray[];
  /** Equal for trees of the same form and the same static parts. */
  readonly structure: string;
}

function isRecord(tree: object): tree is { readonly [name: string]: unknown } {
  const prototype: unknown = Object.getPrototypeOf(tree);
  return prototype === Object.prototype || prototype === null;
}

/** Whether a part of a tree holds further parts. */
function membersOf(tree: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (typeof tree !== "object" || tree === null || tree instanceof NDArray) return undefined;
  if (Array.isArray(tree)) return tree.map((each: unknown, i) => [String(i), each] as const);
  if (!isRecord(tree)) return undefined;
  return Object.keys(tree)
    .sort()
    .map((name) => [name, tree[name]] as const);
}

/** Functions are told apart by identity: two that are written alike may close over different values. */
const identities = new WeakMap<object, number>();
let lastIdentity = 0;

function identityOf(part: object): number {
  const known = identities.get(part) ?? ++lastIdentity;
  identities.set(part, known);
  return known;
}

/** Text that is equal for equal parts only: -0, NaN and infinities are numbers of their own, and none of them is null. */
function staticText(part: unknown): string {
  if (typeof part === "function") return `function ${identityOf(part)}`;
  if (typeof part === "number") return Object.is(part, -0) ? "-0" : String(part);
  if (typeof part === "bigint") return `${part}n`;
  if (typeof part === "string") return JSON.stringify(part);
  if (ArrayBuffer.isView(part)) return viewText(part);
  if (part === null || typeof part === "boolean" || part === undefined) return String(part);
  throw opaque(part);
}

function viewText(view: ArrayBufferView): string {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  return `${view.constructor.name} ${bytes.join(" ")}`;
}

/** An object whose contents cannot be seen: arrays in it would not be found, and changes of it not noticed. */
function opaque(part: unknown): TilewrightError {
  refuseForeign("a part of a tree", part);
  const found =
    typeof part === "object" ? `an object of class ${part?.constructor.name}` : `a ${typeof part}`;
  return new TilewrightError({
    code: "TW9323",
    message: `${found} is no part of a tree of arrays`,
    expected: "arrays, records and lists of them, and numbers, text, null or functions",
    found,
  });
}

function selfContaining(): TilewrightError {
  return new TilewrightError({
    code: "TW9323",
    message: "a tree of arrays contains itself",
    expected: "records and lists that end",
    found: "a record or list that is a part of itself",
  });
}

export function flatten(tree: Tree): Flat {
  const leaves: NDArray[] = [];
  const around = new Set<unknown>();
  const visit = (part: unknown): string => {
    if (part instanceof NDArray) {
      leaves.push(part as NDArray);
      return "*";
    }
    const members = membersOf(part);
    if (members === undefined) return staticText(part);
    if (around.has(part)) throw selfContaining();
    around.add(part);
    const inner = members.map(([name, each]) => `${JSON.stringify(name)}:${visit(each)}`).join();
    around.delete(part);
    return Array.isArray(part) ? `[${inner}]` : `{${inner}}`;
  };
  const structure = visit(tree);
  return { leaves, structure };
}

/** The tree with other leaves, in the order of `flatten`. */
export function rebuild<T>(tree: T, leaves: readonly unknown[]): T {
  let next = 0;
  const visit = (part: unknown): unknown => {
    if (part instanceof NDArray) return leaves[next++];
    const members = membersOf(part);
    if (members === undefined) return part;
    if (Array.isArray(part)) return members.map(([, each]) => visit(each));
    return Object.fromEntries(members.map(([name, each]) => [name, visit(each)]));
  };
  return visit(tree) as T;
}

/** The tree with each array mapped. */
export function mapTree<T>(tree: T, map: (leaf: NDArray, place: number) => unknown): T {
  return rebuild(tree, flatten(tree).leaves.map(map));
}
