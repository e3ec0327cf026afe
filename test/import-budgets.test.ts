/**
 * What imports of the package cost, by entry and by use. A size beyond its budget fails here; where that is meant,
 * `UPDATE_GOLDEN=1 npx vitest run test/import-budgets.test.ts` takes the sizes as they are for the budgets.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { expect, test } from "vitest";
import { importSizes, isExceeded, sizeTable, writeBudgets } from "../scripts/import-sizes.ts";
import { buildPackage } from "./build-package.ts";

test("imports cost no more than their budgets, and a number format almost nothing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tilewright-imports-"));
  try {
    await buildPackage(join(folder, "node_modules/tilewright"));
    const sizes = await importSizes(folder);
    if (process.env["UPDATE_GOLDEN"] === "1") return writeBudgets(sizes);
    expect(sizes.filter(isExceeded), sizeTable(sizes)).toEqual([]);
    // A budget for what is not there any more, or none for what is new, would say nothing.
    expect(sizes.filter(({ budget }) => budget === undefined)).toEqual([]);
    const unused = sizes.find(({ name }) => name === "a number format");
    expect(unused?.size).toBeLessThan(5);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a size beyond its budget by more than the margin is exceeded, and the table says so", () => {
  const within = { name: "within", size: 102, budget: 100 };
  const beyond = { name: "beyond", size: 104, budget: 100 };
  const unknown = { name: "new", size: 1, budget: undefined };
  expect([within, beyond, unknown].map(isExceeded)).toEqual([false, true, true]);
  expect(sizeTable([within, beyond]).match(/^.*exceeded$/gm)).toEqual([
    expect.stringMatching(/^beyond /),
  ]);
});
