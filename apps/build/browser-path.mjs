/** Where the browser of this machine is. */
import { existsSync } from "node:fs";
import process from "node:process";
import { chromium } from "playwright-core";

const usual = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/opt/google/chrome/chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The one that CHROMIUM names, a usual one, or the driver's own; undefined where there is none. */
export function browserPath() {
  const named = process.env["CHROMIUM"];
  const own = chromium.executablePath();
  return [...(named === undefined ? [] : [named]), ...usual, own].find((path) => existsSync(path));
}
