/** The views on a run: what they show is what the compiler says, and every mark leads to its line and back. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { holders } from "../../src/layout/algebra/element-maps.ts";
import { namedLayouts } from "../../src/layout/algebra/named-layouts.ts";
import { byteOffset, parseSharedLayout } from "../../src/layout/algebra/shared-layout.ts";
import {
  answered,
  closeBrowser,
  openBrowser,
  openItem,
  paste,
  show,
  stopAfter,
  verdict,
  verdictAfter,
} from "./browser.ts";
import type { Opened } from "./browser.ts";
import { galleryFiles } from "./gallery-files.ts";

let opened: Opened;
let page: Page;

beforeAll(async () => {
  opened = await openBrowser("playground");
  page = await opened.context.newPage();
  await page.goto(`${opened.address}#g=matmul-3`);
  await verdict(page);
  await stopAfter(page, 120);
});

afterAll(async () => {
  await closeBrowser(opened);
});

function lineOf(id: string, text: string): number {
  const source = galleryFiles.find((file) => file.id === id)?.source ?? "";
  return source.split("\n").findIndex((line) => line.includes(text)) + 1;
}

/** Puts the cursor on a line of the program. */
async function clickLine(text: string, number: number): Promise<void> {
  await page.$eval(
    ".cm-scroller",
    (scroller, line) => {
      scroller.scrollTop = (line - 8) * 19.5;
    },
    number,
  );
  await page.locator(".cm-line", { hasText: text }).first().click();
}

const markedTexts = (list: string): Promise<readonly string[]> =>
  page.$$eval(`[aria-label="${list}"] .text-line.marked`, (lines) =>
    lines.map((line) => line.textContent),
  );

describe("stages", () => {
  test("are all there, from the trace to PTX", async () => {
    await show(page, "stages");
    const names = await page.$$eval(".stage-path button", (buttons) =>
      buttons.map((button) => button.firstChild?.textContent ?? ""),
    );
    expect(names[0]).toBe("traced");
    expect(names).toEqual(expect.arrayContaining(["place", "barriers"]));
    expect(names.at(-1)).toBe("PTX");
  });

  test("a line of the program marks its ops and its PTX", async () => {
    await clickLine("return wgmma(", lineOf("matmul-3", "return wgmma("));
    await page.waitForSelector('[aria-label="Right: PTX"] .text-line.marked');
    const marked = async (list: string): Promise<string> => (await markedTexts(list)).join("\n");
    await expect.poll(() => marked("Left: traced")).toContain("wgmma");
    await expect.poll(() => marked("Right: PTX")).toContain("wgmma.mma_async");
  });

  test("a line of PTX marks the program's line and its op", async () => {
    const target = page
      .locator('[aria-label="Right: PTX"] .text-line[data-line]:not(.marked)')
      .first();
    const line = Number(await target.getAttribute("data-line"));
    await target.click();
    await page.waitForSelector(
      `[aria-label="Left: traced"] .text-line.marked[data-line="${line}"]`,
    );
    const source = galleryFiles.find(({ id }) => id === "matmul-3")?.source ?? "";
    const marked = (): Promise<string | null> => page.textContent(".cm-line.line-marked");
    await expect.poll(marked).toBe(source.split("\n")[line - 1]);
  });

  test("show what a stage has changed", async () => {
    await page.click('.stage-path button:has-text("place")');
    await page.$eval('[aria-label="Right: place"]', (list) => {
      list.scrollTop = 0;
    });
    await page.waitForSelector(
      '[aria-label="Right: place"] .text-line.new:has-text("target sm_90a")',
    );
    const added = await page.$$eval('[aria-label="Right: place"] .text-line.new', (lines) =>
      lines.map((line) => line.textContent),
    );
    expect(added.join("\n")).toContain("target sm_90a");
    expect(added.length).toBeGreaterThan(0);
    const all = await page.$$('[aria-label="Right: place"] .text-line');
    expect(added.length).toBeLessThan(all.length);
  });

  test("are read with the keyboard", async () => {
    await page.focus('[aria-label="Right: place"]');
    const current = '[aria-label="Right: place"] .text-line.current';
    let line = 0;
    for (let step = 0; step < 40 && line === 0; step += 1) {
      await page.keyboard.press("ArrowDown");
      line = Number(await page.getAttribute(current, "data-line"));
    }
    await page.keyboard.press("Enter");
    expect(line).toBeGreaterThan(0);
    await page.waitForSelector(
      `[aria-label="Right: place"] .text-line.marked[data-line="${line}"]`,
    );
  });
});

