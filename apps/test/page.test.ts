/** The page itself: how soon and how large, that it stays alive, who can use it, and what it looks like. */
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { violations } from "./accessibility.ts";
import { closeBrowser, crowding, openBrowser, openItem, show, type, verdict } from "./browser.ts";
import type { Opened } from "./browser.ts";

let opened: Opened;

beforeAll(async () => {
  opened = await openBrowser("playground");
});

afterAll(async () => {
  await closeBrowser(opened);
});

const pictures = fileURLToPath(new URL("../../docs/images/playground/", import.meta.url));

/** Pictures are for the docs; they are taken anew only when asked for. */
async function picture(page: Page, name: string): Promise<void> {
  if (process.env["SCREENSHOTS"] !== "1") return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: `${pictures}${name}.png` });
}

describe("the first load", () => {
  test("is at most 1.2 MB compressed and shows a result of axpy within 2 s", async () => {
    const page = await opened.context.newPage();
    let bytes = 0;
    const strangers: string[] = [];
    page.on("response", (response) => {
      const own = [opened.address, "blob:"].some((start) => response.url().startsWith(start));
      if (!own) strangers.push(response.url());
      // What the page makes itself, such as the worker's text, comes over no wire.
      if (response.url().startsWith("blob:")) return;
      void response.body().then((body) => {
        bytes += gzipSync(body, { level: 9 }).length;
      });
    });
    const slack = crowding();
    await page.goto(opened.address);
    await verdict(page);
    const took = await page.evaluate(() => performance.now());
    await page.waitForLoadState("networkidle");
    expect(strangers).toEqual([]);
    expect(bytes).toBeGreaterThan(100_000);
    expect(bytes).toBeLessThan(1_200_000);
    expect(took / slack).toBeLessThan(2000);
    await page.close();
  });
});

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
    const times: number[] = [];
    // The best of three: the first finds the types still loading.
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await page.waitForTimeout(1000);
      const slack = crowding();
      times.push((await editTime(page)) / slack);
    }
    expect(Math.min(...times)).toBeLessThan(300);
  });

  test("on a product of 256³ takes less than 3 s, and the page stays alive", async () => {
    await page.evaluate(() => {
      const tasks: number[] = [];
      (globalThis as unknown as { longTasks: number[] }).longTasks = tasks;
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) tasks.push(duration);
      }).observe({ type: "longtask" });
    });
    await page.click(".more summary");
    await page.selectOption("select[name='stop after']", "120");
    await page.click(".more summary");
    const slack = crowding();
    await type(
      page,
      `import { array, bf16, dot, f32, fromNumbers, kernel, loop, open, slice, zeros } from "tilewright";
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
`,
    );
    const said = await verdict(page);
    const [, milliseconds = "Infinity"] = /^No findings, (\d+) ms$/.exec(said) ?? [];
    expect(Number(milliseconds) / slack, said).toBeLessThan(3000);
    const tasks = await page.evaluate(
      () => (globalThis as unknown as { longTasks: number[] }).longTasks,
    );
    expect(Math.max(0, ...tasks) / slack).toBeLessThan(100);
  });

  test("goes on without a network", async () => {
    await opened.context.setOffline(true);
    expect(await openItem(page, "transpose")).toMatch(/^No findings/);
    await show(page, "stages");
    expect(await page.textContent('[aria-label="Right: PTX"]')).toContain(".version");
    await opened.context.setOffline(false);
    await page.close();
  });
});

describe("everybody", () => {
  let page: Page;

  beforeAll(async () => {
    page = await opened.context.newPage();
    await page.goto(`${opened.address}#g=handoff`);
    await verdict(page);
  });

  const views = ["results", "stages", "layouts", "memory", "timeline", "cost"] as const;

  test.each(views)("can use the view %s", async (view) => {
    await show(page, view);
    await page.waitForTimeout(200);
    expect(await violations(page)).toEqual([]);
    await picture(page, view);
  });

  test("can use the findings, in the dark too", async () => {
    await openItem(page, "bug-deadlock");
    await show(page, "findings");
    expect(await violations(page)).toEqual([]);
    await picture(page, "findings");
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await violations(page)).toEqual([]);
    const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: "light" });
    expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).not.toBe(
      dark,
    );
  });

  test("can use the graph, in the dark too", async () => {
    await openItem(page, "mlp");
    await show(page, "graph");
    expect(await violations(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await violations(page)).toEqual([]);
    await picture(page, "graph");
    await page.emulateMedia({ colorScheme: "light" });
  });

  test("can use the gallery", async () => {
    await page.click("text=Gallery");
    expect(await violations(page)).toEqual([]);
    await picture(page, "gallery");
    await page.keyboard.press("Escape");
    expect(await page.isVisible("dialog")).toBe(false);
  });

  test("can go through the views with the keyboard", async () => {
    await openItem(page, "axpy");
    await page.focus("#tab-graph, #tab-results");
    await show(page, "results");
    await page.focus("#tab-results");
    await page.keyboard.press("ArrowRight");
    expect(await page.getAttribute("#tab-findings", "aria-selected")).toBe("true");
    await page.keyboard.press("ArrowLeft");
    expect(await page.getAttribute("#tab-results", "aria-selected")).toBe("true");
  });

  test("can use a telephone", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    for (const view of ["results", "stages", "timeline"]) {
      await show(page, view);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(width).toBeLessThanOrEqual(390);
    }
    expect(await violations(page)).toEqual([]);
    await picture(page, "phone");
  });
});
