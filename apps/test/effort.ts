/**
 * How long something may take. Its limit is one of the clock, on a machine that is left alone; whether a machine is,
 * no test can know. So what decides is the time that the page's processes have had of a processor, on a machine of the speed
 * that the limits speak of, and there is room; `TILEWRIGHT_STRICT_TIMES=1` holds the limits themselves against the clock.
 *
 *   limit 300 ms, by default:   630 ms of processors / 1.4 (this machine is slower) = 450 ms   <  8 × 300 ms
 *   strictly:                   the best of five by the clock, 210 ms                          <  300 ms
 */
import process from "node:process";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Opened } from "./browser.ts";

export const strict = process.env["TILEWRIGHT_STRICT_TIMES"] === "1";

/** Work is done on several processors at once, some of it for later, and is slower where they are shared. */
const room = 8;

const attempts = 5;

/** Milliseconds of the piece of work below on the machine that the limits speak of. */
const usualPiece = 2.2;

/** How many times slower than that machine this one is: 1 where it is not. */
async function slowness(page: Page): Promise<number> {
  const piece = await page.evaluate(() => {
    const once = (): number => {
      const begin = performance.now();
      const table = new Map<number, number>();
      let sum = 0;
      for (let i = 0; i < 40_000; i += 1) {
        table.set(i & 1023, sum);
        sum = (Math.imul(sum ^ i, 0x9e3779b1) + (table.get((i * 7) & 1023) ?? 0)) | 0;
      }
      return performance.now() - begin;
    };
    // Nobody takes the processor away for the length of every one of these.
    return Math.min(...Array.from({ length: 40 }, once));
  });
  return Math.max(1, piece / usualPiece);
}

/** Milliseconds that processes with pages and their workers have had of a processor. */
async function processorTime({ browser }: Opened): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  const pages = processInfo.filter(({ type }) => type === "renderer");
  return pages.reduce((sum, { cpuTime }) => sum + cpuTime * 1000, 0);
}

/** The least of a few measurements; the first below the limit ends them. */
async function best(limit: number, measure: () => Promise<number>): Promise<number> {
  let least = Infinity;
  for (let attempt = 0; attempt < attempts && least >= limit; attempt += 1)
    least = Math.min(least, await measure());
  return least;
}

/** Does something whose milliseconds by the clock `act` gives; expects that they, or its work, are within a limit. */
export async function expectWithin(
  limit: number,
  opened: Opened,
  page: Page,
  act: () => Promise<number>,
): Promise<void> {
  if (strict) {
    expect(await best(limit, act)).toBeLessThan(limit);
    return;
  }
  const before = await processorTime(opened);
  await act();
  const used = (await processorTime(opened)) - before;
  expect(used).toBeGreaterThan(0);
  expect(used / (await slowness(page))).toBeLessThan(room * limit);
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly dur?: number;
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/** The longest task of a page's own thread while something is done: by the clock, and its time of a processor. */
async function longestTask({ browser }: Opened, page: Page, act: () => Promise<unknown>) {
  await browser.startTracing(page, { categories: ["toplevel"] });
  await act();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as {
    readonly traceEvents: readonly TraceEvent[];
  };
  const thread = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`;
  const ofPages = new Set(
    traceEvents
      .filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain")
      .map(thread),
  );
  const tasks = traceEvents.filter(
    (event) => event.ph === "X" && event.name.endsWith("RunTask") && ofPages.has(thread(event)),
  );
  expect(tasks).not.toEqual([]);
  const longest = (durations: readonly number[]): number => Math.max(...durations) / 1000;
  return {
    clock: longest(tasks.map(({ dur = 0 }) => dur)),
    processor: longest(tasks.map(({ dur = 0, tdur = dur }) => tdur)),
  };
}

/** Expects that no task of the page's own thread is longer than a limit while something is done. */
export async function expectTasksWithin(
  limit: number,
  opened: Opened,
  page: Page,
  act: () => Promise<unknown>,
): Promise<void> {
  const speed = strict ? 1 : await slowness(page);
  const longest = await best(limit, async () => {
    const { clock, processor } = await longestTask(opened, page, act);
    return strict ? clock : processor / speed;
  });
  expect(longest).toBeLessThan(limit);
}