describe("layouts", () => {
  test("tell the lane and register of an element", async () => {
    await show(page, "layouts");
    await page.click(
      `nav[aria-label="Tiles and buffers"] button[data-line="${lineOf("matmul-3", "return wgmma(")}"]`,
    );
    await answered(page);
    await page.focus('canvas[aria-roledescription="grid of elements"]');
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"])
      await page.keyboard.press(key);
    const [holder] = holders(namedLayouts.wgmma, [128, 128], 128 + 3);
    expect(await page.textContent("[data-testid=element]")).toBe(
      `[1, 3]: warp ${holder?.warp}, lane ${holder?.lane}, register ${holder?.register}`,
    );
  });

  test("tell the bytes and bank of an element in shared memory", async () => {
    await page.click('nav[aria-label="Tiles and buffers"] button:has-text("tileB")');
    const grid = page.locator('canvas[aria-roledescription="grid of elements"]');
    await grid.waitFor();
    await answered(page);
    await grid.focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"])
      await page.keyboard.press(key);
    const layout = parseSharedLayout(
      await page.$eval("figcaption code", (code) => code.textContent),
    );
    const first = byteOffset(layout, [64, 64], 16, 3 * 64 + 1);
    expect(await page.textContent("[data-testid=element]")).toBe(
      `[3, 1]: bytes ${first} to ${first + 1}, bank ${Math.floor(first / 4) % 32}`,
    );
  });

  test("show conversions before and after, with the same element in both", async () => {
    await paste(
      page,
      `import { tensor, f32, kernel } from "tilewright";
export const sums = kernel(
  { name: "sums", inputs: { x: tensor(f32, [64, 64]) }, outputs: { out: tensor(f32, [64, 64]) } },
  ({ x, out }) => {
    const tile = x.load();
    out.store(tile.transpose().add(tile));
  },
);
`,
    );
    await verdict(page);
    await show(page, "layouts");
    await page.click('nav section:has(h3:text("Conversions")) button');
    await page.waitForFunction(
      () => document.querySelectorAll(".before-after canvas").length === 2,
    );
    await page.locator(".before-after canvas").first().focus();
    await page.keyboard.press("ArrowRight");
    expect(await page.textContent("[data-testid=element]")).toMatch(
      /^\[0, 1\]: warp .* → \[0, 1\]: warp .*/,
    );
  });
});

describe("a run over time", () => {
  test("is a timeline whose spans lead to their lines", async () => {
    await openItem(page, "handoff");
    await show(page, "timeline");
    await page.focus("canvas[aria-roledescription=timeline]");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const text = (await page.textContent("[data-testid=span]")) ?? "";
    expect(text).toMatch(/block \(i = \d\), (load|compute).*steps \d+ to \d+/);
  });

  test("is saved for Perfetto", async () => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.click("text=Save for Perfetto"),
    ]);
    expect(download.suggestedFilename()).toBe("handoff.trace.json");
    const saved = JSON.parse(readFileSync(await download.path(), "utf8")) as {
      readonly traceEvents: readonly {
        readonly name: string;
        readonly ph: string;
        readonly args: object;
      }[];
    };
    const names = new Set(saved.traceEvents.map(({ name }) => name));
    for (const name of ["copy_async", "waits: barrier_wait", "process_name", "thread_name"])
      expect(names).toContain(name);
    expect(JSON.stringify(saved)).not.toContain("blob:");
  });

  test("is a timeline on the emulator too, as the simulator has it", async () => {
    await page.selectOption('select[name="on"]', "emulator");
    await page.waitForSelector("[data-testid=as-simulated]");
    await page.waitForSelector("canvas[aria-roledescription=timeline]");
    await page.focus("canvas[aria-roledescription=timeline]");
    await page.keyboard.press("ArrowRight");
    expect(await page.textContent("[data-testid=span]")).toMatch(/line \d+/);
    await page.selectOption('select[name="on"]', "simulator");
    await page.waitForFunction(() => document.querySelector("[data-testid=as-simulated]") === null);
  });

  test("is a map of shared memory", async () => {
    await show(page, "memory");
    const rows = await page.$$eval(".memory tbody tr", (found) =>
      found.map((row) => row.textContent),
    );
    expect(rows.find((row) => row.startsWith("ring"))).toContain("f32 2 × 256");
    expect(rows.find((row) => row.startsWith("full"))).toContain("barriers");
    expect(await page.$$(".access.write")).not.toEqual([]);
    expect(await page.$$(".access.read")).not.toEqual([]);
  });
});

