/** Programs in the playground: edited ones, shared ones, endless ones, and ones that reach for more. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  closeBrowser,
  linesWith,
  openBrowser,
  openItem,
  paste,
  programText,
  stopAfter,
  verdict,
} from "./browser.ts";
import type { Opened } from "./browser.ts";
import { strict } from "./effort.ts";

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
  await page.evaluate(() => document.querySelector("details.more")?.removeAttribute("open"));
  await page.click("#tab-results");
});

/** Waits until exactly these lines of the program are marked as found. */
async function expectFound(lines: readonly number[]): Promise<void> {
  await expect.poll(() => linesWith(page, "line-found")).toEqual(lines);
}

const doubled = (factor: string): string => `import { tensor, f32, kernel } from "tilewright";
export const twice = kernel(
  { name: "twice", inputs: { x: tensor(f32, [64]) }, outputs: { out: tensor(f32, [64]) } },
  ({ x, out }) => { out.store(x.load().mul(${factor})); },
);
`;

describe("programs", () => {
  test("run again after an edit", async () => {
    await openItem(page, "axpy");
    await paste(page, doubled("2"));
    await page.waitForSelector("text=twice on the simulator");
    expect(await verdict(page)).toMatch(/^No findings/);
  });

  test("are told of mistakes on the line of the mistake", async () => {
    await paste(page, doubled('"two"'));
    await verdict(page);
    await page.click("#tab-findings");
    expect(await page.textContent(".finding .code")).toMatch(/^TW\d{4}$/);
    await expectFound([4]);
  });

  test("that cannot be parsed say where", async () => {
    await paste(page, "const a = 1;\nconst b = = 2;\n");
    expect(await verdict(page)).toContain("SyntaxError");
    await expectFound([2]);
  });

  test("that throw say where", async () => {
    await paste(page, 'const a = 1;\n\nthrow new Error("no more");\n');
    await verdict(page);
    await page.click("#tab-findings");
    expect(await page.textContent(".finding .summary")).toContain("no more");
    await expectFound([3]);
  });

  test.each([
    ["throw undefined;", "undefined was thrown, which is no Error"],
    ["throw null;", "null was thrown, which is no Error"],
    ['throw Symbol("s");', "Symbol(s) was thrown, which is no Error"],
    ["throw Object.create(null);", "{} was thrown, which is no Error"],
    ["throw { toString() { throw 1; }, toJSON() { throw 2; } };", "(without a text) was thrown"],
    ["throw Object.assign(new Error(), { name: 5, message: { a: 1 } });", '{"a":1}'],
    [
      'throw Object.defineProperty(new Error("x"), "message", { get() { throw 1; } });',
      "the program failed",
    ],
  ])("that throw anything say so: %s", async (source, text) => {
    await paste(page, `${source}\n`);
    expect(await verdict(page)).not.toMatch(/^No findings/);
    await page.click("#tab-findings");
    expect(await page.textContent(".finding")).toContain(text);
  });

  test("print and return anything", async () => {
    const source = [
      "const a = { n: 1n }; a.self = a;",
      "console.log(a, null, undefined, new Uint8Array(40), Symbol.iterator);",
      'console.log("x".repeat(30_000_000).length, "y".repeat(30_000_000));',
      "export const main = () => null;",
    ];
    await paste(page, source.join("\n"));
    expect(await verdict(page)).toMatch(/^No findings/);
    const printed = (await page.textContent(".printed")) ?? "";
    expect(printed).toContain("[object Object] null undefined [0, 0");
    expect(printed.length).toBeLessThan(50_000);
  });

  test("that import what is not there are told what is", async () => {
    await paste(page, 'import fs from "node:fs";\nconsole.log(fs);\n');
    await verdict(page);
    await page.click("#tab-findings");
    expect(await page.textContent(".finding .summary")).toContain("there is no module node:fs");
  });

  test("print, also without end", async () => {
    await paste(page, 'for (let i = 0; i < 5000; i += 1) console.log("line", i);\n');
    await verdict(page);
    const printed = (await page.textContent(".printed")) ?? "";
    expect(printed.split("\n").slice(0, 2)).toEqual(["line 0", "line 1"]);
    expect(printed.split("\n").length).toBe(500);
  });

  test("run the snippets of the docs, devices included", async () => {
    const docs = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
    const [, snippet = ""] = /```ts\n([^]*?)```/.exec(docs) ?? [];
    await paste(page, snippet);
    expect(await verdict(page)).toMatch(/^No findings/);
  });

  test("run the library's kernels as the docs do, whose comparisons are Node's", async () => {
    const docs = readFileSync(new URL("../../docs/kernels-rows.md", import.meta.url), "utf8");
    const [, snippet = ""] = /```ts\n([^]*?)```/.exec(docs) ?? [];
    expect(snippet).toContain("node:assert/strict");
    await paste(page, snippet);
    expect(await verdict(page)).toMatch(/^No findings/);
    await paste(page, 'import { deepEqual } from "node:assert/strict";\ndeepEqual([1], [2]);\n');
    expect(await verdict(page)).toMatch(/^Found AssertionError/);
  });

  test("run on the emulator, and compare with the simulator bit for bit", async () => {
    await openItem(page, "softmax");
    await page.click(".more summary");
    await page.check("text=compare with the emulator");
    await page.waitForSelector("text=Same bits as the emulator");
    await page.uncheck("text=compare with the emulator");
    await page.click(".more summary");
    await page.selectOption('select[name="on"]', "emulator");
    await page.waitForSelector("text=on the emulator");
    expect(await verdict(page)).toMatch(/^No findings/);
    await page.selectOption('select[name="on"]', "simulator");
    await page.waitForSelector("text=on the simulator");
  });

  test("take the inputs that were asked for", async () => {
    await paste(page, doubled("3"));
    await page.waitForSelector("text=twice on the simulator");
    await page.click(".more summary");
    await page.selectOption("select[name='filled with']", "ones");
    await page.waitForFunction(() =>
      document.querySelector(".array.output .range")?.textContent.includes("3 … 3, mean 3"),
    );
    await page.selectOption("select[name='filled with']", "normal");
    await page.click(".more summary");
  });

  test("are refused what a target does not have, with a code", async () => {
    await openItem(page, "bug-inflight");
    await page.selectOption('select[name="target"]', "sm_80");
    await page.click("#tab-stages");
    await page.waitForSelector("#view .finding .code");
    expect(await page.textContent("#view .finding .code")).toMatch(/^TW\d{4}$/);
    await page.selectOption('select[name="target"]', "sm_90a");
  });
});

