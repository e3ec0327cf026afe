/** The tests of the package that need nothing but `npm ci`: what `--quick` runs, and `npm test` among all others. */
export const quickTests: readonly string[] = [
  "test/package.test.ts",
  "test/import-budgets.test.ts",
  "test/deployment.test.ts",
];
