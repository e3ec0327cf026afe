/** The page itself: that it needs no network, who can use it, and what it looks like. */
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { violations } from "./accessibility.ts";
import {
  closeBrowser,
  everythingFetched,
  openBrowser,
  openItem,
  paste,
  show,
  stopAfter,
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

const pictures = fileURLToPath(new URL("../../docs/images/playground/", import.meta.url));

/** Pictures are for the docs; they are taken anew only when asked for. */
async function picture(page: Page, name: string): Promise<void> {
  if (process.env["SCREENSHOTS"] !== "1") return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: `${pictures}${name}.png` });
}

describe("without a network", () => {
  test("a page that is open goes on", async () => {
    const page = await opened.context.newPage();
    await page.goto(opened.address);
    await verdict(page);
    await everythingFetched(page);
    await opened.context.setOffline(true);
    try {
      expect(await openItem(page, "transpose")).toMatch(/^No findings/);
      await show(page, "stages");
      expect(await page.textContent('[aria-label="Right: PTX"]')).toContain(".version");
    } finally {
      await opened.context.setOffline(false);
    }
    await page.close();
  });

  test("a page that was visited opens again, and programs are still kept in", async () => {
    // A server and a browser of its own, so that the server can go away.
    const visited = await openBrowser("playground");
    const page = await visited.context.newPage();
    await page.goto(visited.address);
    await verdict(page);
    await page.waitForFunction(async () => {
      const { active } = await navigator.serviceWorker.ready;
      return active?.state === "activated";
    });
    visited.server.closeAllConnections();
    visited.server.close();
    await expect(fetch(visited.address)).rejects.toThrow();
    await page.reload();
    expect(await verdict(page)).toMatch(/^No findings/);
    await show(page, "stages");
    expect(await page.textContent('[aria-label="Right: PTX"]')).toContain(".version");
    await show(page, "results");
    await paste(
      page,
      "const a = await fetch('/page.js').then(() => 1, () => 0);\nlet b = 0;\ntry { b = await caches.keys().then(() => 1); } catch {}\nconsole.log(`reached ${a} ${b} ${self.origin}`);\n",
    );
    await page.waitForSelector(".printed");
    expect(await page.textContent(".printed")).toBe("reached 0 0 null");
    await visited.browser.close();
  });
});

describe("everybody", () => {
  let page: Page;

  beforeAll(async () => {
    page = await opened.context.newPage();
    await page.goto(`${opened.address}#g=handoff`);
    await verdict(page);
    await stopAfter(page, 120);
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
    await page.waitForSelector("dialog", { state: "hidden" });
  });

  test("can go through the views with the keyboard", async () => {
    await openItem(page, "axpy");
    await page.focus("#tab-graph, #tab-results");
    await show(page, "results");
    await page.focus("#tab-results");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector("#tab-findings[aria-selected=true]");
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector("#tab-results[aria-selected=true]");
  });

  test("can use a telephone", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    for (const view of ["results", "stages", "timeline"]) {
      await show(page, view);
      const width = (): Promise<number> =>
        page.evaluate(() => document.documentElement.scrollWidth);
      await expect.poll(width).toBeLessThanOrEqual(390);
    }
    expect(await violations(page)).toEqual([]);
    await picture(page, "phone");
  });
});
