/** Compiling ahead of the first kernel: it goes the whole way, in pieces, once a process. */
import { expect, test } from "vitest";
import { KernelCache } from "./cache/kernel-cache.ts";
import { warmUp } from "./warm-up.ts";

test("goes through all pieces, and does nothing a second time", () => {
  const asked: string[] = [];
  const cache = (): KernelCache => {
    asked.push("cache");
    return new KernelCache(undefined, undefined);
  };
  const first = warmUp(cache);
  expect(first.next().done).toBe(false);
  expect(asked).toEqual(["cache"]);
  // Compiled, then the product traced, simplified and placed; emitting it is the end.
  expect([...first]).toHaveLength(4);
  expect([...warmUp(cache)]).toEqual([]);
  expect(asked).toEqual(["cache"]);
});