describe("costs", () => {
  test("are those of the launch", async () => {
    await openItem(page, "axpy");
    await show(page, "cost");
    const facts = await page.textContent(".facts");
    // 98 blocks of 1024 elements: a product and a sum for each.
    expect(facts).toContain(`${Number(((2 * 98 * 1024) / 1000).toPrecision(3))} k flops`);
    expect(facts).toContain("bound by memory");
    const lines = await page.$$eval(".cost tbody tr td:first-child", (cells) =>
      cells.map((cell) => cell.textContent),
    );
    expect(lines).toContain(`line ${lineOf("axpy", "out.at(here).store(")}`);
  });
});

describe("a deadlock", () => {
  test("is drawn with everybody who waits", async () => {
    await openItem(page, "bug-deadlock");
    await show(page, "findings");
    expect(
      await page.$$eval(".wait-graph .box:not(.arrival) .strong", (texts) =>
        texts.map((text) => text.textContent),
      ),
    ).toEqual(["load", "compute"]);
    await page.locator(".wait-graph .box.arrival").first().click();
    await expect
      .poll(() => page.textContent(".cm-line.line-marked"))
      .toContain("empty.at(slot).arrive()");
  });
});

describe("StableHLO", () => {
  test("is evaluated and drawn", async () => {
    await openItem(page, "mlp");
    await show(page, "results");
    expect(
      await page.$$eval(".array h4", (names) => names.map((name) => name.textContent)),
    ).toContain("result 0 out");
    await show(page, "graph");
    const kinds = await page.$$eval(".node .strong", (texts) =>
      texts.map((text) => text.textContent),
    );
    expect(kinds.filter((kind) => kind === "dot_general").length).toBe(2);
    expect(kinds).toContain("maximum");
  });

  test("has a plan: launches, and buffers between them in an arena", async () => {
    await openItem(page, "mlp");
    await show(page, "graph");
    const plan = (await page.textContent("[data-testid=plan]")) ?? "";
    // The hidden layer before and after relu, 16 × 64 f32 numbers each, is all that lies between the launches.
    expect(plan).toContain(`an arena of ${(2 * 16 * 64 * 4) / 1024} KiB`);
    expect(plan).toMatch(/(launch|operation) \w+\(.*\) -> result0/);
    expect(
      await page.$eval('[aria-label="Arena over steps, drawn"] svg', (svg) => svg.textContent),
    ).toContain("16x64xf32");
  });

  test("has the stages of the kernels that it is planned as", async () => {
    await show(page, "stages");
    await page.selectOption('select[name="Kernel"]', "1");
    await page.waitForSelector('[aria-label="Right: PTX"] .text-line:has-text(".entry maximum")');
    await show(page, "graph");
  });

  test("that is wrong says where", async () => {
    await paste(
      page,
      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = stablehlo.add %x, %z : tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n",
    );
    expect(await verdict(page)).toMatch(/^Found TW9/);
    await show(page, "findings");
    expect(await page.textContent(".finding .code")).toMatch(/^TW9\d{3}$/);
    expect(await page.textContent(".finding .line-button")).toBe("line 2");
  });
});

describe("the editor", () => {
  test("knows the library's types", async () => {
    await openItem(page, "axpy");
    await paste(
      page,
      'import { f32, zeros } from "tilewright";\nconst tile = zeros(f32, [4]);\ntile.nothing();\n',
    );
    await page.waitForSelector(".cm-lint-marker-error");
    // What the types say may come anew while the pointer rests: it then comes back.
    const isTold = async (): Promise<boolean> => {
      await page.mouse.move(0, 0);
      await page.hover(".cm-lintRange-error");
      await page.waitForTimeout(500);
      return page.isVisible("text=Property 'nothing' does not exist on type 'Tile<\"f32\">'");
    };
    await expect.poll(isTold).toBe(true);
  });

  test("completes what a tile can do", async () => {
    await paste(
      page,
      'import { f32, zeros } from "tilewright";\nconst tile = zeros(f32, [4]);\ntile',
    );
    await page.keyboard.type(".");
    const offered = (): Promise<readonly string[]> =>
      page.$$eval(".cm-completionLabel", (labels) => labels.map((label) => label.textContent));
    await expect.poll(offered).toEqual(expect.arrayContaining(["add", "broadcastTo", "cast"]));
    await page.keyboard.press("Escape");
  });

  test("runs with Ctrl and Enter", async () => {
    await openItem(page, "axpy");
    await page.click(".cm-content");
    const said = await verdictAfter(page, () => page.keyboard.press("Control+Enter"));
    expect(said).toMatch(/^No findings/);
  });
});
