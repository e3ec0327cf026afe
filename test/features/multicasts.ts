/** Multicasts of copies and pipelines, and what waits for outputs of pipelines. */
import {
  all,
  barrier,
  block,
  copyAsync,
  f32,
  i32,
  kernel,
  open,
  pipeline,
  smem,
  tensor,
  warpSpecialized,
} from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature, FeatureCase } from "./feature.ts";

const numbers = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, place) => (place % 113) - 50);

/** Blocks of a cluster of four add what all of them get, what a row of them gets and what is their own. */
const handingOut = (small: number) =>
  kernel(
    {
      name: "handing_out",
      grid: { i: 2, j: 2 },
      cluster: { i: 2, j: 2 },
      inputs: { x: tensor(i32, [4 * small, 4]), rows: tensor(i32, [2, 4 * small, 4]) },
      outputs: { y: tensor(i32, [2, 2, 4 * small, 4]) },
    },
    ({ i, j, x, rows: given, y }) => {
      pipeline(
        {
          grid: { step: 4 },
          inputs: {
            everywhere: { at: ({ step }) => x.at(block(step, small)), multicast: ["i", "j"] },
            row: { at: ({ step }) => given.at(i, block(step, small)), multicast: "j" },
          },
        },
        ({ step, everywhere, row }) => {
          const sum = everywhere.load().add(row.load()).add(j);
          y.at(i, j, block(step, small)).store(sum);
        },
      );
    },
  );

function handedOut(small: number): FeatureCase {
  const length = 16 * small;
  const x = numbers(length);
  const given = numbers(2 * length);
  return {
    name: `${small} × 4 of i32 to four blocks and to two`,
    kernel: () => handingOut(small),
    inputs: {
      x: fromNumbers(i32, [4 * small, 4], x),
      rows: fromNumbers(i32, [2, 4 * small, 4], given),
    },
    expected: {
      y: [0, 1].flatMap((i) =>
        [0, 1].flatMap((j) => x.map((value, at) => value + (given[i * length + at] ?? NaN) + j)),
      ),
    },
  };
}

/** A copy, or a pipeline, that is told something else than names of axes. */
const toldOf = (multicast: never, way: "copy" | "pipeline" | "warpSpecialized") =>
  kernel(
    {
      name: "told",
      grid: { i: 2 },
      cluster: { i: 2 },
      threads: way === "warpSpecialized" ? ["copying", "computing"] : ["all"],
      inputs: { x: tensor(f32, [64]) },
      scratch: { buffer: smem(f32, [64]), full: barrier() },
    },
    ({ x, buffer, full }) => {
      if (way === "copy") return copyAsync(x, buffer, { barrier: full, multicast });
      const options = { grid: { step: 1 }, inputs: { piece: { at: () => x.at(all), multicast } } };
      if (way === "pipeline") pipeline(options, () => undefined);
      else
        warpSpecialized(options, ({ steps: run }) => {
          run(() => undefined);
        });
      return undefined;
    },
  );

const multicasts: Feature = {
  name: "Multicasts along one axis of the cluster or several, also of small blocks",
  written: ['multicast: ["i", "j"]', 'multicast: "j"'],
  page: "pipelines.md#multicasts",
  cases: () => [handedOut(8), handedOut(32), handedOut(128)],
  refused: [
    ...(["copy", "pipeline", "warpSpecialized"] as const).flatMap((way) => [
      { code: "TW1008", by: () => toldOf(1 as never, way) },
      { code: "TW1008", by: () => toldOf(["i", "i"] as never, way) },
    ]),
    { code: "TW2069", by: () => toldOf("j" as never, "copy") },
    { code: "TW1107", by: () => toldOf("j" as never, "pipeline") },
    { code: "TW1107", by: () => toldOf("j" as never, "warpSpecialized") },
  ],
};

/** A pipeline whose outputs are loaded behind it. */
const lookingBack = (waitReadOnly: boolean, looks = !waitReadOnly) =>
  kernel(
    {
      name: "looking_back",
      inputs: { x: tensor(f32, [64]) },
      outputs: { y: tensor(f32, [64]), sum: tensor(f32, [1]) },
    },
    ({ x, y, sum }) => {
      pipeline(
        {
          grid: { step: 2 },
          inputs: { part: ({ step }) => x.at(block(step, 32)) },
          outputs: { result: ({ step }) => y.at(block(step, 32)) },
          waitReadOnly,
        },
        ({ part, result }) => {
          result.store(part.load().neg());
        },
      );
      sum.at(0).store((looks ? y : x).load().sum());
    },
  );

const readOnly: Feature = {
  name: "Outputs of pipelines that have only been read",
  written: ["waitReadOnly: true"],
  page: "pipelines.md#outputs-that-have-only-been-read",
  cases: () =>
    [true, false].map((waitReadOnly) => ({
      name: waitReadOnly ? "and are not looked at" : "or have landed",
      kernel: () => lookingBack(waitReadOnly),
      inputs: { x: fromNumbers(f32, [64], numbers(64)) },
      expected: {
        y: numbers(64).map((value) => -value),
        sum: [(waitReadOnly ? 1 : -1) * numbers(64).reduce((sum, value) => sum + value)],
      },
    })),
  refused: [
    {
      code: "TW1008",
      by: () => lookingBack("yes" as never),
    },
    {
      code: "TW3001",
      by: async () => {
        const device = await open("simulator");
        try {
          await device.run(lookingBack(true, true), { x: fromNumbers(f32, [64], numbers(64)) });
        } finally {
          device.dispose();
        }
      },
    },
  ],
};

export const multicastFeatures: readonly Feature[] = [multicasts, readOnly];
