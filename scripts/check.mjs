/**
 * `npm test`: everything a change must pass. The static checks run two at a time and stay silent
 * unless they fail; the tests follow, because they may use the build.
 *
 *   format  ok   3.1 s
 *   types   ok   7.9 s
 *   lint    ok  14.0 s
 *   build   ok   6.2 s
 *   (vitest's own report)
 */
import { spawn } from "node:child_process";
import process from "node:process";

const staticChecks = [
  { name: "lint", script: "lint" },
  // Checkers beside each other find the same types anew, each for itself: one takes half the work of four.
  { name: "types", script: "typecheck", parameters: ["--checkers", "1"] },
  // Types are checked beside it.
  { name: "build", script: "build", parameters: ["--noCheck"] },
  { name: "format", script: "format:check" },
];
const concurrency = 2;

/** The compiler and the linter are programs in Go, which collect garbage less often with this, a tenth of their time. */
const env = { GOGC: "400", ...process.env };

/** Runs an npm script; resolves to its exit status and, unless `live`, what it printed. */
function runScript(script, live, parameters = []) {
  return new Promise((resolve, reject) => {
    const child = spawn("npm", ["run", "--silent", script, "--", ...parameters], {
      env,
      stdio: live ? "inherit" : ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
    });
    let output = "";
    const collect = (chunk) => (output += chunk);
    child.stdout?.setEncoding("utf8").on("data", collect);
    child.stderr?.setEncoding("utf8").on("data", collect);
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, output }));
  });
}

let failed = false;
const waiting = [...staticChecks];

async function runWaiting() {
  for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
    const start = performance.now();
    const { status, output } = await runScript(check.script, false, check.parameters);
    const seconds = ((performance.now() - start) / 1000).toFixed(1).padStart(5);
    console.log(`${check.name.padEnd(7)} ${status === 0 ? "ok  " : "FAIL"} ${seconds} s`);
    if (status !== 0) {
      failed = true;
      console.log(output.trimEnd());
    }
  }
}

await Promise.all(Array.from({ length: concurrency }, runWaiting));
if (failed) process.exit(1);
const { status } = await runScript("test:unit", true);
process.exit(status ?? 1);
