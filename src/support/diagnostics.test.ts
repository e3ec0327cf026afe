/** How reports print: whole, once, and with their place once. */
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { TilewrightError } from "./diagnostics.ts";

const report = (): TilewrightError =>
  new TilewrightError({
    code: "TW1033",
    message: "unknown option foo of bar",
    expected: "{ baz }",
    found: "foo",
    notes: [{ message: "a note" }],
  });

test("the stack is the report and the user's frames, of which its place is none", () => {
  const error = report();
  const [, place = ""] = /\n {2}at (.*)\n/.exec(error.message) ?? [];
  expect(place).toContain("diagnostics.test.ts");
  const frames = (error.stack ?? "").slice(`TilewrightError: ${error.message}`.length);
  expect(error.stack).toBe(`TilewrightError: ${error.message}${frames}`);
  expect(frames).not.toContain(`\n  at ${place}`);
  expect(frames).toMatch(/^\n {4}at report \(/);
});

test("Node prints a report without its fields, which it says already", () => {
  const error = report();
  expect(inspect(error)).toBe(error.stack);
  expect(inspect({ error }).split("unknown option foo of bar")).toHaveLength(2);
  expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code: "TW1033", found: "foo" });
});