describe("links", () => {
  const source = doubled("7");

  test("carry the program, which does not run before somebody says so", async () => {
    await openItem(page, "axpy");
    await paste(page, source);
    await page.waitForSelector("text=twice on the simulator");
    await page.selectOption('select[name="schedule"]', "adversarial");
    await verdict(page);
    await page.click("text=Share");
    await page.waitForFunction(() => location.hash.startsWith("#p="));
    const link = page.url();
    const other = await opened.context.newPage();
    await other.goto(link);
    await other.waitForSelector("text=This program came with a link");
    expect(await programText(other)).toBe(source);
    expect(await other.inputValue('select[name="schedule"]')).toBe("adversarial");
    // Not even after an edit, until it was asked for.
    await paste(other, `${source}\n`);
    await other.waitForTimeout(600);
    expect(await other.isVisible("text=This program came with a link")).toBe(true);
    await other.click(".stranger button");
    expect(await verdict(other)).toMatch(/^No findings/);
    await other.close();
  });

  test("that are damaged open the first example", async () => {
    const other = await opened.context.newPage();
    await other.goto(`${opened.address}#p=not-a-program`);
    await verdict(other);
    expect(await other.textContent(".file")).toBe("axpy.ts");
    await other.close();
  });
});

/** Milliseconds from a click on Stop to the page that says so. */
function stopTime(where: Page): Promise<number> {
  return where.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const begin = performance.now();
        new MutationObserver(() => {
          if (document.querySelector("#view")?.textContent.includes("The run was stopped") === true)
            resolve(performance.now() - begin);
        }).observe(document.body, { subtree: true, childList: true, characterData: true });
        (document.querySelector(".stop") as HTMLButtonElement).click();
      }),
  );
}

describe("endless programs", () => {
  test("are stopped within a second, and the page goes on", async () => {
    await paste(page, "for (;;) {}\n");
    await page.waitForSelector(".stop:not(:disabled)");
    await page.waitForTimeout(200);
    const took = await stopTime(page);
    if (strict) expect(took).toBeLessThan(1000);
    await paste(page, doubled("2"));
    expect(await verdict(page)).toMatch(/^No findings/);
  });

  test("are stopped by the time limit", async () => {
    await stopAfter(page, 5);
    await paste(page, "await new Promise(() => undefined);\n");
    expect(await verdict(page)).toContain("longer than 5 s");
  });

  test("are stopped inside of a kernel", async () => {
    await stopAfter(page, 120);
    await paste(
      page,
      `import { tensor, i32, kernel, loop } from "tilewright";
export const long = kernel(
  { name: "long", inouts: { x: tensor(i32, [16]) } },
  ({ x }) => { loop(2000000000, () => { x.store(x.load().add(1)); }); },
);
`,
    );
    await page.waitForSelector(".stop:not(:disabled)");
    await page.waitForTimeout(500);
    await page.click(".stop");
    await page.waitForSelector("text=The run was stopped");
  });
});

