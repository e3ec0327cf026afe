/** The programs of the gallery: every one of them, as the dialog lists them. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  closeBrowser,
  linesWith,
  openBrowser,
  openItem,
  programText,
  stopAfter,
  verdict,
} from "./browser.ts";
import type { Opened } from "./browser.ts";
import { galleryFiles } from "./gallery-files.ts";

let opened: Opened;
let page: Page;

beforeAll(async () => {
  opened = await openBrowser("playground");
  page = await opened.context.newPage();
  await page.goto(opened.address);
  await verdict(page);
  await stopAfter(page, 120);
});

afterAll(async () => {
  await closeBrowser(opened);
});

// A test that fails half way must not take the next ones with it.
beforeEach(async () => {
  await page.click("#tab-results");
});

describe("the gallery", () => {
  const right = galleryFiles.filter(({ id, reports }) => reports === undefined && id !== "tour");
  const broken = galleryFiles.filter(({ reports }) => reports !== undefined);

  test.each(right)("$id runs and nothing is found", async ({ id, source }) => {
    expect(await openItem(page, id)).toMatch(/^No findings/);
    expect(await programText(page)).toBe(source);
  });

  test.each(broken)("$id shows its code on its lines", async ({ id, source, reports }) => {
    const said = await openItem(page, id);
    const { code = "", lines = [] } = reports ?? {};
    expect(said).toContain(code);
    await page.click("#tab-findings");
    const named = await page.$$eval(".finding .line-button", (buttons) =>
      buttons.map((button) => Number(button.textContent.replace("line ", ""))),
    );
    const expected = lines.map((text) => {
      const line = source.split("\n").findIndex((each) => each.includes(text)) + 1;
      expect(line).toBeGreaterThan(0);
      return line;
    });
    expect(named).toEqual(expect.arrayContaining(expected));
    const marked = async (): Promise<readonly number[]> => [
      ...(await linesWith(page, "line-found")),
      ...(await linesWith(page, "line-related")),
    ];
    await expect.poll(marked).toEqual(expect.arrayContaining(expected));
  });

  test("tour runs every example, and shows the bug at its end", async () => {
    expect(await openItem(page, "tour")).toContain("TW3001");
    const printed = await page.textContent(".printed");
    for (const stop of ["axpy with a tail", "row softmax", "double-buffered matmul", "cluster"])
      expect(printed).toContain(stop);
  });

  test("opens as a dialog that lists every program", async () => {
    await page.click("text=Gallery");
    const listed = await page.$$eval("dialog [data-item]", (buttons) =>
      buttons.map((button) => button.getAttribute("data-item")),
    );
    expect(listed).toEqual(galleryFiles.map(({ id }) => id));
    await page.click('dialog [data-item="softmax"]');
    expect(await verdict(page)).toMatch(/^No findings/);
    expect(await page.textContent(".file")).toBe("softmax.ts");
  });

  test("explains a bug when asked", async () => {
    await openItem(page, "bug-deadlock");
    await page.click("details.guide summary");
    expect(await page.textContent("details.guide")).toContain("a buffer that was never filled");
  });
});
