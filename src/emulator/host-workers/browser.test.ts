/** Threads of a browser, whose parts are stood in for: a worker that hands messages to the file it would load. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { poolOf, dividedLaunches, recordLaunch } from "../../../test/support/divided-launches.ts";
import type { DividedLaunch } from "../../../test/support/divided-launches.ts";
import * as emulator from "../index.ts";
import { parsePtx } from "../../ptx/parser/index.ts";
import * as browser from "../../workers/browser.ts";
import { WorkerPool } from "./worker-pool.ts";

type Handler = ((event: { readonly data: unknown }) => void) | null;

const made: StandIn[] = [];
let copies = 0;
let turn: Promise<void> = Promise.resolve();

class StandIn {
  onmessage: Handler = null;
  onerror: (() => void) | null = null;
  isTerminated = false;
  readonly url: URL;
  readonly options: unknown;

  constructor(url: URL, options: unknown) {
    this.url = url;
    this.options = options;
    made.push(this);
  }

  postMessage(data: unknown): void {
    const received: unknown = structuredClone(data);
    // One after another: all of them answer by the same global name.
    turn = turn.then(
      () =>
        new Promise((resolve) => {
          vi.stubGlobal("postMessage", (answer: unknown) => {
            this.onmessage?.({ data: answer });
            resolve();
          });
          (globalThis.onmessage as unknown as Handler)?.({ data: received });
        }),
    );
  }

  terminate(): void {
    this.isTerminated = true;
  }
}

beforeEach(async () => {
  made.length = 0;
  vi.stubGlobal("Worker", StandIn);
  vi.stubGlobal("navigator", { hardwareConcurrency: 3 });
  vi.stubGlobal("onmessage", null);
  // Another copy each time: a thread loads the file anew.
  await import(`../../runtime/threads/browser-worker.ts?copy=${copies++}`);
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const atOnce = { patience: 0, gain: 0 };
const alone = { EmulatedMemory: emulator.EmulatedMemory, parsePtx, run: emulator.emulate };
const [easy] = dividedLaunches as readonly [DividedLaunch, ...DividedLaunch[]];
const options = { seed: 1, checks: true };

describe("in a browser", () => {
  test("as many module workers as there are processors share a launch", async () => {
    const pool = new WorkerPool({ handover: atOnce, host: browser });
    const shared = await recordLaunch({ ...alone, run: poolOf(emulator, pool) }, easy, options);
    expect(shared).toEqual(await recordLaunch(alone, easy, options));
    expect(made.map((worker) => [worker.url.pathname.split("/").at(-1), worker.options])).toEqual(
      Array.from({ length: 3 }, () => ["browser-worker.js", { type: "module" }]),
    );
    pool.dispose();
    expect(made.every(({ isTerminated }) => isTerminated)).toBe(true);
  });

  test("a worker that cannot be loaded leaves the launch to the calling thread", async () => {
    const pool = new WorkerPool({ threads: 2, handover: atOnce, host: browser });
    const running = recordLaunch({ ...alone, run: poolOf(emulator, pool) }, easy, options);
    await vi.waitFor(() => expect(made.length).toBe(2));
    made[1]?.onerror?.();
    expect(await running).toEqual(await recordLaunch(alone, easy, options));
  });

  test("pages that share no memory have one thread", async () => {
    vi.stubGlobal("crossOriginIsolated", false);
    const pool = new WorkerPool({ threads: 2, handover: atOnce, host: browser });
    const record = await recordLaunch({ ...alone, run: poolOf(emulator, pool) }, easy, options);
    expect(record).toEqual(await recordLaunch(alone, easy, options));
    expect(made).toEqual([]);
  });

  test("what runs elsewhere after all has one processor", () => {
    vi.stubGlobal("navigator", undefined);
    expect(browser.processors()).toBe(1);
  });
});
