/**
 * The playground and the site, which have packages of their own (apps/package.json) that the library needs none of. They are
 * installed when they are first needed.
 *
 *   npm run playground      builds the playground and serves it on this machine
 *   npm run site            builds the site, with the playground in it, into apps/dist/site
 *   npm run test:site       builds the site and tries it in a browser
 *   npm run test:browser    checks types and lint of both, builds the playground, and tries it in a browser
 *   npm run browser         installs a browser for that where there is none and that can be done
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const apps = join(root, "apps");

function run(command, given, settings = {}) {
  const { status } = spawnSync(command, given, {
    cwd: root,
    stdio: "inherit",
    shell: process.platform === "win32",
    ...settings,
  });
  if (status !== 0) process.exit(status ?? 1);
}

/** Runs a check beside others; resolves to whether it passed. */
function passes(command, given) {
  // As in check.mjs: less garbage collection for programs in Go.
  const env = { GOGC: "400", ...process.env };
  const settings = { cwd: root, env, stdio: "inherit", shell: process.platform === "win32" };
  return new Promise((resolve, reject) => {
    const child = spawn(command, given, settings);
    child.on("error", reject);
    child.on("close", (status) => resolve(status === 0));
  });
}

if (!existsSync(join(apps, "node_modules")))
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: apps });

/** Installs a browser, by the system's own way where that is open to us, or into the user's cache. */
function installBrowser() {
  const isRoot = process.getuid?.() === 0;
  const ways = [
    ...(isRoot
      ? ["apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium"]
      : []),
    "npx playwright-core install chromium",
  ];
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  for (const way of ways) {
    const settings = { cwd: apps, stdio: "ignore", shell: true, env, timeout: 120_000 };
    if (spawnSync(way, settings).status === 0) return;
  }
  console.log("Chromium could not be installed.");
}

/** Whether there is a browser, with the libraries that it needs. */
function starts(path) {
  if (path === undefined) return false;
  return spawnSync(path, ["--version"], { stdio: "ignore", timeout: 30_000 }).status === 0;
}

/** Runs tests of what was built, a group after another; where there is no browser to run them in, says so. */
async function tryOut(groups) {
  const { browserPath } = await import("../apps/build/browser-path.mjs");
  if (!starts(browserPath())) {
    console.log(
      "NOT TRIED: no Chromium that starts is installed (apt-get install chromium), and CHROMIUM names none. Everything was built.",
    );
    return;
  }
  for (const group of groups)
    run("npx", ["vitest", "run", "--config", "apps/vitest.config.ts", ...group]);
}

const commands = {
  playground: async () => {
    const { buildPlayground } = await import("../apps/build/playground.mjs");
    const { output } = await import("../apps/build/bundle.mjs");
    const { serve } = await import("../apps/build/serve.mjs");
    await buildPlayground();
    const server = await serve(output, Number(process.env["PORT"] ?? 8080));
    console.log(`http://127.0.0.1:${server.address().port}/`);
  },
  test: async () => {
    const { buildPlayground } = await import("../apps/build/playground.mjs");
    await buildPlayground();
    // The library's types are those of its build, which the playground's begins with: its source is checked by `npm run typecheck`.
    const checks = [
      passes("npx", ["tsc", "-p", "apps/tsconfig.json", "--checkers", "1"]),
      passes("npx", ["oxlint", "--deny-warnings", "apps"]),
    ];
    const playground = ["--exclude", "test/site/**"];
    const [timing, others] = [["test/timing.test.ts"], ["--exclude", "test/timing.test.ts"]];
    // Times by the clock are measured while nothing else runs; other tests go on beside the checks.
    const strict = process.env["TILEWRIGHT_STRICT_TIMES"] === "1";
    if (strict) await Promise.all(checks);
    await tryOut(strict ? [timing, [...playground, ...others]] : [playground]);
    if (!(await Promise.all(checks)).every(Boolean)) process.exit(1);
  },
  browser: async () => {
    const { browserPath } = await import("../apps/build/browser-path.mjs");
    if (browserPath() === undefined) installBrowser();
  },
  site: async () => {
    const { buildSite, output } = await import("../apps/build/site.mjs");
    await buildSite();
    console.log(`wrote ${output}`);
  },
  testSite: async () => {
    await commands.site();
    await tryOut([["test/site"]]);
  },
};

await commands[process.argv[2] ?? "playground"]();
