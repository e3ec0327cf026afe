import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// The tests of the built playground and site. They share one browser, so that files run one after the other.
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
