/** A real browser on the built playground: where it is found, how it is opened, and what is done in its pages. */
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

/** Milliseconds for whatever a page must come to: how long it takes on a crowded machine is not what is tested. */
const patience = 240_000;

/** How a page is asked whether it has come to something: by default once for every picture, which it then has to draw. */
const often = { polling: 30 };

/** Serves `apps/dist/<folder>` and opens a browser. */
export async function openBrowser(folder: string): Promise<Opened> {
  const executablePath = browserPath();
  if (executablePath === undefined) throw new Error("no Chromium is installed");
  const server = (await serve(`${built}${folder}`, 0)) as Server;
  // Who is root has no sandbox of Chromium's own.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launch({ executablePath, args, timeout: patience });
  const context = await newContext(browser);
  const { port } = server.address() as AddressInfo;
  return { browser, context, server, address: `http://127.0.0.1:${port}/` };
}

/** A visitor who was never there. */
export async function newContext(browser: Browser): Promise<BrowserContext> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    // Pictures of what turns and blinks take a fifth of the time.
    reducedMotion: "reduce",
  });
  context.setDefaultTimeout(patience);
  return context;
}

export async function closeBrowser({ browser, server }: Opened): Promise<void> {
  await browser.close();
  server.close();
}

/** The number of the run that was the last one before something was done. */
const before = new WeakMap<Page, number>();

/** Waits until nothing runs or is about to. */
async function quiet(page: Page): Promise<void> {
  await page.waitForFunction(
    () => {
      const { state, due } = document.querySelector("main")?.dataset ?? {};
      return state !== "running" && due === "false";
    },
    undefined,
    often,
  );
}

/** Waits for what ran before, so that the next run is of what is done next. */
async function settle(page: Page): Promise<void> {
  await quiet(page);
  before.set(page, Number(await page.getAttribute("main", "data-run")));
}

/** What the page says of the run that followed what was done last, once it has ended. */
export async function verdict(page: Page): Promise<string> {
  await page.waitForFunction(
    (last) => {
      const { state = "", run = "0", due } = document.querySelector("main")?.dataset ?? {};
      return Number(run) > last && !["none", "running"].includes(state) && due === "false";
    },
    before.get(page) ?? 0,
    often,
  );
  return (await page.textContent("[data-testid=status]")) ?? "";
}

/** Does something that the program runs again after, and gives what the page says of that run. */
export async function verdictAfter(page: Page, act: () => Promise<unknown>): Promise<string> {
  await settle(page);
  await act();
  return verdict(page);
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
    often,
  );
}

/** Replaces the program as somebody would who pastes it. */
export async function paste(page: Page, text: string): Promise<void> {
  await settle(page);
  await page.click(".cm-content");
  await page.keyboard.press("ControlOrMeta+a");
  await page.evaluate((pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
    document.querySelector(".cm-content")?.dispatchEvent(event);
  }, text);
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
  await settle(page);
  await page.evaluate((item) => {
    const wanted = `#g=${item}`;
    if (location.hash === wanted) dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = wanted;
  }, id);
  await page.waitForFunction(
    (item) => document.querySelector(".file")?.textContent?.startsWith(`${item}.`) === true,
    id,
    often,
  );
  return verdict(page);
}

/** Opens a view, and waits for what it asks the worker. */
export async function show(page: Page, view: string): Promise<void> {
  await quiet(page);
  await page.click(`#tab-${view}`);
  await answered(page);
}

/** Waits until the view that is open has its answers. */
export async function answered(page: Page): Promise<void> {
  await page.waitForFunction(
    () => document.querySelector("#view .progress") === null,
    undefined,
    often,
  );
}

/** Seconds that a program may run from now on. */
export async function stopAfter(page: Page, seconds: number): Promise<void> {
  await page.click(".more summary");
  await page.selectOption("select[name='stop after']", String(seconds));
  await page.click(".more summary");
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
