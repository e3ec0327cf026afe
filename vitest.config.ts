import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

// Tests and the snippets they run import "tilewright" as a user does; the aliases lead them to the
// source, so that no build is needed and every test shares one instance of the library.
export default defineConfig({
  resolve: {
    alias: [
      { find: /^tilewright$/, replacement: source("index.ts") },
      { find: /^tilewright\/emulator$/, replacement: source("emulator/api/index.ts") },
      { find: /^tilewright\/files$/, replacement: source("files/index.ts") },
      { find: /^tilewright\/testing$/, replacement: source("testing/index.ts") },
    ],
  },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["test/.snippets/**"],
    testTimeout: 120_000,
    hookTimeout: 240_000,
    // Unless told, vitest leaves one of two cores idle.
    maxWorkers: "100%",
  },
});
