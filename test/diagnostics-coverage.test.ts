/** Every registered diagnostic is thrown by the source, tested by name, and used nowhere unregistered. */
import { expect, test } from "vitest";
import { codes } from "../src/support/diagnostic-codes/index.ts";
import { listFiles, readText } from "./source-files.ts";

const registered = Object.keys(codes).sort();

/** The codes quoted in files, each with the first file that quotes it. */
function quotedCodes(files: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const file of files)
    for (const [, code = ""] of readText(file).matchAll(/["'`/](TW\d{4})\b/g))
      if (!found.has(code)) found.set(code, file);
  return found;
}

const sources = listFiles("src", /\.ts$/).filter((file) => !file.endsWith(".test.ts"));
const thrown = quotedCodes(
  sources.filter((file) => !file.startsWith("src/support/diagnostic-codes/")),
);

/** Tests, and the tables that one of them runs. */
const tested = quotedCodes([
  ...listFiles("src", /\.test\.ts$/),
  ...listFiles("test", /\.test\.ts$/),
  ...listFiles("test/mistakes", /\.ts$/),
  ...listFiles("test/features", /\.ts$/),
  ...listFiles("test/support", /-mistakes\.ts$/),
]);

test("no code is registered twice", () => {
  const registrations = listFiles("src/support/diagnostic-codes", /\.ts$/).flatMap((file) =>
    [...readText(file).matchAll(/^ {2}(TW\d{4}): \{/gm)].map(([, code = ""]) => code),
  );
  const twice = registrations.filter((code, index) => registrations.indexOf(code) !== index);
  expect(twice).toEqual([]);
  expect(registrations.sort()).toEqual(registered);
});

test("every registered code is thrown somewhere", () => {
  expect(registered.filter((code) => !thrown.has(code))).toEqual([]);
});

test("every code that is thrown is registered", () => {
  expect([...thrown].filter(([code]) => !registered.includes(code))).toEqual([]);
});

test("every registered code is tested", () => {
  expect(registered.filter((code) => !tested.has(code))).toEqual([]);
});
