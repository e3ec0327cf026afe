/**
 * When registers hold what somebody reads later. Statements are numbered; a register lives from a statement that writes
 * it, or the start of a block, to the last that reads it:
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
export interface Life {
  /** In the order of the program, each apart from the others. */
  readonly spans: readonly Span[];
  /** Statements that write it, in any order. */
  readonly writes: readonly number[];
}

export function livesOf(
  blocks: readonly Block[],
  effects: readonly (Effects | undefined)[],
  count: number,
): readonly Life[] {
  const liveAtEnd = endsOf(blocks, effects, count);
  const lives = Array.from({ length: count }, () => ({
    spans: [] as Span[],
    writes: [] as number[],
  }));
  blocks.forEach(({ from, to }, index) => {
    /** Where each that lives is read last. */
    const until = new Map<number, number>();
    for (const register of liveAtEnd[index] ?? []) until.set(register, to);
    for (let at = to - 1; at >= from; at -= 1) {
      const { reads = [], writes = [] } = effects[at] ?? {};
      for (const register of writes) {
        lives[register]?.writes.push(at);
        const end = until.get(register);
        if (end !== undefined) lives[register]?.spans.push({ from: at, to: end });
        until.delete(register);
      }
      for (const register of reads) if (!until.has(register)) until.set(register, at);
    }
    for (const [register, end] of until) lives[register]?.spans.push({ from: from - 1, to: end });
  });
  return lives.map(({ spans, writes }) => ({
    spans: spans.sort((left, right) => left.from - right.from),
    writes,
  }));
}

/** The registers that live at the end of each block. */
function endsOf(
  blocks: readonly Block[],
  effects: readonly (Effects | undefined)[],
  count: number,
): readonly ReadonlySet<number>[] {
  const known = blocks.map(() => new Set<number>());
  const starts = blocks.map(() => new Set<number>());
  const local = blocks.map((block) => ownEffects(block, effects, count));
  for (let grown = true; grown;) {
    grown = false;
    for (let index = blocks.length - 1; index >= 0; index -= 1) {
      const [end, start, own] = [known[index], starts[index], local[index]];
      if (end === undefined || start === undefined || own === undefined) continue;
      const before = start.size;
      for (const next of blocks[index]?.next ?? [])
        for (const register of starts[next] ?? []) end.add(register);
      for (const register of own.reads) start.add(register);
      for (const register of end) if (!own.written.has(register)) start.add(register);
      grown ||= start.size > before;
    }
  }
  return known;
}

/** What a block reads before it writes it, and what it writes for certain. */
function ownEffects(
  { from, to }: Block,
  effects: readonly (Effects | undefined)[],
  count: number,
): { readonly reads: ReadonlySet<number>; readonly written: ReadonlySet<number> } {
  const reads = new Set<number>();
  const written = new Set<number>();
  for (let at = from; at < to && written.size < count; at += 1) {
    const each = effects[at];
    if (each === undefined) continue;
    for (const register of each.reads) if (!written.has(register)) reads.add(register);
    for (const register of each.writes) written.add(register);
  }
  return { reads, written };
}

/** Whether the register holds something behind a statement that is read later. */
export function livesBehind({ spans }: Life, at: number): boolean {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle]?.from ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return (spans[low - 1]?.to ?? 0) > at;
}

/** The life of two registers that have become one. */
export function together(left: Life, right: Life): Life {
  const all = [...left.spans, ...right.spans].sort((one, other) => one.from - other.from);
  const spans: Span[] = [];
  for (const span of all) {
    const last = spans.at(-1);
    if (last === undefined || last.to < span.from) spans.push(span);
    else spans[spans.length - 1] = { from: last.from, to: Math.max(last.to, span.to) };
  }
  return { spans, writes: [...left.writes, ...right.writes] };
}
