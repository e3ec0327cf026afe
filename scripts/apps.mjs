/**
 * The playground and the site, which have packages of their own (apps/package.json) that the library needs none of. They are
 * installed when they are first needed.
 *
 *   npm run playground      builds the playground and serves it on this machine
 *   npm run site            builds the site, with the playground in it, into apps/dist/site
 *   npm run test:site       builds the site and tries it in a browser
 *   npm run test:browser    checks types and lint of both, builds them, and tries them in a browser
 */
import { spawnSync } from "node:child_process";
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

if (!existsSync(join(apps, "node_modules")))
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: apps });

/** Runs tests of what was built; where there is no browser to run them in, says so. */
async function tryOut(which) {
  const { browserPath } = await import("../apps/build/browser-path.mjs");
  if (browserPath() === undefined) {
    console.log(
      "NOT TRIED: no Chromium is installed (apt-get install chromium), and CHROMIUM names none. Everything was built.",
    );
    return;
  }
  run("npx", ["vitest", "run", "--config", "apps/vitest.config.ts", ...which]);
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
    run("npx", ["tsc", "-p", "apps/tsconfig.json"]);
    run("npx", ["oxlint", "--deny-warnings", "apps"]);
    const { buildPlayground } = await import("../apps/build/playground.mjs");
    await buildPlayground();
    await tryOut(["--exclude", "test/site/**"]);
  },
  site: async () => {
    const { buildSite, output } = await import("../apps/build/site.mjs");
    await buildSite();
    console.log(`wrote ${output}`);
  },
  testSite: async () => {
    await commands.site();
    await tryOut(["test/site"]);
  },
};

await commands[process.argv[2] ?? "playground"]();
