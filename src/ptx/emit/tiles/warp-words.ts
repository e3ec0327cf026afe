/**
 * Values that all lanes of a warp hold alike, told to other warps of the program thread through the op's scratch: one lane of
 * each warp stores its words, all meet, and every lane reads those of all warps side by side, four words at a time.
 *
 *   a word of each of 16 warps      64 bytes, four vectors; if every lane told its own, 2048 and 15 words
 *
 * Words go in runs of up to four, so that a warp's run is one vector; warps that are not combined have runs of their own.
 */
import type { AnyOp } from "../../../ir/node.ts";
import { laneBits } from "../../../layout/algebra/index-bits.ts";
import type { Register } from "../../module.ts";
import { integer, vector } from "../../operands.ts";
import { threadBarrier } from "../barriers.ts";
import type { EmitContext } from "../context.ts";
import { ScratchMemory } from "./scratch.ts";
import { combineParts } from "./thread-parts.ts";
import { joinedAs, runsOf, suffixes, wordsOf } from "./exchange-through-shared.ts";
import type { Run } from "./exchange-through-shared.ts";

const widestWords = 4;

/** The values of every warp, by the bits of the thread index along which warps are combined; bit k of the number is `warps[k]`. */
export function warpValues(
  context: EmitContext,
  op: AnyOp,
  values: readonly Register[],
  warps: readonly number[],
): readonly (readonly Register[])[] {
  const scratch = new ScratchMemory(context, op);
  const words = wordsOf(context, values);
  const all = context.scope.warps;
  const together = Math.floor(scratch.bytes / (4 * all));
  if (together < 1) throw new Error("scratch without room for a word of every warp");
  const found = Array.from({ length: 2 ** warps.length }, (): Register[] => []);
  for (let first = 0; first < words.length; first += together) {
    const part = words.slice(first, first + together);
    const runs = runsOf(part.length);
    scratch.begin();
    storeRuns(context, scratch, part, runs, warps);
    threadBarrier(context, "scratch is written");
    for (const run of runs) loadRun(context, scratch, run, warps, found);
  }
  return found.map((each) => joinedAs(context, values, each));
}

/** What the bits of the thread index add to the place of a warp's run: combined warps lie side by side. */
function warpParts(
  context: EmitContext,
  { length }: Run,
  warps: readonly number[],
): { readonly combined: readonly number[]; readonly kept: readonly number[] } {
  const count = Math.log2(context.scope.warps);
  const bits = Array.from({ length: count }, (_, bit) => laneBits + bit);
  const order = [...warps, ...bits.filter((bit) => !warps.includes(bit))];
  const part = (bit: number): number => (4 * length) << order.indexOf(bit);
  const parts = (isWanted: (bit: number) => boolean): readonly number[] =>
    Array.from({ length: laneBits + count }, (_, bit) =>
      bit >= laneBits && isWanted(bit) ? part(bit) : 0,
    );
  return { combined: parts(() => true), kept: parts((bit) => !warps.includes(bit)) };
}

function storeRuns(
  context: EmitContext,
  scratch: ScratchMemory,
  words: readonly Register[],
  runs: readonly Run[],
  warps: readonly number[],
): void {
  const { code, numbers } = context;
  const isFirst = code.make("pred", "setp.eq.u32", numbers.lane, integer(0));
  for (const run of runs) {
    const { start, length } = run;
    const place = scratch.at(
      combineParts(code, numbers.index, warpParts(context, run, warps).combined),
    );
    code.guarded(isFirst, () => {
      code.emit(`st.shared${suffixes[length] ?? ""}.b32`, [
        scratch.address(place, start * 4 * context.scope.warps),
        vector(words.slice(start, start + length)),
      ]);
    });
  }
}

function loadRun(
  context: EmitContext,
  scratch: ScratchMemory,
  run: Run,
  warps: readonly number[],
  found: readonly Register[][],
): void {
  const { code, numbers } = context;
  const { start, length } = run;
  const place = scratch.at(combineParts(code, numbers.index, warpParts(context, run, warps).kept));
  const count = found.length * length;
  const each = Math.min(widestWords, count);
  for (let word = 0; word < count; word += each) {
    const loaded = code.registers("b32", each);
    const at = scratch.address(place, 4 * (start * context.scope.warps + word));
    code.emit(`ld.shared${suffixes[each] ?? ""}.b32`, [vector(loaded), at]);
    loaded.forEach((register, index) => {
      found[Math.floor((word + index) / length)]?.push(register);
    });
  }
}
