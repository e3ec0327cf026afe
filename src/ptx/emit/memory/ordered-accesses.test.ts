/** Loads and stores with a memory order: their instructions, and every format and form on the emulator. */
import { describe, expect, test } from "vitest";
import { emitMoved, expectSame } from "../../../../test/support/memory-kernels.ts";
import {
  bf16,
  f8e4m3fn,
  f16,
  f32,
  f64,
  i16,
  i32,
  i64,
  i8,
  u16,
  u32,
  u64,
  u8,
} from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { all, clusterSync, iota, kernel, slice, smem, tensor, warps } from "../../../lang/index.ts";
import type { MemoryScope } from "../../../lang/index.ts";
import { parseLayout } from "../../../layout/algebra/parse-layout.ts";
import { printPtx } from "../../printer.ts";

const relaxed = { memoryOrder: "relaxed" } as const;

/** A window that overhangs goes through memory with an order, to others, and back. */
function moved(dtype: DType, space: "global" | "shared") {
  return kernel(
    {
      name: "moved",
      inputs: { x: tensor(dtype, [37]) },
      outputs: { out: tensor(dtype, [37]) },
      scratch: { buffer: smem(dtype, [40]) },
    },
    ({ x, out, buffer }) => {
      const window = slice(0, 40);
      const tile = x.at(window).load({ memoryOrder: "acquire" });
      if (space === "shared") buffer.store(tile, { memoryOrder: "release" });
      const again = space === "shared" ? buffer.load({ memoryOrder: "acquire" }) : tile;
      out.at(window).store(again, relaxed);
    },
  );
}

const layouts = ["(L0 L1 L2 L3 L4)", "(R0 L2 L3 L4 W0)", "(L0 L1 L2 L3 L4 W0)", "()"];
const formats = [i8, u8, f8e4m3fn, i16, u16, f16, bf16, i32, u32, f32, i64, u64, f64];

describe("loads and stores with an order", () => {
  test.each(formats.map((dtype, at) => [dtype.name, dtype, at] as const))(
    "%s",
    async (_n, dtype, at) => {
      const space = at % 2 === 0 ? "global" : "shared";
      const layout = parseLayout(layouts[at % layouts.length] ?? "()");
      await expectSame(
        { kernel: moved(dtype, space).kernel, layout: () => layout },
        at,
        dtype.name,
      );
    },
  );

  test("picked elements, masks, and what stands elsewhere", async () => {
    const { kernel: body } = kernel(
      {
        name: "picked",
        inputs: { x: tensor(i32, [50, 8]), fill: tensor(i32, [1]) },
        outputs: { out: tensor(i32, [16, 8]), some: tensor(i32, [40]), one: tensor(i32, [1]) },
      },
      ({ x, fill, out, some, one }) => {
        const ids = iota(i32, [16], { axis: 0 }).mul(3);
        const where = ids.rem(2).eq(0).expand({ axis: 1 });
        out.store(x.at(ids).load({ ...relaxed, where, fill: fill.at(0).loadScalar() }));
        const column = x.at(slice(30, 40), 1).load({ ...relaxed, fill: -4 });
        some.at(iota(i32, [40], { axis: 0 }).neg().add(39)).store(column, relaxed);
        one.at(0).store(x.at(3, 3).loadScalar({ memoryOrder: "acquire" }), relaxed);
      },
    );
    await expectSame({ kernel: body }, 3, "picked");
  });

  test("in warps of their own", async () => {
    const { kernel: body } = kernel(
      {
        name: "alone",
        inputs: { x: tensor(i32, [4, 8]) },
        outputs: { out: tensor(i32, [4, 8]), first: tensor(i32, [4]) },
      },
      ({ x, out, first }) => {
        warps((warp) => {
          out.at(warp).store(x.at(warp).load({ memoryOrder: "acquire" }), relaxed);
          first.at(warp).store(x.at(warp, 0).loadScalar(relaxed), { memoryOrder: "release" });
        });
      },
    );
    await expectSame({ kernel: body }, 2, "alone");
  });

  test("of a peer", async () => {
    const { kernel: body } = kernel(
      {
        name: "peers",
        grid: { i: 2 },
        cluster: { i: 2 },
        inputs: { x: tensor(i32, [2, 16]) },
        outputs: { out: tensor(i32, [2, 16]) },
        scratch: { buffer: smem(i32, [16]) },
      },
      ({ i, x, out, buffer }) => {
        buffer.peer(i.xor(1)).store(x.at(i).load(), { memoryOrder: "release" });
        clusterSync();
        out.at(i, all).store(buffer.load({ memoryOrder: "acquire", scope: "cluster" }));
        clusterSync();
      },
    );
    await expectSame({ kernel: body }, 2, "peers");
  });
});

describe("instructions", () => {
  const textOf = (scope: MemoryScope) =>
    printPtx(
      emitMoved(
        kernel(
          {
            name: "spelled",
            grid: { i: 2 },
            cluster: { i: 2 },
            inouts: { flags: tensor(i32, [4]) },
          },
          ({ flags }) => {
            const found = flags.at(0).loadScalar({ memoryOrder: "acquire", scope });
            flags.at(1).store(found, { memoryOrder: "release", scope });
            flags.at(2).atomicAdd(found, { memoryOrder: "release", scope });
            flags.at(3).atomicAdd(found, { memoryOrder: "acq_rel", scope });
            flags.at(3).compareExchange(found, 1, { memoryOrder: "acquire", scope });
          },
        ),
      ).module,
    );

  test.each([
    ["block", "cta"],
    ["cluster", "cluster"],
    ["device", "gpu"],
    ["system", "sys"],
  ] as const)("of scope %s are of %s", (scope, spelled) => {
    const text = textOf(scope);
    // A reduction acquires nothing, so that an update that does is an atomic though nobody wants what was there.
    const roots = ["ld.acquire", "st.release", "red.release", "atom.acq_rel", "atom.acquire"];
    for (const root of roots) expect(text).toContain(`${root}.${spelled}.global`);
    const barriers = text.split("\n").filter((line) => line.includes("bar.sync"));
    expect(barriers.filter((line) => line.includes("before the release"))).toHaveLength(3);
    expect(barriers.filter((line) => line.includes("behind the acquire"))).toHaveLength(2);
  });

  test("are those of before where nothing is said", () => {
    const updates = (options: object) =>
      printPtx(
        emitMoved(
          kernel({ name: "spelled", inouts: { flags: tensor(f32, [64]) } }, ({ flags }) => {
            flags.atomicAdd(flags.load(), options);
          }),
        ).module,
      );
    expect(updates({ memoryOrder: "relaxed" })).toBe(updates({}));
    expect(updates({})).toContain("red.global.add.f32");
    expect(updates({ memoryOrder: "release" })).toContain("red.release.gpu.global.add.f32");
    expect(updates({ memoryOrder: "acquire" })).not.toContain("red.");
  });
});