describe("what programs reach for", () => {
  const attempts: readonly (readonly [string, string])[] = [
    ["the network by fetch", 'await fetch(ADDRESS + "page.js")'],
    [
      "the network by a socket",
      "await new Promise((give, fail) => { const s = new WebSocket(ADDRESS.replace('http', 'ws')); s.onopen = give; s.onerror = () => fail(new Error('closed')); })",
    ],
    [
      "the network by a request",
      "await new Promise((give, fail) => { const r = new XMLHttpRequest(); r.open('GET', ADDRESS); r.onload = give; r.onerror = () => fail(new Error('refused')); r.send(); })",
    ],
    ["code of other hosts", 'await import(ADDRESS + "page.js")'],
    ["scripts of other hosts", 'importScripts(ADDRESS + "page.js")'],
    [
      "a worker's network",
      "await new Promise((give, fail) => { const w = new Worker(URL.createObjectURL(new Blob(['fetch(\"' + ADDRESS + '\").then(() => postMessage(1), () => postMessage(0))']))); w.onmessage = ({ data }) => data === 1 ? give() : fail(new Error('refused')); w.onerror = () => fail(new Error('refused')); })",
    ],
    [
      "databases",
      'await new Promise((give, fail) => { const r = indexedDB.open("x"); r.onsuccess = give; r.onerror = () => fail(new Error("refused")); })',
    ],
    ["storage", 'localStorage.setItem("a", "b")'],
    ["caches", 'await caches.open("x")'],
    ["files", "await navigator.storage.getDirectory()"],
    ["cookies", "document.cookie.length"],
    ["the page", "parent.document.title"],
    ["the opener", "opener.location.href"],
  ];

  let answers: ReadonlyMap<string, string>;

  beforeAll(async () => {
    const tries = attempts.map(
      ([what, attempt]) => `await attempt(${JSON.stringify(what)}, async () => { ${attempt}; });`,
    );
    const text = `const ADDRESS = ${JSON.stringify(opened.address)};
async function attempt(what, reach) {
  try {
    await reach();
    console.log(what + ": reached");
  } catch (error) {
    console.log(what + ": refused, " + error);
  }
}
${tries.join("\n")}
`;
    await stopAfter(page, 120);
    await paste(page, text);
    await verdict(page);
    const printed = (await page.textContent(".printed")) ?? "";
    answers = new Map(printed.split("\n").map((line) => line.split(": ") as [string, string]));
  });

  test.each(attempts)("%s is refused", (what) => {
    expect(answers.get(what)).toMatch(/^refused/);
  });

  test("is shown where the policy refused it", async () => {
    await paste(page, `await fetch("${opened.address}").catch(() => undefined);\n`);
    await page.waitForSelector(".refused");
    expect(await page.textContent(".refused")).toContain("connect-src");
  });
});

/** A program that finds the port on which its worker speaks to the page, and speaks on it itself. */
const forger = (body: string): string => `
const send = MessagePort.prototype.postMessage;
let port: MessagePort | undefined;
MessagePort.prototype.postMessage = function (this: MessagePort, ...given: never[]) {
  port = this;
  return (send as (...values: never[]) => void).apply(this, given);
} as never;
console.log("found");
await new Promise((resolve) => setTimeout(resolve, 50));
const forge = (message: unknown): void => (send as (value: unknown) => void).call(port, message);
${body}
await new Promise(() => undefined);
export {};
`;

describe("what a worker says is checked and limited", () => {
  const nonsense = [
    ["a report that is none", 'forge({ kind: "finished", report: { findings: 5 } });'],
    [
      "a report without numbers",
      'forge({ kind: "finished", report: { findings: [], launches: [{}], kernels: [], milliseconds: 1 } });',
    ],
    ["a message of no kind", 'forge({ kind: "constructor" });'],
    ["no message", "forge(null);"],
  ] as const;
  test.each(nonsense)("%s", async (_, body) => {
    await paste(page, forger(body));
    expect(await verdict(page)).toMatch(/^Stopped: it sent what no program sends/);
    expect(await page.textContent("[data-testid=verdict]")).toContain(
      "what is no message of a run",
    );
  });

  test("a flood of messages", async () => {
    const flood =
      'for (let i = 0; i < 300_000; i++) forge({ kind: "progress", message: "<b>" + i });';
    await paste(page, forger(flood));
    expect(await verdict(page)).toMatch(/^Stopped: it sent what no program sends/);
    expect(await page.textContent("[data-testid=verdict]")).toContain("more than 20000 messages");
  });

  test("the next program runs as ever", async () => {
    await openItem(page, "axpy");
    expect(await verdict(page)).toMatch(/^No findings/);
  });
});
