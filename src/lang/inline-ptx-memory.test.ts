/** Inline PTX that touches memory: what simulator and emulator make of it, and what orders it. */
import { describe, expect, test } from "vitest";
import { codesOf, runKernel, schedules } from "../../test/simulation.ts";
import { emulateKernel } from "../../test/support/emulated-kernel.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { lower } from "../lower/stages.ts";
import { printPtx } from "../ptx/printer.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { targets } from "../targets/target.ts";
import { inlinePtx, kernel, smem, tensor } from "./index.ts";
import type { KernelDefinition, Ref, Tile } from "./index.ts";

const spread = "(R0 R1 L0 L1 L2 L3 L4 W0 W1)";
const place = `.reg .b32 t; .reg .b64 w; mov.u32 t, %tid.x; mul.wide.u32 w, t, 16;`;

/** 512 elements by one load of 16 bytes in each lane. */
function vectorLoad(x: Ref<"f32">): Tile<"f32"> {
  const [tile] = inlinePtx({
    operands: [],
    memory: { reads: [x] },
    results: [{ dtype: f32, shape: [512] }],
    layouts: { operands: [], results: [spread] },
    code: (_, [to], { reads: [from] }) =>
      `${place} add.s64 w, w, ${from}; ld.global.v4.f32 {${to.join(", ")}}, [w];`,
    meaning: () => [x.load()],
  });
  return tile;
}

function sharedStore(value: Tile<"f32">, buffer: Ref<"f32">): void {
  inlinePtx({
    operands: [value],
    memory: { writes: [buffer] },
    results: [],
    layouts: { operands: [spread], results: [] },
    code: ([from], _, { writes: [to] }) =>
      `.reg .b32 t; mov.u32 t, %tid.x; mad.lo.u32 t, t, 16, ${to}; st.shared.v4.f32 [t], {${from.join(", ")}};`,
    meaning: () => {
      buffer.store(value);
      return [];
    },
  });
}

const numbers = Array.from({ length: 1024 }, (_, index) => index - 77);

async function expectBoth(
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray },
  expected: { readonly [name: string]: readonly number[] },
): Promise<void> {
  for (const schedule of schedules) {
    const run = await runKernel(definition, inputs, schedule);
    expect(run.findings).toEqual([]);
    for (const [name, wanted] of Object.entries(expected))
      expect(run.numbers(name)).toEqual(wanted);
  }
  const emulated = emulateKernel(definition, inputs);
  expect(emulated.findings.map(({ message }) => message)).toEqual([]);
  for (const [name, wanted] of Object.entries(expected)) {
    const found = emulated.results[name];
    expect(found && [...toNumbers(found)], name).toEqual(wanted);
  }
}

describe("code that touches memory", () => {
  test("loads and stores, with barriers where others have written", async () => {
    const moved = kernel(
      {
        name: "moved",
        grid: { i: 2 },
        inputs: { x: tensor(f32, [2, 512]) },
        outputs: { out: tensor(f32, [2, 512]), same: tensor(f32, [2, 512]) },
        scratch: { buffer: smem(f32, [512], { layout: "shared()" }) },
      },
      ({ i, x: rows, out, same, buffer }) => {
        const tile = vectorLoad(rows.at(i));
        sharedStore(tile.mul(2), buffer);
        // By other lanes than those that the code stored with.
        out.at(i).store(buffer.load().layoutCast("(L0 L1 L2 L3 L4 W0 W1 R0 R1)"));
        sharedStore(tile, buffer);
        same.at(i).store(buffer.load());
      },
    );
    const inputs = { x: fromNumbers(f32, [2, 512], numbers) };
    await expectBoth(moved, inputs, { out: numbers.map((each) => 2 * each), same: numbers });
    const text = printPtx(lower(moved.kernel, targets.sm_90a).module);
    expect(text).toMatch(/bar\.sync.*other lanes may have written buffer/);
    expect(text).toMatch(/bar\.sync.*other lanes may still read buffer/);
  });

  test("updates, once for each lane", async () => {
    const counted = kernel(
      { name: "counted", grid: { i: 3 }, inouts: { count: tensor(i32, [4]) } },
      ({ i, count }) => {
        inlinePtx({
          operands: [i],
          memory: { writes: [count.at(2)] },
          results: [],
          layouts: { operands: [""], results: [] },
          code: ([[block]], _, { writes: [to] }) => `red.global.add.s32 [${to}], ${block};`,
          meaning: (block) => {
            count.at(2).atomicAdd(block.mul(128));
            return [];
          },
        });
      },
    );
    const inputs = { count: fromNumbers(i32, [4], [1, 1, 1, 1]) };
    await expectBoth(counted, inputs, { count: [1, 1, 385, 1] });
  });

  test("races as its meaning does", async () => {
    const racing = kernel(
      { name: "racing", grid: { i: 2 }, inouts: { all: tensor(f32, [512]) } },
      ({ all }) => {
        const tile = vectorLoad(all);
        all.store(tile.add(1));
      },
    );
    const inputs = { all: fromNumbers(f32, [512], numbers.slice(0, 512)) };
    for (const schedule of schedules) {
      const run = await runKernel(racing, inputs, schedule);
      expect([...new Set(codesOf(run))]).toEqual(["TW3001"]);
    }
    expect(emulateKernel(racing, inputs).findings.map(({ code }) => code)).toContain("TW8014");
  });

  test("is refused where it has an address of its own, no layouts, or windows that are none", () => {
    const codeOf = (make: () => KernelDefinition): string => {
      try {
        lower(make().kernel, targets.sm_90a);
      } catch (error) {
        if (error instanceof TilewrightError) return error.code;
        throw error;
      }
      return "accepted";
    };
    const written = (options: object) => () =>
      kernel({ name: "refused", inouts: { x: tensor(f32, [512]) } }, ({ x: own }) => {
        const given = {
          operands: [],
          results: [],
          memory: { writes: [own] },
          layouts: { operands: [], results: [] },
          code: () => "st.global.b32 [0], 1;",
          meaning: () => [],
          ...options,
        };
        Reflect.apply(inlinePtx, undefined, [given]);
      });
    expect(codeOf(written({}))).toBe("TW7003");
    expect(codeOf(written({ layouts: undefined }))).toBe("TW1008");
    expect(codeOf(written({ memory: { reads: [5] } }))).toBe("TW1008");
    expect(codeOf(written({ code: () => "bar.sync 0;" }))).toBe("TW7003");
  });
});
