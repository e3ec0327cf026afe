/**
 * The time that this process has had of a processor, in milliseconds: what limits of time are held against. How long
 * something takes by the clock tells, where others run too, mostly of the others. And a processor may be slow, or slowed by
 * what others do beside it: limits are those of the machine that a piece of work below takes `usualPiece` on.
 *
 *   limit 300 ms, this machine takes 1.5 times as long for the piece:   450 ms are allowed
 */
import process from "node:process";
import { expect } from "vitest";

/** Whoever is late may try again: what grows too fast is late each time. */
const attempts = 5;

/** Milliseconds of a piece of work on a machine that limits speak of. */
const usualPiece = 2;

function piece(): number {
  const begin = performance.now();
  const table = new Map<number, number>();
  let sum = 0;
  for (let i = 0; i < 40_000; i += 1) {
    table.set(i & 1023, sum);
    sum = (Math.imul(sum ^ i, 0x9e3779b1) + (table.get((i * 7) & 1023) ?? 0)) | 0;
  }
  return performance.now() - begin;
}

/** How many times slower than that machine this one is now: 1 where it is not. */
function slowness(): number {
  return Math.max(1, Math.min(...Array.from({ length: 20 }, piece)) / usualPiece);
}

function processorTime(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Some systems count a processor's time in steps of 10 ms: what is compared takes several of them. */
const measurable = 50;

/** The time of work that may be short, done as often as makes it measurable. */
function meanProcessorTime(work: () => unknown): number {
  let [total, times] = [0, 0];
  for (; total < measurable; times += 1) total += processorTime(work);
  return total / times;
}

/** Expects that work takes less than so many milliseconds of a processor. */
export function expectWithin(limit: number, work: () => unknown): void {
  let least = Infinity;
  for (let attempt = 0; attempt < attempts && least >= limit; attempt += 1)
    least = Math.min(least, processorTime(work) / slowness());
  expect(least, "milliseconds of a processor").toBeLessThan(limit);
}

/** Expects that work which is larger takes less than so many times as long. */
export function expectGrowth(most: number, small: () => unknown, large: () => unknown): void {
  let [short, long] = [Infinity, Infinity];
  for (let attempt = 0; attempt < attempts && long >= most * short; attempt += 1) {
    // What is warm and what is not, what is collected meanwhile: the shortest is of neither.
    for (let turn = 0; turn < 2; turn += 1) short = Math.min(short, meanProcessorTime(small));
    long = Math.min(long, meanProcessorTime(large));
  }
  expect(long / short, "times as long").toBeLessThan(most);
}
