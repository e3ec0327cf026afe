/** Names of further inputs and outputs that kernels and plans have for things of their own, too. */
import { expect, onTestFinished, test } from "vitest";
import { bf16, f32, i8 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { walkOps } from "../../ir/traverse.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import type { MatmulConfiguration } from "./configuration.ts";
import { parameterName } from "./user-array-names.ts";
import { matmul } from "./matmul.ts";
import { quantized } from "./weights/quantized.ts";

const [m, n, k, batch] = [dim("m"), dim("n"), dim("k"), dim("batch")];
const persistent: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 64, stages: 3 },
  ...{ schedule: "stream-k", swapAB: false, cluster: 2 },
};
const plain: MatmulConfiguration = { kernel: "plain", rows: 64, columns: 32, depth: 16, splitK: 2 };

/** The product with numbers added to it that an input of this name has, which are given as an output of another one, too. */
function added(input: string, output: string, configuration: MatmulConfiguration) {
  const epilogue = (tiles: { readonly [name: string]: Tile<"f32"> }): object => {
    const { sums, [input]: addend } = tiles;
    if (sums === undefined || addend === undefined) throw new Error(`no ${input}`);
    const out = sums.add(addend);
    return { out, [output]: out };
  };
  return matmul({
    ...{ a: tensor(bf16, [batch, m, k]), b: bf16, out: f32, configuration },
    ...{ inputs: { [input]: tensor(f32, [batch, m, n]) } },
    ...{ outputs: { [output]: tensor(f32, [batch, m, n]) }, epilogue: epilogue as never },
  });
}

test("every name can be one's own, whatever kernels call their threads, axes and memory", () => {
  const sizes = { batch: 1, m: 16, n: 24, k: 48 };
  const names = ["index", "rank", "copy", "first", "full", "result", "handed", "leftTiles"];
  for (const name of names)
    expect(() => added(name, `${name}_`, persistent).kernels(sizes)).not.toThrow();
  for (const name of ["layer", "i", "parts", "constructor"])
    expect(() => added(name, `${name}_`, plain).kernels(sizes)).not.toThrow();
  expect(["bias", "i", "i_", "scaleTiles"].map(parameterName)).toEqual([
    ...["bias", "i_", "i__", "scaleTiles_"],
  ]);
});

test("all names that kernels have beside a user's are known", () => {
  const kernels = [
    persistent,
    { ...persistent, schedule: "tiles", cluster: 1 } as const,
    plain,
    { ...plain, splitK: 1 },
  ].flatMap((each) => added("more", "further", each).kernels({ batch: 1, m: 256, n: 256, k: 512 }));
  const seen = kernels.filter(({ kernel }) =>
    kernel.parameters.some(({ name }) => name === "more" || name === "further"),
  );
  expect(seen).toHaveLength(4);
  for (const { kernel } of seen) {
    const { parameters, grid, threads, body } = kernel;
    const names = new Set([...parameters, ...grid].map(({ name }) => name));
    // A kernel without threads of its own has one, whose name is nobody's.
    if (threads.length > 1) for (const thread of threads) names.add(thread);
    walkOps(body, ({ attributes }) => {
      if ("name" in attributes && attributes.name !== undefined) names.add(attributes.name);
    });
    names.delete("more");
    names.delete("further");
    expect([...names].filter((name) => parameterName(name) === name)).toEqual([]);
  }
});

test("an input is not taken for memory of the plan, nor the other way round", async () => {
  const device = await open("simulator", { onNotes: () => undefined });
  onTestFinished(() => {
    device.dispose();
  });
  const { out, before } = (await device.run(
    added("parts", "before", plain) as never,
    {
      ...{ a: fromNumbers(bf16, [1, 1, 2], [1, 2]), b: fromNumbers(bf16, [2, 1], [10, 100]) },
      parts: fromNumbers(f32, [1, 1, 1], [5]),
    } as never,
  )) as never as { readonly [N in "out" | "before"]: Parameters<typeof toNumbers>[0] };
  expect([...toNumbers(out), ...toNumbers(before)]).toEqual([215, 215]);
});

test("weights in few bits of a batch of 1 are those of all matrices", async () => {
  const b = quantized(i8, [1, k, n], { groupSize: 128, scale: bf16, zeroPoint: i8 });
  const device = await open("simulator", { onNotes: () => undefined });
  onTestFinished(() => {
    device.dispose();
  });
  const { out } = await device.run(matmul({ a: tensor(bf16, [batch, m, k]), b, out: f32 }), {
    a: fromNumbers(
      bf16,
      [2, 1, 128],
      Float32Array.from({ length: 256 }, (_, i) => (i < 128 ? 1 : 2)),
    ),
    b: fromNumbers(i8, [1, 8, 128], new Float32Array(1024).fill(3)),
    bScale: fromNumbers(bf16, [1, 1, 8], [1, 2, 3, 4, 5, 6, 7, 8]),
    bZero: fromNumbers(i8, [1, 1, 8], new Float32Array(8).fill(1)),
  });
  const row = [1, 2, 3, 4, 5, 6, 7, 8].map((scale) => 256 * scale);
  expect([...toNumbers(out)]).toEqual([...row, ...row.map((sum) => 2 * sum)]);
});
