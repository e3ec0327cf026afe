/** How soon: limits of time, and that the page stays alive meanwhile. These tests have the machine to themselves. */
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  closeBrowser,
  crowding,
  everythingFetched,
  openBrowser,
  type,
  verdict,
} from "./browser.ts";
import type { Opened } from "./browser.ts";

let opened: Opened;

beforeAll(async () => {
  opened = await openBrowser("playground");
});

afterAll(async () => {
  await closeBrowser(opened);
});

const attempts = 5;

/** The best of a few measurements, in milliseconds of a machine that is left alone; the first below the limit ends them. */
async function best(limit: number, measure: () => Promise<number>): Promise<number> {
  let least = Infinity;
  for (let attempt = 0; attempt < attempts && least >= limit; attempt += 1) {
    const before = crowding();
    const took = await measure();
    least = Math.min(least, took / ((before + crowding()) / 2));
  }
  return least;
}

/** Opens the page as somebody who was never there; gives the bytes that came, compressed, and when the first result was shown. */
async function firstLoad(): Promise<{ readonly bytes: number; readonly took: number }> {
  const context = await opened.browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const sizes: Promise<number>[] = [];
  const strangers: string[] = [];
  page.on("response", (response) => {
    const own = [opened.address, "blob:"].some((start) => response.url().startsWith(start));
    if (!own) strangers.push(response.url());
    // What the page makes itself, such as the worker's files, comes over no wire.
    if (response.url().startsWith("blob:")) return;
    sizes.push(response.body().then((body) => gzipSync(body, { level: 9 }).length));
  });
  await page.goto(opened.address);
  await verdict(page);
  const took = await page.evaluate(() => performance.now());
  // What is fetched for later counts too.
  await everythingFetched(page);
  const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  expect(strangers).toEqual([]);
  await context.close();
  return { bytes, took };
}

describe("the first load", () => {
  test("is at most 1.2 MB compressed and shows a result of axpy within 2 s", async () => {
    const took = await best(2000, async () => {
      const loaded = await firstLoad();
      expect(loaded.bytes).toBeGreaterThan(100_000);
      expect(loaded.bytes).toBeLessThan(1_200_000);
      return loaded.took;
    });
    expect(took).toBeLessThan(2000);
  });
});

const product = `import { array, bf16, dot, f32, fromNumbers, kernel, loop, open, slice, zeros } from "tilewright";
const size = 256;
const tile = 64;
const matmul = kernel(
  {
    name: "matmul",
    grid: { i: size / tile, j: size / tile },
    inputs: { a: array(bf16, [size, size]), b: array(bf16, [size, size]) },
    outputs: { c: array(f32, [size, size]) },
  },
  ({ i, j, a, b, c }) => {
    const [rows, columns] = [slice(i.mul(tile), tile), slice(j.mul(tile), tile)];
    const product = loop({ to: size / tile, carry: zeros(f32, [tile, tile]) }, (step, sum) => {
      const along = slice(step.mul(tile), tile);
      return dot(a.at(rows, along).load(), b.at(along, columns).load(), { accumulator: sum });
    });
    c.at(rows, columns).store(product);
  },
);
const ones = fromNumbers(bf16, [size, size], new Float64Array(size * size).fill(1));
const device = await open();
const { c } = await device.run(matmul, { a: ones, b: ones });
if (c.data.some((value) => value !== size)) throw new Error("wrong");
device.dispose();
`;

/** Milliseconds from a key to the page that shows the new run, as the page itself sees it. */
async function editTime(page: Page): Promise<number> {
  const timed = page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const main = document.querySelector("main");
        const last = Number(main?.dataset["run"]);
        let begin = 0;
        const keyed = (): void => {
          begin = performance.now();
        };
        addEventListener("beforeinput", keyed, { capture: true, once: true });
        const observer = new MutationObserver(() => {
          const { run, state } = main?.dataset ?? {};
          if (Number(run) <= last || state !== "finished") return;
          observer.disconnect();
          resolve(performance.now() - begin);
        });
        observer.observe(document.body, { subtree: true, attributes: true });
      }),
  );
  await page.click(".cm-content");
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type(" ");
  return timed;
}

/** Keeps the durations of long tasks from now on. */
async function watchTasks(page: Page): Promise<void> {
  await page.evaluate(() => {
    const host = globalThis as unknown as { longTasks: number[]; watcher?: PerformanceObserver };
    const tasks: number[] = [];
    host.longTasks = tasks;
    host.watcher?.disconnect();
    host.watcher = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) tasks.push(duration);
    });
    host.watcher.observe({ type: "longtask" });
  });
}

describe("work", () => {
  let page: Page;

  beforeAll(async () => {
    page = await opened.context.newPage();
    await page.goto(opened.address);
    await verdict(page);
  });

  test("after an edit is done within 300 ms", async () => {
    const took = await best(300, async () => {
      // Somebody who types has looked at the last result, and the types were loaded.
      await page.waitForTimeout(1000);
      return editTime(page);
    });
    expect(took).toBeLessThan(300);
  });

  test("on a product of 256³ takes less than 3 s, and the page stays alive", async () => {
    await page.click(".more summary");
    await page.selectOption("select[name='stop after']", "120");
    await page.click(".more summary");
    const took = await best(3000, async () => {
      await type(page, `${product}// ${Math.random()}\n`);
      const said = await verdict(page);
      return Number(/^No findings, (\d+) ms$/.exec(said)?.[1] ?? Infinity);
    });
    expect(took).toBeLessThan(3000);
  });

  test("has no task over 100 ms on the page's own thread", async () => {
    const longest = await best(100, async () => {
      await watchTasks(page);
      await type(page, `${product}// ${Math.random()}\n`);
      await verdict(page);
      return page.evaluate(() =>
        Math.max(0, ...(globalThis as unknown as { longTasks: number[] }).longTasks),
      );
    });
    expect(longest).toBeLessThan(100);
    await page.close();
  });
});
