/**
 * Values of other lanes of the program thread, through the op's scratch: every lane stores its words side
 * by side, all meet, and each reads where the lane with some bits of its thread index flipped has stored.
 * Words go in runs of four, so that a lane's run is one vector; what does not fit goes afterwards.
 *
 *   words 0 … 5 of thread t     bytes 16·t … of the first 2048, then 8·t … of the next 1024
 */
import type { AnyOp } from "../../../ir/node.ts";
import { wordBytes } from "../../../layout/plan/scratch.ts";
import type { Register } from "../../module.ts";
import { integer, vector } from "../../operands.ts";
import { threadBarrier } from "../barriers.ts";
import type { EmitContext } from "../context.ts";
import { joinWide, splitWide } from "./relayout.ts";
import { ScratchMemory } from "./scratch.ts";

const longestRun = 4;

export interface Run {
  /** Its first word. */
  readonly start: number;
  readonly length: number;
}

/** For each mask of the thread index, the values of the lane whose index differs by it. */
export function tradeValues(
  context: EmitContext,
  op: AnyOp,
  values: readonly Register[],
  masks: readonly number[],
): readonly (readonly Register[])[] {
  const scratch = new ScratchMemory(context, op);
  const traded = tradeWords(context, scratch, wordsOf(context, values), masks);
  return traded.map((found) => joinedAs(context, values, found));
}

/** The words of values. */
export function wordsOf(context: EmitContext, values: readonly Register[]): readonly Register[] {
  return values.flatMap((value) => (value.type === "b64" ? splitWide(context, value) : [value]));
}

/** Words as registers of the same classes as the values that they were taken from. */
export function joinedAs(
  context: EmitContext,
  values: readonly Register[],
  words: readonly Register[],
): readonly Register[] {
  let next = 0;
  const take = (): Register => {
    const word = words[next];
    if (word === undefined) throw new Error("words were lost");
    next += 1;
    return word;
  };
  return values.map((value) => (value.type === "b64" ? joinWide(context, take(), take()) : take()));
}

function tradeWords(
  context: EmitContext,
  scratch: ScratchMemory,
  words: readonly Register[],
  masks: readonly number[],
): readonly (readonly Register[])[] {
  const { code } = context;
  const wordSpan = wordBytes(context.scope.warps);
  const places = new Places(context, scratch);
  const found = masks.map((): Register[] => []);
  const together = Math.floor(scratch.bytes / wordSpan);
  if (together < 1) throw new Error("scratch without room for a word of every lane");
  for (let first = 0; first < words.length; first += together) {
    const part = words.slice(first, first + together);
    const runs = runsOf(part.length);
    scratch.begin();
    for (const { start, length } of runs) {
      const at = scratch.address(places.of(0, length), start * wordSpan);
      code.emit(`st.shared${suffixes[length] ?? ""}.b32`, [
        at,
        vector(part.slice(start, start + length)),
      ]);
    }
    threadBarrier(context, "scratch is written");
    masks.forEach((mask, index) => {
      for (const { start, length } of runs) {
        const loaded = code.registers("b32", length);
        const at = scratch.address(places.of(mask, length), start * wordSpan);
        code.emit(`ld.shared${suffixes[length] ?? ""}.b32`, [vector(loaded), at]);
        found[index]?.push(...loaded);
      }
    });
  }
  return found;
}

export const suffixes: { readonly [length: number]: string } = { 1: "", 2: ".v2", 4: ".v4" };

/** Runs of powers of two. */
export function runsOf(count: number): readonly Run[] {
  const runs: Run[] = [];
  for (let start = 0; start < count;) {
    let length = longestRun;
    while (start + length > count) length /= 2;
    runs.push({ start, length });
    start += length;
  }
  return runs;
}

/** Where lanes store and read their runs. */
class Places {
  readonly #context: EmitContext;
  readonly #scratch: ScratchMemory;
  readonly #known = new Map<string, Register>();

  constructor(context: EmitContext, scratch: ScratchMemory) {
    this.#context = context;
    this.#scratch = scratch;
  }

  /** Of the lane whose index differs by the mask. */
  of(mask: number, length: number): Register {
    const key = `${mask} ${length}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const { code, numbers } = this.#context;
    const lane =
      mask === 0 ? numbers.index : code.make("b32", "xor.b32", numbers.index, integer(mask));
    const place = code.make("b32", "shl.b32", lane, integer(Math.log2(4 * length)));
    const made = this.#scratch.at(place);
    this.#known.set(key, made);
    return made;
  }
}
