/** Compiling ahead of the first kernel: it goes the whole way, in pieces, once a process. */
import { expect, test } from "vitest";
import { addWarmUpOperation } from "../device/warm-up-operations.ts";
import { f32 } from "../formats/dtype.ts";
import { tensor, full, kernel } from "../lang/index.ts";
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
  const planned: string[] = [];
  const twice = kernel(
    { name: "twice", grid: {}, outputs: { out: tensor(f32, [32]) } },
    ({ out }) => {
      out.store(full(f32, [32], 2));
    },
  );
  addWarmUpOperation({
    plan: () => {
      planned.push("twice");
      return { launches: [{ kernel: twice, arguments: { out: { argument: "out" } } }] };
    },
  });
  const first = warmUp(cache);
  expect(first.next().done).toBe(false);
  expect(asked).toEqual(["cache"]);
  // Thirteen pieces of each of three kernels, the tracing of two, the plan of one, and what is between them; more where a file of
  // tests before this one has loaded a part of the library.
  expect([...first].length).toBeGreaterThanOrEqual(44);
  expect(planned).toEqual(["twice"]);
  expect([...warmUp(cache)]).toEqual([]);
  expect(asked).toEqual(["cache"]);
});
