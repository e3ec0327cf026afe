/**
 * Sums of small decision trees, which is what was learned of times. A tree asks for one number after the other until it comes to a leaf:
 *
 *   workers ≤ 66? ── yes ── stages ≤ 7? ── yes ── +0.021
 *        └─ no ── −0.008         └─ no ── −0.013
 *
 * Numbers are compared with thresholds by their places among those of the same name, so that a node is two bytes: the number asked for and the
 * threshold's place, and then the nodes of what is not above it, and of what is; or `leaf`, and its value in units of `unit`, from −127 to 127.
 *
 * As text they are characters of ASCII, which stand for bytes below `digits`; a leaf has one of three marks, by the third of the values that its own is in:
 *
 *   asked 3, place 7     ""&*"*"          leaf 21     the second mark, and 21 + 127 − 90
 */

/** What says that a node is a leaf, where others have the number that is asked for. */
export const leaf = 255;
/** The logarithm that a leaf's value of 1 stands for. */
export const unit = 2 ** -11;
/** What a character stands for is less, and so are the places of thresholds. */
export const digits = 90;
const mostLeaf = 127;
/** The first characters of digits, of which the backslash is left out, and the first of the marks of leaves, which are the last digits. */
const [firstCharacter, leftOut, firstMark] = [35, 92, digits - 3] as const;

/** Nodes as text. */
export function nodesText(nodes: Uint8Array): string {
  const character = (digit: number): string => {
    const code = firstCharacter + digit;
    return String.fromCharCode(code < leftOut ? code : code + 1);
  };
  let text = "";
  for (let at = 0; at < nodes.length; at += 2) {
    const [asked = 0, other = 0] = nodes.subarray(at, at + 2);
    const value = mostLeaf + ((other << 24) >> 24);
    text +=
      asked === leaf
        ? character(firstMark + Math.floor(value / digits)) + character(value % digits)
        : character(asked) + character(other);
  }
  return text;
}

/** The nodes that a text is of. */
export function nodesOf(text: string): Uint8Array {
  const nodes = new TextEncoder().encode(text);
  for (let at = 0; at < nodes.length; at += 2) {
    const asked = digitOf(nodes[at] ?? 0);
    const other = digitOf(nodes[at + 1] ?? 0);
    const isLeaf = asked >= firstMark;
    nodes[at] = isLeaf ? leaf : asked;
    nodes[at + 1] = isLeaf ? (asked - firstMark) * digits + other - mostLeaf : other;
  }
  return nodes;
}

function digitOf(code: number): number {
  return code - firstCharacter - (code > leftOut ? 1 : 0);
}

export interface Trees {
  /** The thresholds of each number, from the least. */
  readonly thresholds: readonly (readonly number[])[];
  /** Nodes of all trees one after the other. */
  readonly nodes: Uint8Array;
}

/** Trees, and for each node that asks how many bytes what is not above its threshold takes, which what is above skips; and where trees begin. */
export interface ReadTrees extends Trees {
  readonly skips: Uint32Array;
  readonly begins: readonly number[];
}

export function readTrees(trees: Trees): ReadTrees {
  const { nodes } = trees;
  const skips = new Uint32Array(nodes.length);
  const begins: number[] = [];
  const read = (at: number): number => {
    if (nodes[at] === leaf) return at + 2;
    const next = read(at + 2);
    skips[at] = next - (at + 2);
    return read(next);
  };
  for (let at = 0; at < nodes.length; at = read(at)) begins.push(at);
  return { ...trees, skips, begins };
}

/** How many thresholds each number is above. */
export function placesOf({ thresholds }: Trees, numbers: readonly number[]): Uint8Array {
  const places = new Uint8Array(thresholds.length);
  for (const [index, each] of thresholds.entries()) {
    const number = numbers[index] ?? 0;
    let least = 0;
    let most = each.length;
    while (least < most) {
      const middle = (least + most) >> 1;
      if (number > (each[middle] ?? Infinity)) least = middle + 1;
      else most = middle;
    }
    places[index] = least;
  }
  return places;
}

/**
 * The leaf that a tree comes to, in units. What is above a threshold is found by its sign rather than by a branch, which nobody could foresee: 16 sums of
 * 130 trees take 0.16 ms, and 0.23 with branches.
 */
export function leafOf({ nodes, skips }: ReadTrees, begin: number, places: Uint8Array): number {
  let at = begin;
  for (let asked = nodes[at] ?? leaf; asked !== leaf; asked = nodes[at] ?? leaf) {
    const allIfAbove = ((nodes[at + 1] ?? 0) - (places[asked] ?? 0)) >> 31;
    at += 2 + (allIfAbove & (skips[at] ?? 0));
  }
  return ((nodes[at + 1] ?? 0) << 24) >> 24;
}

/** The sum of all trees. */
export function sumOf(trees: ReadTrees, numbers: readonly number[]): number {
  const places = placesOf(trees, numbers);
  let sum = 0;
  for (const begin of trees.begins) sum += leafOf(trees, begin, places);
  return unit * sum;
}
