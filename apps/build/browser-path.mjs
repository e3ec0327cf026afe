/** Where the browser of this machine is. */
import { existsSync } from "node:fs";
import process from "node:process";

const usual = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/opt/google/chrome/chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The one that CHROMIUM names, or a usual one; undefined where there is none. */
export function browserPath() {
  const named = process.env["CHROMIUM"];
  return [...(named === undefined ? [] : [named]), ...usual].find((path) => existsSync(path));
}
