/**
 * Live ranges of registers. Statements are numbered; a register is live from a statement that writes it, or the start of a block, to the last
 * that reads it:
 *
 *   0  mov %a, 1        a: behind 0 to 2
 *   1  mov %b, %a       b: behind 1 to 2
 *   2  add %c, %a, %b
 */
import type { Effects } from "./effects.ts";
import type { Block } from "./flow.ts";

/** From behind statement `from` until statement `to` reads it. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** What is known of a register, or of several that have become one. */
export interface LiveRange {
  /** In the order of the program, each apart from the others. */
  readonly spans: readonly Span[];
  /** Statements that write it, in any order. */
  readonly writes: readonly number[];
}

export function liveRangesOf(
  blocks: readonly Block[],
  effects: readonly (Effects | undefined)[],
  count: number,
): readonly LiveRange[] {
  const liveAtEnd = endsOf(blocks, effects, count);
  const ranges: WrittenRange[] = [];
  while (ranges.length < count) ranges.push(new WrittenRange());
  /** Where each that lives is read last; -1 of those that do not live. */
  const until = new Int32Array(count).fill(-1);
  for (let index = blocks.length - 1; index >= 0; index -= 1) {
    const { from, to } = blocks[index] as Block;
    visitMembers(liveAtEnd[index] as BitSet, (register) => (until[register] = to));
    for (let at = to - 1; at >= from; at -= 1) {
      const each = effects[at];
      if (each === undefined) continue;
      const { reads, writes } = each;
      for (let place = 0; place < writes.length; place += 1) {
        const register = writes[place] as number;
        const range = ranges[register] as WrittenRange;
        range.writes.push(at);
        const end = until[register] as number;
        if (end >= 0) range.begin(at, end);
        until[register] = -1;
      }
      for (let place = 0; place < reads.length; place += 1) {
        const register = reads[place] as number;
        if (until[register] === -1) until[register] = at;
      }
    }
    for (let register = 0; register < count; register += 1) {
      const end = until[register] as number;
      if (end < 0) continue;
      ranges[register]?.begin(from - 1, end);
      until[register] = -1;
    }
  }
  for (const range of ranges) range.spans.reverse();
  return ranges;
}

/** A life that is followed from its end: each span begins before those that are known. */
class WrittenRange implements LiveRange {
  readonly spans: Span[] = [];
  readonly writes: number[] = [];

  begin(from: number, to: number): void {
    const next = this.spans.at(-1);
    if (next === undefined || to < next.from) this.spans.push({ from, to });
    else this.spans[this.spans.length - 1] = { from, to: Math.max(to, next.to) };
  }
}

/** Numbers from 0 on, a bit each. Hundreds of registers live through most of the blocks. */
type BitSet = Int32Array;

function visitMembers(set: BitSet, visit: (member: number) => void): void {
  for (let word = 0; word < set.length; word += 1)
    for (let left = set[word] as number; left !== 0; left &= left - 1)
      visit(32 * word + 31 - Math.clz32(left & -left));
}

/** The registers that live at the end of each block. */
function endsOf(
  blocks: readonly Block[],
  effects: readonly (Effects | undefined)[],
  count: number,
): readonly BitSet[] {
  const words = (count + 31) >> 5;
  const [ends, starts, own]: [BitSet[], BitSet[], OwnEffects[]] = [[], [], []];
  for (let index = 0; index < blocks.length; index += 1) {
    const effectsOfBlock = ownEffects(blocks[index] as Block, effects, words);
    own.push(effectsOfBlock);
    ends.push(new Int32Array(words));
    // What lives at the start of a block is at least what it reads before it writes it.
    starts.push(effectsOfBlock.reads);
  }
  for (let grown = true; grown;) {
    grown = false;
    for (let index = blocks.length - 1; index >= 0; index -= 1) {
      const end = ends[index] as BitSet;
      const start = starts[index] as BitSet;
      const { written } = own[index] as OwnEffects;
      for (const next of (blocks[index] as Block).next) {
        const following = starts[next] as BitSet;
        for (let word = 0; word < words; word += 1) {
          const added = (following[word] as number) & ~(end[word] as number);
          if (added === 0) continue;
          end[word] = (end[word] as number) | added;
          start[word] = (start[word] as number) | (added & ~(written[word] as number));
          grown = true;
        }
      }
    }
  }
  return ends;
}

interface OwnEffects {
  /** What a block reads before it writes it. */
  readonly reads: BitSet;
  /** What it writes for certain. */
  readonly written: BitSet;
}

function ownEffects(
  { from, to }: Block,
  effects: readonly (Effects | undefined)[],
  words: number,
): OwnEffects {
  const [reads, written] = [new Int32Array(words), new Int32Array(words)];
  for (let at = from; at < to; at += 1) {
    const each = effects[at];
    if (each === undefined) continue;
    for (let place = 0; place < each.reads.length; place += 1) {
      const register = each.reads[place] as number;
      const before = written[register >> 5] as number;
      reads[register >> 5] = (reads[register >> 5] as number) | ((1 << (register & 31)) & ~before);
    }
    for (let place = 0; place < each.writes.length; place += 1) {
      const register = each.writes[place] as number;
      written[register >> 5] = (written[register >> 5] as number) | (1 << (register & 31));
    }
  }
  return { reads, written };
}

/** Whether the register holds something behind a statement that is read later. */
export function isLiveAfter({ spans }: LiveRange, at: number): boolean {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle]?.from ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return (spans[low - 1]?.to ?? 0) > at;
}

/** The life of two registers that have become one. */
export function merged(left: LiveRange, right: LiveRange): LiveRange {
  const all = [...left.spans, ...right.spans].sort((one, other) => one.from - other.from);
  const spans: Span[] = [];
  for (const span of all) {
    const last = spans.at(-1);
    if (last === undefined || last.to < span.from) spans.push(span);
    else spans[spans.length - 1] = { from: last.from, to: Math.max(last.to, span.to) };
  }
  return { spans, writes: [...left.writes, ...right.writes] };
}
