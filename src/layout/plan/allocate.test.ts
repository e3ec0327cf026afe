import { describe, expect, test } from "vitest";
import {
  tensor,
  barrier,
  bf16,
  copyAsync,
  f32,
  kernel,
  loop,
  scoped,
  slice,
  smem,
  TilewrightError,
  union,
  warps,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { checkPlacement } from "../../../test/support/placement-checker.ts";
import { targets } from "../../targets/target.ts";
import { placeKernel } from "./place.ts";
import type { AllocatedPlacement } from "./place.ts";

const inputs = { x: tensor(f32, [64, 64]), halves: tensor(bf16, [64, 64]) };
const outputs = { out: tensor(f32, [64, 64]) };
const grid = { i: 1 };

function place({ kernel: traced }: KernelDefinition): AllocatedPlacement {
  const placement = placeKernel(traced, targets.sm_90a);
  checkPlacement(placement);
  return placement;
}

function offsets({ memory }: AllocatedPlacement): Readonly<Record<string, number>> {
  return Object.fromEntries(memory.buffers.map(({ name, offset }) => [name, offset]));
}

describe("buffers that are not in use together share bytes", () => {
  test("one after the other, touched by loads and stores alone", () => {
    const scratch = { first: smem(f32, [64, 64]), second: smem(f32, [64, 64]) };
    const placement = place(
      kernel({ name: "k", grid, inputs, outputs, scratch }, ({ x, out, first, second }) => {
        first.store(x.load());
        const turned = first.transpose().load();
        second.store(turned);
        out.store(second.transpose().load());
      }),
    );
    expect(placement.memory.bytes).toBe(64 * 64 * 4);
    expect(offsets(placement)).toEqual({ first: 0, second: 0 });
  });

  test("not where both are used in one loop", () => {
    const scratch = { first: smem(f32, [64, 64]), second: smem(f32, [64, 64]) };
    const placement = place(
      kernel({ name: "k", grid, inputs, outputs, scratch }, ({ x, out, first, second }) => {
        loop(4, () => {
          first.store(x.load());
          second.store(first.transpose().load());
          out.store(second.load());
        });
      }),
    );
    expect(placement.memory.bytes).toBe(2 * 64 * 64 * 4);
  });

  test("not where a copy may still be on its way", () => {
    const scratch = { first: smem(f32, [64, 64]), second: smem(f32, [64, 64]), landed: barrier() };
    const placement = place(
      kernel({ name: "k", grid, inputs, outputs, scratch }, ({ x, out, first, second, landed }) => {
        copyAsync(x, first, { barrier: landed });
        landed.wait();
        second.store(first.load());
        out.store(second.transpose().load());
      }),
    );
    expect(placement.memory.bytes).toBe(2 * 64 * 64 * 4 + 8);
  });

  test("scopes end lives for everybody", () => {
    const buffer = { buffer: smem(f32, [64, 64]), landed: barrier() };
    const placement = place(
      kernel({ name: "k", grid, inputs, outputs }, ({ x, out }) => {
        for (let round = 0; round < 2; round += 1)
          scoped(buffer, ({ buffer: mine, landed }) => {
            copyAsync(x, mine, { barrier: landed });
            landed.wait();
            out.store(mine.load());
          });
      }),
    );
    expect(placement.memory.bytes).toBe(64 * 64 * 4 + 8);
  });

  test("program threads beside each other have their own", () => {
    const mine = { mine: smem(f32, [64, 64]) };
    const threads = ["one", "two"] as const;
    const placement = place(
      kernel({ name: "k", grid, inputs, outputs, threads }, ({ x, out, one, two }) => {
        const work = (): void => {
          scoped(mine, ({ mine: buffer }) => {
            buffer.store(x.load());
            out.store(buffer.transpose().load());
          });
        };
        one(work);
        two(work);
      }),
    );
    expect(placement.memory.bytes).toBe(2 * 64 * 64 * 4);
  });
});

test("a buffer begins at a multiple of its alignment behind one of odd size", () => {
  const scratch = { odd: smem(f32, [33]), next: smem(f32, [32]) };
  const placement = place(
    kernel({ name: "k", grid, inputs, outputs, scratch }, ({ x, out, odd, next }) => {
      loop(4, () => {
        odd.store(x.at(0, slice(0, 33)).load());
        next.store(odd.at(slice(0, 32)).load());
        out.at(0, slice(0, 32)).store(next.load());
      });
    }),
  );
  expect(offsets(placement)).toEqual({ odd: 0, next: 256 });
});

test("a union is aligned as its members need", () => {
  // The larger buffer comes first, and ends 128 bytes behind a multiple of 1024.
  const scratch = {
    large: smem(f32, [2080]),
    both: union({ a: smem(bf16, [64, 64]) }, { b: smem(f32, [16, 64]) }),
  };
  const placement = place(
    kernel({ name: "k", grid, inputs, outputs, scratch }, ({ halves, out, large, both }) => {
      large.store(1);
      both.a.store(halves.load());
      out.store(both.a.transpose().load().cast(f32).add(large.at(0).loadScalar()));
    }),
  );
  expect(offsets(placement)).toEqual({ large: 0, both: 9216 });
});

test("scratch of a conversion counts while its op runs", () => {
  const strided = "flat(L0 L1 L2 L3 L4 W0 W1)";
  const rows = "(L0 L1 L2 L3 L4 W0 |)";
  const placement = place(
    kernel({ name: "k", grid, inputs, outputs }, ({ x, out }) => {
      const tile = x.load().layoutCast(strided);
      out.store(tile.exp().layoutCast(rows));
    }),
  );
  const scratch = placement.memory.buffers.filter(({ op }) => op.kind === "alloc_scratch");
  expect(scratch.map(({ name }) => name)).toContain("scratch of exp");
  expect(placement.memory.bytes).toBeGreaterThan(0);
});

describe("scratch of ops that combine across warps", () => {
  const rows = "(L0 L1 L2 L3 L4 W0 |)";

  /** What scratch there is: bytes of each part, parts, and bytes in all. */
  function scratchOf({ memory }: AllocatedPlacement): readonly object[] {
    return memory.buffers.flatMap(({ op, offset, bytes }) =>
      op.kind === "alloc_scratch"
        ? [{ part: op.attributes.bytes, agents: op.attributes.agents, offset, bytes }]
        : [],
    );
  }

  const sums = { sums: tensor(f32, [64]) };

  test("a word of every lane for each value that is left", () => {
    // 64 columns in every lane; lanes and the lower bit of warps share out the rows.
    const placement = place(
      kernel({ name: "k", grid, inputs, outputs: sums }, ({ x, sums: out }) => {
        out.store(x.load().layoutCast(rows).sum({ axis: 0 }));
      }),
    );
    expect(scratchOf(placement)).toEqual([{ part: 16384, agents: 1, offset: 0, bytes: 16384 }]);
  });

  test("none where warps have rows of their own", () => {
    const placement = place(
      kernel({ name: "k", grid, inputs, outputs: sums }, ({ x, sums: out }) => {
        out.store(x.load().layoutCast(rows).sum({ axis: 1 }));
      }),
    );
    expect(offsets(placement)).not.toHaveProperty("scratch of sum");
  });

  test("a part for each program thread that runs the op", () => {
    const threads = ["one", "two", "three"] as const;
    const placement = place(
      kernel({ name: "k", grid, inputs, outputs: sums, threads }, ({ x, sums: out }) => {
        out.store(x.load().layoutCast(rows).sum({ axis: 0 }));
      }),
    );
    expect(scratchOf(placement)).toEqual([{ part: 16384, agents: 3, offset: 0, bytes: 3 * 16384 }]);
  });

  test("a part for each warp that runs on its own", () => {
    const columns = "(L0 L1 L2 L3 L4)";
    const strided = "(L0 L1 L2 L3 L4 | R0 R1)";
    const outs = { out: tensor(f32, [4, 32, 32]) };
    const placement = place(
      kernel({ name: "k", grid, inputs, outputs: outs }, ({ x, out }) => {
        warps((warp) => {
          const tile = x.at(slice(0, 32), slice(0, 32)).load().layoutCast(columns);
          out.at(warp).store(tile.exp().layoutCast(strided));
        });
      }),
    );
    const [scratch] = scratchOf(placement);
    expect(scratch).toMatchObject({ agents: 4 });
    expect(placement.memory.bytes).toBe(4 * (scratch as { readonly part: number }).part);
  });
});

describe("too much", () => {
  function report(definition: KernelDefinition): TilewrightError {
    try {
      placeKernel(definition.kernel, targets.sm_90a);
    } catch (error) {
      if (error instanceof TilewrightError) return error;
      throw error;
    }
    throw new Error("the kernel was placed");
  }

  test("names the bytes of each buffer, the limit, and the stages that fit", () => {
    const stages = 12;
    const scratch = {
      tileA: smem(bf16, [stages, 128, 64]),
      tileB: smem(bf16, [stages, 64, 128]),
      rest: smem(f32, [64, 64]),
    };
    const spec = { name: "deep", grid, inputs, outputs, scratch };
    const found = report(
      kernel(spec, ({ x, tileA, tileB, rest, out, i }) => {
        rest.store(x.load());
        tileA.at(i).store(1);
        tileB.at(i).store(1);
        out.store(rest.load());
        out.store(tileA.at(i).at(slice(0, 64)).load().cast(f32));
        rest.store(tileB.at(i).at(slice(0, 64), slice(0, 64)).load().cast(f32));
      }),
    );
    expect(found.code).toBe("TW6103");
    expect(found.expected).toBe("at most 232448 bytes on sm_90a");
    expect(found.notes.map(({ message }) => message)).toEqual([
      "tileA: 196608 bytes",
      "tileB: 196608 bytes",
      "rest: 16384 bytes",
    ]);
    // 6 stages take 196608 bytes; with the rest that is below the limit, 7 are above it.
    expect(found.remedy).toBe("use at most 6 of the 12 stages of tileA, tileB");
  });

  test("one buffer alone", () => {
    const scratch = { huge: smem(f32, [256, 256]) };
    const found = report(
      kernel({ name: "k", grid, inputs, outputs, scratch }, ({ huge, out }) => {
        huge.store(1);
        out.store(huge.at(slice(0, 64), slice(0, 64)).load());
      }),
    );
    expect(found.remedy).toContain(`make huge smaller by ${256 * 256 * 4 - 232448} bytes`);
  });
});
