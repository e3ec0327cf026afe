/** How soon: what is done after a load, an edit or a long run is little, and the page stays alive meanwhile. */
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  closeBrowser,
  everythingFetched,
  newContext,
  openBrowser,
  paste,
  stopAfter,
  verdict,
} from "./browser.ts";
import type { Opened } from "./browser.ts";
import { expectTasksWithin, expectWithin } from "./effort.ts";

let opened: Opened;

beforeAll(async () => {
  opened = await openBrowser("playground");
});

afterAll(async () => {
  await closeBrowser(opened);
});

/** Opens the page as somebody who was never there; gives the bytes that came, compressed, and when the first result was shown. Its process stays, so that its work can be counted. */
async function firstLoad(): Promise<{ readonly bytes: number; readonly took: number }> {
  const context = await newContext(opened.browser);
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
  return { bytes, took };
}

describe("the first load", () => {
  test("is at most 1.45 MB compressed and shows a result of axpy within 2 s", async () => {
    const page = await opened.context.newPage();
    await expectWithin(2000, opened, page, async () => {
      const { bytes, took } = await firstLoad();
      expect(bytes).toBeGreaterThan(100_000);
      expect(bytes).toBeLessThan(1_450_000);
      return took;
    });
    await page.close();
  });
});

const product = `import { tensor, bf16, dot, f32, fromNumbers, kernel, loop, open, slice, zeros } from "tilewright";
const size = 256;
const tile = 64;
const matmul = kernel(
  {
    name: "matmul",
    grid: { i: size / tile, j: size / tile },
    inputs: { a: tensor(bf16, [size, size]), b: tensor(bf16, [size, size]) },
    outputs: { c: tensor(f32, [size, size]) },
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

describe("work", () => {
  let page: Page;

  beforeAll(async () => {
    page = await opened.context.newPage();
    await page.goto(opened.address);
    await verdict(page);
  });

  test("after an edit is done within 300 ms", async () => {
    // Somebody who types has looked at the last result, and the types were loaded.
    await page.click(".cm-content");
    await page.waitForSelector("text=types ready");
    await expectWithin(300, opened, page, async () => {
      await page.waitForTimeout(1000);
      return editTime(page);
    });
  });

  const runProduct = async (): Promise<number> => {
    await paste(page, `${product}// ${Math.random()}\n`);
    const said = await verdict(page);
    expect(said).toMatch(/^No findings, \d+ ms$/);
    return Number(/\d+/.exec(said)?.[0]);
  };

  test("on a product of 256³ takes less than 3 s, and the page stays alive", async () => {
    await stopAfter(page, 120);
    await expectWithin(3000, opened, page, runProduct);
    await expectTasksWithin(100, opened, page, runProduct);
    await page.close();
  });
});
