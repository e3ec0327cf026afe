/** Kernels around tile ops, from the language to the emulator, against the simulator. */
import { describe, expect, test } from "vitest";
import {
  tensor,
  bf16,
  f16,
  f32,
  i32,
  i8,
  kernel,
  loop,
  slice,
  threadIndex,
  warps,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { runKernel } from "../../../../test/simulation.ts";
import { emulateKernel } from "../../../../test/support/emulated-kernel.ts";
import { hostArray, toNumbers } from "../../../formats/hostarray.ts";
import type { HostArray } from "../../../formats/hostarray.ts";
import { allocateElements } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { Random } from "../../../support/random.ts";

/** Whole numbers, so that sums do not depend on their order. */
function wholeNumbers(dtype: DType, shape: readonly number[], seed: number): HostArray {
  const random = new Random(seed);
  const count = shape.reduce((product, extent) => product * extent, 1);
  const lanes = allocateElements(dtype, count);
  const codes: { readonly [name: string]: (value: number) => number } = {
    bf16: (value) => new DataView(Float32Array.of(value).buffer).getUint32(0, true) >>> 16,
    f16: halfCode,
  };
  const code = codes[dtype.name] ?? ((value: number) => value);
  for (let index = 0; index < count; index += 1) lanes[index] = code(random.below(16));
  return hostArray(dtype, shape, lanes as never);
}

/** The f16 of a whole number up to 2048. */
function halfCode(value: number): number {
  if (value === 0) return 0;
  const exponent = Math.floor(Math.log2(value));
  return ((15 + exponent) << 10) | ((value * 2 ** (10 - exponent)) & 1023);
}

async function agree(definition: KernelDefinition, seed = 1): Promise<void> {
  const inputs: { [name: string]: HostArray } = {};
  for (const { name, role, value } of definition.kernel.parameters)
    if (role === "input" && value.type.kind === "ref")
      inputs[name] = wholeNumbers(value.type.dtype, value.type.shape.map(Number), seed);
  const simulated = await runKernel(definition, inputs);
  const { results, findings } = emulateKernel(definition, inputs);
  expect(findings.map(({ message }) => message)).toEqual([]);
  for (const [name, result] of Object.entries(simulated.results))
    expect(numbersOf(results[name]), name).toEqual(numbersOf(result));
}

function numbersOf(result: HostArray | undefined): readonly number[] {
  return result === undefined ? [] : [...toNumbers(result)];
}

const grid = { i: 1 };

describe("tile ops in kernels", () => {
  test.each([f32, bf16, f16, i32, i8])("sums of rows and columns of $name", async (dtype) => {
    const inputs = { x: tensor(dtype, [64, 96]) };
    const outputs = {
      rows: tensor(dtype, [64]),
      columns: tensor(dtype, [96]),
      total: tensor(dtype, [1]),
    };
    await agree(
      kernel({ name: "sums", grid, inputs, outputs }, ({ x, rows, columns, total }) => {
        const tile = x.load();
        rows.store(tile.sum({ axis: 1 }));
        columns.store(tile.sum({ axis: 0 }));
        total.store(tile.max({ axis: 0 }).max({ axis: 0, keepDims: true }));
      }),
    );
  });

  /** Two at a time where a lane has several of a row; random bits, among them infinities, subnormal numbers, zeros of both signs. */
  test.each([
    { dtype: bf16, shape: [32, 64] },
    { dtype: f16, shape: [32, 64] },
    { dtype: bf16, shape: [5, 300] },
    { dtype: f16, shape: [300, 6] },
  ] as const)("extremes of $dtype.name, $shape", async ({ dtype, shape }) => {
    const [rows, columns] = shape;
    const seed = 11;
    const random = new Random(seed);
    const zeros = [0, 0x8000];
    // The first rows have no element that is no number, so that their extremes are others'.
    const lanes = Uint16Array.from({ length: rows * columns }, (_, index) => {
      const code = random.below(0x10000);
      const isNumber = (code & 0x7fff) <= (dtype === bf16 ? 0x7f80 : 0x7c00);
      if (index < 2 * columns) return zeros[random.below(2)] ?? 0;
      return isNumber || index > (rows / 2) * columns ? code : index & 0x3fff;
    });
    const x = hostArray(dtype, shape, lanes as never);
    const definition = kernel(
      {
        ...{ name: "extremes", grid, inputs: { x: tensor(dtype, shape) } },
        outputs: {
          ...{ high: tensor(dtype, [rows]), low: tensor(dtype, [rows]) },
          ...{ highs: tensor(dtype, [columns]), lowest: tensor(dtype, [1]) },
        },
      },
      ({ x: ref, high, low, highs, lowest }) => {
        const tile = ref.load();
        high.store(tile.max({ axis: 1 }));
        low.store(tile.min({ axis: 1 }));
        highs.store(tile.max({ axis: 0 }));
        lowest.store(
          ref
            .at(slice(0, 2), slice(0, columns))
            .load()
            .min({ axis: 1 })
            .min({ axis: 0, keepDims: true }),
        );
      },
    );
    const simulated = await runKernel(definition, { x });
    const { results, findings } = emulateKernel(definition, { x });
    expect(findings.map(({ message }) => message)).toEqual([]);
    for (const [name, result] of Object.entries(simulated.results))
      expect(numbersOf(results[name]), `${name}, seed ${seed}`).toEqual(numbersOf(result));
    const numbers = numbersOf(x);
    const expected = Array.from({ length: rows }, (_, row) =>
      Math.max(...numbers.slice(row * columns, (row + 1) * columns)),
    );
    expect(numbersOf(results["high"])).toEqual(expected);
  });

  test("a transposed tile", async () => {
    await agree(
      kernel(
        {
          name: "turn",
          grid,
          inputs: { x: tensor(f16, [64, 32]) },
          outputs: { y: tensor(f16, [32, 64]) },
        },
        ({ x, y }) => {
          y.store(x.load().transpose());
        },
      ),
    );
  });

  test("running sums, sorts and searches", async () => {
    await agree(
      kernel(
        {
          name: "along",
          grid,
          inputs: { x: tensor(f32, [4, 256]), y: tensor(i32, [4, 256]) },
          outputs: {
            sums: tensor(f32, [4, 256]),
            sorted: tensor(f32, [4, 256]),
            moved: tensor(i32, [4, 256]),
            found: tensor(i32, [4]),
          },
        },
        ({ x, y, sums, sorted, moved, found }) => {
          const tile = x.load();
          sums.store(tile.cumsum({ axis: 1 }));
          const [keys, payload] = tile.sortWith([y.load()], { axis: 1, descending: true });
          sorted.store(keys);
          moved.store(payload);
          found.store(tile.argmax({ axis: 1 }));
        },
      ),
    );
  });

  test("sums in a loop", async () => {
    await agree(
      kernel(
        {
          name: "loops",
          grid,
          inputs: { x: tensor(f32, [8, 64, 64]) },
          outputs: { y: tensor(f32, [8, 64]) },
        },
        ({ x, y }) => {
          loop(8, (step) => {
            y.at(step).store(x.at(step).load().sum({ axis: 0 }));
          });
        },
      ),
    );
  });

  test("two program threads beside each other", async () => {
    const threads = ["one", "two"] as const;
    await agree(
      kernel(
        {
          name: "beside",
          grid,
          threads,
          inputs: { x: tensor(f32, [2, 64, 64]) },
          outputs: { y: tensor(f32, [2, 64]), z: tensor(f32, [2, 64, 64]) },
        },
        ({ x, y, z, one, two }) => {
          const work = (which: number) => () => {
            const tile = x.at(which).load();
            y.at(which).store(tile.sum({ axis: 0 }));
            z.at(which).store(tile.transpose().cumsum({ axis: 0 }));
          };
          one(work(0));
          two(work(1));
        },
      ),
    );
  });

  test("the same code in three program threads", async () => {
    const threads = ["one", "two", "three"] as const;
    await agree(
      kernel(
        {
          name: "alike",
          grid,
          threads,
          inputs: { x: tensor(f32, [3, 64, 64]) },
          outputs: { y: tensor(f32, [3, 64]), z: tensor(f32, [3, 64, 64]) },
        },
        ({ x, y, z }) => {
          const tile = x.at(threadIndex()).load();
          y.at(threadIndex()).store(tile.sum({ axis: 0 }));
          z.at(threadIndex()).store(tile.transpose().cumsum({ axis: 0 }));
        },
      ),
    );
  });

  test("each warp on its own", async () => {
    await agree(
      kernel(
        {
          name: "alone",
          grid,
          inputs: { x: tensor(f32, [4, 16, 32]) },
          outputs: { y: tensor(f32, [4, 32]), z: tensor(f32, [4, 32, 16]) },
        },
        ({ x, y, z }) => {
          warps((warp) => {
            const tile = x.at(warp).load();
            y.at(warp).store(tile.sum({ axis: 0 }));
            z.at(warp).store(tile.transpose());
          });
        },
      ),
    );
  });

  test.each([2, 4])("each of %i warps of two program threads on its own", async (count) => {
    await agree(
      kernel(
        {
          name: "all_alone",
          grid,
          warps: count,
          threads: ["one", "two"],
          inputs: { x: tensor(f32, [2, count, 32, 64]) },
          outputs: { y: tensor(f32, [2, count, 64, 32]) },
        },
        ({ x, y }) => {
          warps((warp) => {
            // Lanes hold columns first and rows afterwards, which goes through shared memory.
            const tile = x.at(threadIndex(), warp).load().layoutCast("(| L0 L1 L2 L3 L4)");
            y.at(threadIndex(), warp).store(tile.transpose().layoutCast("(| L0 L1 L2 L3 L4)"));
          });
        },
      ),
    );
  });

  test("windows of tiles", async () => {
    await agree(
      kernel(
        {
          name: "windows",
          grid,
          inputs: { x: tensor(i8, [64, 64]) },
          outputs: { y: tensor(i8, [32, 64]), z: tensor(i8, [64]) },
        },
        ({ x, y, z }) => {
          const tile = x.load();
          y.store(tile.slice([32, 0], [32, 64]));
          z.store(x.at(slice(0, 1)).load().reshape([64]));
        },
      ),
    );
  });
});
