/** The built site: its pages, its search, its snippets in the playground, its reference and its charts. */
import { readdirSync, readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { violations } from "../accessibility.ts";
import { closeBrowser, openBrowser, programText } from "../browser.ts";
import type { Opened } from "../browser.ts";

let opened: Opened;
let page: Page;

beforeAll(async () => {
  opened = await openBrowser("site");
  page = await opened.context.newPage();
});

afterAll(async () => {
  await closeBrowser(opened);
});

const docs = new URL("../../../docs/", import.meta.url);
const names = readdirSync(docs).filter((name) => name.endsWith(".md"));

describe("pages", () => {
  test.each(names)("%s is one, with its heading", async (name) => {
    const [, heading = ""] = /^# (.*)$/m.exec(readFileSync(new URL(name, docs), "utf8")) ?? [];
    await page.goto(`${opened.address}${name.replace(".md", ".html")}`);
    const shown = (await page.textContent("h1")) ?? "";
    expect(shown.replace(/[\u200b\s]+$/, "")).toContain(heading.replaceAll("`", "").slice(0, 12));
  });

  test("are found by what they say", async () => {
    await page.goto(`${opened.address}language.html`);
    await page.waitForLoadState("networkidle");
    await page.click(".DocSearch-Button");
    await page.fill("#localsearch-input", "swizzle");
    await page.waitForSelector("#localsearch-list li a");
    const found = await page.$$eval("#localsearch-list li a", (links) =>
      links.map((link) => link.getAttribute("href")),
    );
    expect(found.join(" ")).toContain("layouts");
  });

  test("have programs that open in the playground", async () => {
    await page.goto(`${opened.address}stablehlo.html`);
    await page.locator(".open-in-playground").first().click();
    await page.waitForSelector("text=This program came with a link");
    expect(await programText(page)).toContain('from "tilewright/graph"');
    await page.click(".stranger button");
    await page.waitForSelector(".printed");
    expect(await page.textContent(".printed")).toContain("30");
  });

  test("have a reference of the API", async () => {
    await page.goto(`${opened.address}api/index.html`);
    await page.locator(".vp-doc a", { hasText: "index" }).first().click();
    await page.waitForSelector("h3:has-text('kernel()')");
  });

  test("have charts with the project's figures and its peers'", async () => {
    await page.goto(`${opened.address}charts.html`);
    expect(await page.$$("svg.chart .ours")).not.toEqual([]);
    expect(await page.$$("svg.chart .peer")).not.toEqual([]);
  });

  test("can be used by everybody", async () => {
    for (const name of ["index", "language", "charts"]) {
      await page.goto(`${opened.address}${name}.html`);
      // The theme's button is called Search, and shows its key besides.
      expect(await violations(page, [".DocSearch-Button"]), name).toEqual([]);
    }
  });

  test("fit a telephone", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    for (const name of ["index", "language"]) {
      await page.goto(`${opened.address}${name}.html`);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
        390,
      );
    }
  });
});
