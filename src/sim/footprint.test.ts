import { describe, expect, test } from "vitest";
import { f32, u8 } from "../formats/dtype.ts";
import { barrier, kernel, scoped, smem, zeros } from "../lang/index.ts";
import { targets } from "../targets/target.ts";
import { requireSharedMemory, sharedFootprint } from "./footprint.ts";

/** Touches shared memory, so that the body is not empty. */
function fill({ buffer }: { readonly buffer: { store(value: number): void } }): void {
  buffer.store(0);
}

describe("the shared memory of a block", () => {
  test("adds what the kernel holds and starts allocations at multiples of 128 bytes", () => {
    const { kernel: holds } = kernel(
      {
        name: "holds",
        scratch: { a: smem(f32, [33]), b: smem(u8, [1]), ready: barrier({ count: 3 }) },
      },
      () => {
        zeros(f32, [8]);
      },
    );
    expect(sharedFootprint(holds)).toBe(256 + 128 + 3 * 8);
  });

  test("counts the larger of scopes that follow each other, and both of nested ones", () => {
    const small = { buffer: smem(u8, [1024]) };
    const large = { buffer: smem(u8, [4096]) };
    const { kernel: follows } = kernel({ name: "follows", scratch: { a: smem(u8, [128]) } }, () => {
      scoped(small, fill);
      scoped(large, fill);
    });
    expect(sharedFootprint(follows)).toBe(128 + 4096);
    const { kernel: nests } = kernel({ name: "nests" }, () => {
      scoped(small, () => {
        scoped(large, fill);
      });
    });
    expect(sharedFootprint(nests)).toBe(1024 + 4096);
  });

  test("counts scopes of different threads together, once for each", () => {
    const { kernel: apart } = kernel(
      { name: "apart", threads: ["left", "right"] },
      ({ left, right }) => {
        left(() => {
          scoped({ buffer: smem(u8, [1024]) }, fill);
        });
        right(() => {
          scoped({ buffer: smem(u8, [4096]) }, fill);
        });
      },
    );
    expect(sharedFootprint(apart)).toBe(1024 + 4096);
  });

  test("may be all the target has, and not more", () => {
    const target = targets.sm_90a;
    const needs = (bytes: number) =>
      kernel({ name: "needs", scratch: { buffer: smem(u8, [bytes]) } }, fill).kernel;
    expect(requireSharedMemory(needs(target.sharedMemoryPerBlock), target)).toBe(232448);
    expect(() => requireSharedMemory(needs(target.sharedMemoryPerBlock + 1), target)).toThrow(
      "TW3013",
    );
  });
});
