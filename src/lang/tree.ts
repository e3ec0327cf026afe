/**
 * Trees: what a loop carries and what a branch gives may be a single value, or arrays and records of
 * them to any depth. The IR has flat lists; a tree is taken apart in a fixed order and put together
 * again around other values.
 *
 *   { sum: a, pair: [b, c] }   <->   carry.sum: a,  carry.pair[0]: b,  carry.pair[1]: c
 */
import type { Value } from "../ir/node.ts";
import { sameType, typeText } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { Accumulator } from "./accumulator.ts";
import { isPlain } from "./constants.ts";
import { isDataObject } from "./elementwise.ts";
import type { Scalar } from "./elementwise.ts";
import { dataObject, Tile } from "./tile.ts";
import { originOf } from "./trace.ts";
import { describe, origin, Traced, useValue, wrongKind } from "./traced.ts";

/** A value that can be carried around a loop or given by a branch. */
export type Leaf = Scalar | Tile | Accumulator;

/** Values in arrays and records. */
export type Tree = Leaf | readonly Tree[] | { readonly [name: string]: Tree };

/** The tree's form, without its values. */
export type TreeShape =
  | { readonly kind: "leaf"; readonly isTile: boolean }
  | { readonly kind: "array"; readonly items: readonly TreeShape[] }
  | { readonly kind: "record"; readonly entries: readonly (readonly [string, TreeShape])[] };

export interface FlatTree {
  readonly shape: TreeShape;
  readonly leaves: readonly FlatLeaf[];
}

export interface FlatLeaf {
  /** Where in the tree: `carry.pair[0]`. */
  readonly path: string;
  readonly value: Value;
  /** Where the user's program made the value. */
  readonly made: Location;
}

/** The tree of a body that gives nothing. */
export const emptyTree: FlatTree = { shape: { kind: "array", items: [] }, leaves: [] };

export function valuesOf({ leaves }: FlatTree): readonly Value[] {
  return leaves.map(({ value }) => value);
}

/** Takes a tree apart, using each of its values; `label` begins the paths: "carry". */
export function flattenTree(label: string, tree: unknown, location: Location): FlatTree {
  if (tree === undefined) return emptyTree;
  const leaves: FlatLeaf[] = [];
  const visit = (item: unknown, path: string): TreeShape => {
    if (item instanceof Accumulator || isDataObject(item)) {
      const { location: made } = item[origin];
      const value = item instanceof Accumulator ? item.consume(location) : useValue(item, location);
      leaves.push({ path, value, made });
      return { kind: "leaf", isTile: item instanceof Tile };
    }
    if (Array.isArray(item)) {
      const items = item.map((part: unknown, position) => visit(part, `${path}[${position}]`));
      return { kind: "array", items };
    }
    if (!isRecord(item)) return refuseLeaf(path, item, location);
    const entries = Object.entries(item).map(
      ([name, part]) => [name, visit(part, `${path}.${name}`)] as const,
    );
    return { kind: "record", entries };
  };
  return { shape: visit(tree, label), leaves };
}

function isRecord(item: unknown): item is { readonly [name: string]: unknown } {
  if (typeof item !== "object" || item === null || item instanceof Traced) return false;
  const prototype: unknown = Object.getPrototypeOf(item);
  return prototype === Object.prototype || prototype === null;
}

function refuseLeaf(path: string, item: unknown, location: Location): never {
  if (isPlain(item)) {
    throw new TilewrightError({
      code: "TW1009",
      message: `${path} is a plain JavaScript value and has no dtype`,
      location,
      expected: "a tile, a scalar or an accumulator",
      found: describe(item),
      remedy: `write constant(dtype, ${String(item)})`,
    });
  }
  return wrongKind(path, "a tile, a scalar or an accumulator", item, location);
}

/** Puts a tree of the given form together around values made just now. */
export function rebuildTree(
  shape: TreeShape,
  values: readonly Value[],
  location: Location,
): unknown {
  let position = 0;
  const build = (part: TreeShape): unknown => {
    if (part.kind === "array") return part.items.map(build);
    if (part.kind === "record")
      return Object.fromEntries(part.entries.map(([name, item]) => [name, build(item)]));
    const value = values[position++];
    if (value === undefined) throw new Error("a tree has more leaves than values");
    return value.type.kind === "inflight"
      ? new Accumulator(originOf(value, location))
      : part.isTile
        ? new Tile(originOf(value, location))
        : dataObject(value, location);
  };
  return build(shape);
}

/**
 * The values of `found` in the order of `wanted`, which it must match in form and in the types of its
 * values; `describeChange` words the message for a leaf that differs.
 */
export function matchTree(
  wanted: FlatTree,
  found: FlatTree,
  describeChange: (path: string, wanted: string, found: string) => string,
  location: Location,
): readonly Value[] {
  const before = new Map(wanted.leaves.map((leaf) => [leaf.path, leaf]));
  const after = new Map(found.leaves.map((leaf) => [leaf.path, leaf]));
  for (const path of new Set([...before.keys(), ...after.keys()])) {
    const [first, second] = [before.get(path), after.get(path)];
    if (
      first !== undefined &&
      second !== undefined &&
      sameType(first.value.type, second.value.type)
    )
      continue;
    throw new TilewrightError({
      code: "TW1012",
      message: describeChange(path, leafText(first), leafText(second)),
      location,
      expected: leafText(first),
      found: leafText(second),
      notes: [
        ...(first === undefined
          ? []
          : [{ message: "the first is made here", location: first.made }]),
        ...(second === undefined
          ? []
          : [{ message: "the second is made here", location: second.made }]),
      ],
    });
  }
  return wanted.leaves.flatMap(({ path }) => after.get(path)?.value ?? []);
}

function leafText(leaf: FlatLeaf | undefined): string {
  return leaf === undefined ? "nothing" : typeText(leaf.value.type);
}
