/**
 * Sums of small decision trees, which is what was learned of times. A tree asks for one number after the other until it comes to a leaf:
 *
 *   workers ≤ 66? ── yes ── stages ≤ 7? ── yes ── +0.021
 *        └─ no ── −0.008         └─ no ── −0.013
 *
 * Numbers are compared with thresholds by their places among those of the same name. Trees are stored as text, and walked as it stands, since a process that
 * chooses once would take longer to read them than to walk. A character is a digit below `digits`:
 *
 *   tree    length of its nodes, nodes
 *   node    number asked for, place of the threshold, length of what is not above it, nodes of what is not, nodes of what is
 *   leaf    one of three marks, a digit: together the value, in units of `unit`, above the least one
 */

/** The logarithm that a leaf's value of 1 stands for. */
export const unit = 2 ** -11;
/** Values of leaves are from minus this to this. */
export const mostLeaf = 127;
/** What a character stands for is less, and so are the places of thresholds. */
export const digits = 90;
/** The code of the first digit, and that of the backslash, which is none, so that a string has the text as it is. */
const [firstCode, leftOut] = [35, 92] as const;
/** Marks of leaves are the last digits. */
const firstMark = digits - 3;
const firstMarkCode = codeOf(firstMark);
/** Lengths have two digits, the second one less than this and the first one less than `leftOut` is at. */
const lengthBase = 32;

export type TreeNode =
  | { readonly leaf: number }
  | {
      readonly asked: number;
      readonly place: number;
      readonly below: TreeNode;
      readonly above: TreeNode;
    };

export interface Trees {
  /** The thresholds of each number, from the least. */
  readonly thresholds: readonly (readonly number[])[];
  /** All trees one after the other. */
  readonly text: string;
}

/** Trees as the codes of their text, and where the nodes of each begin. */
export interface ReadTrees extends Pick<Trees, "thresholds"> {
  readonly codes: Uint8Array;
  readonly begins: readonly number[];
}

function codeOf(digit: number): number {
  const code = firstCode + digit;
  return code < leftOut ? code : code + 1;
}

function digitOf(code: number): number {
  return code - firstCode - (code > leftOut ? 1 : 0);
}

function digitText(digit: number): string {
  return String.fromCharCode(codeOf(digit));
}

function lengthText(length: number): string {
  const high = Math.floor(length / lengthBase);
  if (high >= leftOut - firstCode) throw new Error(`a tree of ${length} characters is too large`);
  return digitText(high) + digitText(length % lengthBase);
}

export function treeText(tree: TreeNode): string {
  const nodes = nodeText(tree);
  return lengthText(nodes.length) + nodes;
}

function nodeText(node: TreeNode): string {
  if ("leaf" in node) {
    const value = node.leaf + mostLeaf;
    return digitText(firstMark + Math.floor(value / digits)) + digitText(value % digits);
  }
  const below = nodeText(node.below);
  const asked = digitText(node.asked) + digitText(node.place);
  return asked + lengthText(below.length) + below + nodeText(node.above);
}

export function readTrees({ thresholds, text }: Trees): ReadTrees {
  const codes = new TextEncoder().encode(text);
  const begins: number[] = [];
  for (let at = 0; at < codes.length; at += 2 + lengthAt(codes, at)) begins.push(at + 2);
  return { thresholds, codes, begins };
}

function lengthAt(codes: Uint8Array, at: number): number {
  return (codes[at] ?? 0) * lengthBase + (codes[at + 1] ?? 0) - firstCode * (lengthBase + 1);
}

/** How many thresholds a number is above. */
export function placeOf(thresholds: readonly number[], number: number): number {
  let least = 0;
  let most = thresholds.length;
  while (least < most) {
    const middle = (least + most) >> 1;
    if (number > (thresholds[middle] ?? Infinity)) least = middle + 1;
    else most = middle;
  }
  return least;
}

/** The code of each number's place, at the code by which the number is asked for. */
export function placesOf(
  thresholds: readonly (readonly number[])[],
  numbers: readonly number[],
): Uint8Array {
  const places = new Uint8Array(firstMarkCode);
  for (const [index, each] of thresholds.entries())
    places[codeOf(index)] = codeOf(placeOf(each, numbers[index] ?? 0));
  return places;
}

/**
 * The leaf that a tree comes to, in units. What is above a threshold is found by its sign rather than by a branch, which nobody could foresee: 16 sums of
 * 130 trees took 0.16 ms so, and 0.23 with branches.
 */
export function leafOf(
  { codes }: Pick<ReadTrees, "codes">,
  begin: number,
  places: Uint8Array,
): number {
  let at = begin;
  let asked = codes[at] ?? firstMarkCode;
  while (asked < firstMarkCode) {
    const allIfAbove = ((codes[at + 1] ?? 0) - (places[asked] ?? 0)) >> 31;
    at += 4 + (allIfAbove & lengthAt(codes, at + 2));
    asked = codes[at] ?? firstMarkCode;
  }
  return (asked - firstMarkCode) * digits + digitOf(codes[at + 1] ?? 0) - mostLeaf;
}

/** The sum of all trees. */
export function sumOf(trees: ReadTrees, numbers: readonly number[]): number {
  const places = placesOf(trees.thresholds, numbers);
  let sum = 0;
  for (const begin of trees.begins) sum += leafOf(trees, begin, places);
  return unit * sum;
}
