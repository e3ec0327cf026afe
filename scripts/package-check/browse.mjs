/**
 * Opens pages in Chromium, one after another, and prints as JSON what each printed, which errors it had, and how many bytes of scripts it loaded:
 *
 *   node browse.mjs FOLDER NAME…        FOLDER/NAME/index.html
 *
 * Where no browser starts it prints "no browser". What drives the browser is installed with the playground (apps/package.json).
 */
import { createRequire } from "node:module";
import process from "node:process";
import { gzipSync } from "node:zlib";
import { browserPath } from "../../apps/build/browser-path.mjs";
import { serve } from "../../apps/build/serve.mjs";

const [folder, ...names] = process.argv.slice(2);
const require = createRequire(new URL("../../apps/package.json", import.meta.url));
const { chromium } = require("playwright-core");

/** In the page, before its scripts: what is printed is kept, lists as their numbers alone. */
function keepPrinted() {
  const told = (value) =>
    Array.isArray(value) || ArrayBuffer.isView(value) ? [...value].join(" ") : String(value);
  globalThis.printed = [];
  console.log = (...values) => globalThis.printed.push(values.map(told).join(" "));
}

/** Whether nothing was printed or loaded for a while, after something was. */
async function settled(page, isOver) {
  let before = 0;
  for (let quiet = 0, rounds = 0; quiet < 8 && rounds < 600; rounds += 1) {
    await page.waitForTimeout(100);
    const count = await page.evaluate(() => globalThis.printed.length);
    quiet = count > 0 && count === before ? quiet + 1 : 0;
    before = count;
    if (isOver()) return;
  }
}

async function visit(browser, address, name) {
  const page = await browser.newPage();
  const errors = [];
  const loading = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("response", (response) => {
    if (response.status() >= 400) errors.push(`${response.status()} ${response.url()}`);
    if (response.url().endsWith(".js"))
      loading.push(response.body().then((bytes) => gzipSync(bytes).length));
  });
  await page.addInitScript(keepPrinted);
  await page.goto(`${address}${name}/index.html`);
  await settled(page, () => errors.length > 0);
  const lines = await page.evaluate(() => globalThis.printed);
  const sizes = await Promise.all(loading);
  await page.close();
  return { name, lines, errors, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

async function start() {
  const executablePath = browserPath();
  // Who is root has no sandbox of Chromium's own.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  if (executablePath === undefined) return undefined;
  return chromium.launch({ executablePath, args }).catch(() => undefined);
}

const browser = await start();
if (browser === undefined) console.log("no browser");
else {
  const server = await serve(folder, 0);
  const pages = [];
  for (const name of names)
    pages.push(await visit(browser, `http://127.0.0.1:${server.address().port}/`, name));
  await browser.close();
  server.close();
  console.log(JSON.stringify(pages));
}
