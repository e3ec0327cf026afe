/**
 * Offsets in the arena. A buffer lives from the first step that writes it to the last that reads it; buffers whose lives
 * meet must not share bytes. What a loop uses and did not make lives until the loop ends, since every turn uses it again.
 *
 *   step      0   1   2   3         offset
 *   a 4 KiB   ###########           0
 *   b 1 KiB       #######           4096
 *   c 4 KiB               ###       0
 */
import type { Buffer, Step } from "./plan.ts";
import { buffersOf, innerSteps } from "./plan.ts";

interface Life {
  first: number;
  last: number;
}

const alignment = 256;

function isLaunch({ kind }: Step): boolean {
  return kind === "launch" || kind === "operation";
}

function livesOf(steps: readonly Step[]): ReadonlyMap<Buffer, Life> {
  const lives = new Map<Buffer, Life>();
  let time = 0;
  const touch = (buffer: Buffer, at: number): void => {
    const life = lives.get(buffer);
    if (life === undefined) lives.set(buffer, { first: at, last: at });
    else life.last = Math.max(life.last, at);
  };
  const visit = (step: Step): ReadonlySet<Buffer> => {
    const start = time++;
    const used = new Set(buffersOf(step));
    for (const list of innerSteps(step))
      for (const inner of list) for (const buffer of visit(inner)) used.add(buffer);
    const end = time++;
    for (const buffer of used) {
      const life = lives.get(buffer);
      const isOutside = life !== undefined && life.first < start;
      if (isOutside || step.kind !== "while") touch(buffer, isLaunch(step) ? start : end);
    }
    for (const buffer of buffersOf(step)) touch(buffer, end);
    return used;
  };
  for (const step of steps) visit(step);
  return lives;
}

/** Offsets of all buffers in the arena, and its size: the largest first, each as low as it fits. */
export function placeBuffers(steps: readonly Step[]): {
  readonly offsets: ReadonlyMap<Buffer, number>;
  readonly bytes: number;
} {
  const lives = livesOf(steps);
  const inArena = [...lives.keys()]
    .filter(({ place, bytes }) => place.kind === "arena" && bytes > 0)
    .sort((left, right) => right.bytes - left.bytes || left.id - right.id);
  const offsets = new Map<Buffer, number>();
  let total = 0;
  for (const buffer of inArena) {
    const own = lives.get(buffer) as Life;
    const taken = [...offsets]
      .filter(([other]) => meets(own, lives.get(other) as Life))
      .map(([other, offset]) => ({
        from: offset,
        to: offset + rounded(other.bytes),
      }))
      .sort((left, right) => left.from - right.from);
    let offset = 0;
    for (const { from, to } of taken) {
      if (offset + rounded(buffer.bytes) <= from) break;
      offset = Math.max(offset, to);
    }
    offsets.set(buffer, offset);
    total = Math.max(total, offset + rounded(buffer.bytes));
  }
  return { offsets, bytes: total };
}

function meets(left: Life, right: Life): boolean {
  return left.first <= right.last && right.first <= left.last;
}

function rounded(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}
