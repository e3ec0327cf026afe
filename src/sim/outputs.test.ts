import { describe, expect, test } from "vitest";
import { codesOf, findingsOf, runKernel } from "../../test/simulation.ts";
import { f32, i32, i4 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { tensor, assert, dim, full, iota, kernel, slice } from "../lang/index.ts";
import { simulate } from "./index.ts";

const { expectFinding, lineOf } = findingsOf(import.meta.url);

const n = dim("n");

/** Writes four elements a block. */
const cover = (blocks: number) =>
  kernel(
    { name: "cover", grid: { i: blocks }, outputs: { out: tensor(f32, [n]) } },
    ({ i, out }) => {
      out.at(slice(i.mul(4), 4)).store(full(f32, [4], 1));
    },
  );

describe("outputs left unwritten", () => {
  test("a grid that covers them in part", async () => {
    await expectFinding(
      cover(1),
      {},
      {
        code: "TW3020",
        text: /cover leaves elements of out unwritten[^]*4 of 8 never written: \[4\], \[5\], \[6\] … \[7\][^]*inouts/,
      },
      { dimensions: { n: 8 } },
    );
  });

  test("a grid that covers them, and one that overhangs", async () => {
    expect(codesOf(await runKernel(cover(2), {}, { dimensions: { n: 8 } }))).toEqual([]);
    expect(codesOf(await runKernel(cover(2), {}, { dimensions: { n: 7 } }))).toEqual([]);
    expect(codesOf(await runKernel(cover(1), {}, { dimensions: { n: 0 } }))).toEqual([]);
  });

  test("nothing is written at all, of several outputs", async () => {
    const outputs = { left: tensor(f32, [2]), right: tensor(i32, [2, 2]) };
    const k = kernel({ name: "idle", outputs }, () => {}); // idle kernel
    const { findings } = await runKernel(k);
    expect(findings.map(({ found }) => found)).toEqual([
      "2 of 2 never written: [0], [1]",
      "4 of 4 never written: [0, 0], [0, 1], [1, 0] … [1, 1]",
    ]);
    expect(findings[0]?.position?.line).toBe(lineOf("idle kernel"));
  });

  test("what lies between the rows of a strided output is no part of it", async () => {
    const spec = { name: "gaps", outputs: { out: tensor(i32, [2, 2], { strides: [3, 1] }) } };
    const rows = (count: number) =>
      kernel(spec, ({ out }) => {
        for (let row = 0; row < count; row++) out.at(row).store(full(i32, [2], row));
      });
    const storage = { dtype: i32, data: new Int32Array(5), initialised: false };
    const simulated = async (count: number) => {
      const args = {
        arrays: new Map([["out", storage]]),
        scalars: new Map(),
        dimensions: new Map(),
      };
      return (await simulate(rows(count).kernel, args)).findings.map(({ found }) => found);
    };
    expect(await simulated(2)).toEqual([]);
    expect(await simulated(1)).toEqual(["2 of 4 never written: [1, 0], [1, 1]"]);
  });

  test("of packed elements, each", async () => {
    const k = kernel({ name: "packed", outputs: { out: tensor(i4, [8]) } }, ({ out }) => {
      out.at(slice(0, 3)).store(full(i4, [3], 1));
    });
    const { findings } = await runKernel(k);
    expect(findings.map(({ found }) => found)).toEqual([
      "5 of 8 never written: [3], [4], [5] … [7]",
    ]);
  });

  test("an array that is updated in part, and runs without checks", async () => {
    const update = kernel({ name: "update", inouts: { out: tensor(f32, [8]) } }, ({ out }) => {
      out.at(0).store(1);
    });
    const out = fromNumbers(f32, [8], new Float64Array(8));
    expect(codesOf(await runKernel(update, { out }))).toEqual([]);
    const unchecked = { dimensions: { n: 8 }, checks: false };
    expect(codesOf(await runKernel(cover(1), {}, unchecked))).toEqual([]);
  });

  test("a run that stopped says nothing of what was still to come", async () => {
    const k = kernel({ name: "stopped", outputs: { out: tensor(f32, [8]) } }, ({ out }) => {
      assert(iota(i32, [4], { axis: 0 }).lt(3), "small");
      out.store(full(f32, [8], 1));
    });
    expect(codesOf(await runKernel(k))).toEqual(["TW3012"]);
  });
});
