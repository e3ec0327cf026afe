import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// The tests of the built playground and site. Each file has a browser of its own.
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A browser on a crowded machine can miss a limit of time; what is wrong fails again.
    retry: 1,
    maxWorkers: 2,
  },
});
