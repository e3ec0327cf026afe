/** Compiling ahead of the first kernel: it goes the whole way, in pieces, once a process. */
import { expect, test } from "vitest";
import { KernelCache } from "./cache/kernel-cache.ts";
import type * as WarmUp from "./warm-up.ts";

test("goes through all pieces, and does nothing a second time", async () => {
  // A copy of its own: files of tests that opened a GPU before may have warmed the process up.
  const { warmUp } = (await import(`./warm-up.ts?${Date.now()}`)) as typeof WarmUp;
  const asked: string[] = [];
  const cache = (): KernelCache => {
    asked.push("cache");
    return new KernelCache(undefined, undefined);
  };
  const first = warmUp(cache);
  expect(first.next().done).toBe(false);
  expect(asked).toEqual(["cache"]);
  // Eight stages of each kernel, and the product's tracing.
  expect([...first]).toHaveLength(18);
  expect([...warmUp(cache)]).toEqual([]);
  expect(asked).toEqual(["cache"]);
});
