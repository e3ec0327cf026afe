import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// The tests of the built playground and site. Each file has a browser of its own.
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  test: {
    include: ["test/**/*.test.ts"],
    // How long a crowded machine takes is not what is tested: no limit is near, and what is looked at is waited for.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // A browser is a machine of its own, and may stumble; what is wrong fails again.
    retry: 1,
    // One more than the cores of a small machine: tests of a page wait for timers, and its processes for each other, a fifth of the time.
    maxWorkers: 3,
  },
});
