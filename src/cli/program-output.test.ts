import { expect, test } from "vitest";
import { redirectOutput } from "./program-output.ts";

test("what is written meanwhile is taken, and nothing afterwards", async () => {
  const before = process.stdout.write;
  let taken = "";
  let called = 0;
  const result = await redirectOutput(
    (text) => {
      taken += text;
    },
    async () => {
      process.stdout.write("text ");
      process.stdout.write(new TextEncoder().encode("bytes "));
      process.stdout.write("encoded ", "utf8", () => (called += 1));
      process.stdout.write("called", () => (called += 1));
      return 7;
    },
  );
  expect([result, taken, called]).toEqual([7, "text bytes encoded called", 2]);
  expect(process.stdout.write).toBe(before);
});

test("the stream is restored after a failure", async () => {
  const before = process.stdout.write;
  const failing = redirectOutput(
    () => undefined,
    () => Promise.reject(new Error("boom")),
  );
  await expect(failing).rejects.toThrow("boom");
  expect(process.stdout.write).toBe(before);
});
