/** A real browser on the built playground: where it is found, how it is opened, and how slow the machine is just now. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { browserPath } from "../build/browser-path.mjs";
import { serve } from "../build/serve.mjs";

export interface Opened {
  readonly browser: Browser;
  readonly context: BrowserContext;
  readonly address: string;
  readonly server: Server;
}

const built = fileURLToPath(new URL("../dist/", import.meta.url));

/** Serves `apps/dist/<folder>` and opens a browser. */
export async function openBrowser(folder: string): Promise<Opened> {
  const executablePath = browserPath();
  if (executablePath === undefined) throw new Error("no Chromium is installed");
  const server = (await serve(`${built}${folder}`, 0)) as Server;
  // Who is root has no sandbox of Chromium's own.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launch({ executablePath, args });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const { port } = server.address() as AddressInfo;
  return { browser, context, server, address: `http://127.0.0.1:${port}/` };
}

export async function closeBrowser({ browser, server }: Opened): Promise<void> {
  await browser.close();
  server.close();
}

/**
 * How many times longer than it needs something takes now, because others use the machine too: a loop is timed, by the
 * clock and by its processor. Limits of time hold on a machine that is left alone, where this is 1.
 */
export function crowding(): number {
  const [begin, used] = [performance.now(), process.cpuUsage()];
  let sum = 0;
  while (performance.now() - begin < 200) sum += Math.sqrt(sum + 1);
  const { user, system } = process.cpuUsage(used);
  return Math.max(1, (performance.now() - begin) / ((user + system) / 1000));
}

/** The number of the run that was the last one before something was done. */
const before = new WeakMap<Page, number>();

async function note(page: Page): Promise<void> {
  before.set(page, Number(await page.getAttribute("main", "data-run")));
}

/** What the page says of the run that followed what was done last, once it has ended. */
export async function verdict(page: Page): Promise<string> {
  await page.waitForFunction(
    (last) => {
      const { state = "", run = "0" } = document.querySelector("main")?.dataset ?? {};
      return Number(run) > last && !["none", "running"].includes(state);
    },
    before.get(page) ?? 0,
    { timeout: 50_000 },
  );
  return (await page.textContent("[data-testid=status]")) ?? "";
}

/** Waits for what the page fetches after the first result, the last parts of its worker. */
export async function everythingFetched(page: Page): Promise<void> {
  await page.waitForFunction(
    () => {
      const names = performance.getEntriesByType("resource").map(({ name }) => name);
      const parts = ["compiler", "programs", "examples"];
      return parts.every((part) => names.some((name) => name.includes(`/worker/${part}-`)));
    },
    undefined,
    { timeout: 50_000 },
  );
}

/** Replaces the program as somebody would who types it. */
export async function type(page: Page, text: string): Promise<void> {
  await note(page);
  await page.click(".cm-content");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

/** The text of the program. */
export async function programText(page: Page): Promise<string> {
  return page.evaluate(() => {
    const content = document.querySelector(".cm-content") as unknown as {
      readonly cmTile?: { readonly view: { readonly state: { readonly doc: unknown } } };
      readonly cmView?: { readonly view: { readonly state: { readonly doc: unknown } } };
    };
    return String((content.cmTile ?? content.cmView)?.view.state.doc);
  });
}

/** Opens a program of the gallery in a page that is open, and waits for its run. */
export async function openItem(page: Page, id: string): Promise<string> {
  await note(page);
  await page.evaluate((item) => {
    const wanted = `#g=${item}`;
    if (location.hash === wanted) dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = wanted;
  }, id);
  await page.waitForFunction(
    (item) => document.querySelector(".file")?.textContent?.startsWith(`${item}.`) === true,
    id,
  );
  return verdict(page);
}

export async function show(page: Page, view: string): Promise<void> {
  await page.click(`#tab-${view}`);
  await page.waitForFunction(() => document.querySelector("#view .progress") === null, undefined, {
    timeout: 50_000,
  });
}

/** Numbers of the lines with a class in the editor. */
export async function linesWith(page: Page, name: string): Promise<readonly number[]> {
  return page.evaluate((className) => {
    const lines = [...document.querySelectorAll(".cm-line")];
    const numbers = [...document.querySelectorAll(".cm-lineNumbers .cm-gutterElement")].filter(
      (element) => (element as HTMLElement).style.visibility !== "hidden",
    );
    return lines.flatMap((line, index) =>
      line.classList.contains(className) ? [Number(numbers[index]?.textContent)] : [],
    );
  }, name);
}
