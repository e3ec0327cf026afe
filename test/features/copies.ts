/** Copies between global and shared memory. */
import {
  barrier,
  block,
  copyAsync,
  f32,
  i8,
  kernel,
  pipeline,
  slice,
  smem,
  tensor,
  warpSpecialized,
} from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature } from "./feature.ts";

const numbers = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, place) => (place % 113) - 50);

const long: Feature = {
  name: "Copies of any length and number of axes, by several of TMA",
  written: ["x.at(i, block(step, length))"],
  page: "pipelines.md#copies-of-any-size",
  cases: () => [
    {
      name: "multicast in a pipeline",
      kernel: () =>
        kernel(
          {
            name: "handed_around",
            grid: { rank: 2 },
            cluster: { rank: 2 },
            inputs: { x: tensor(i8, [1000, 16]) },
            outputs: { y: tensor(i8, [2, 1120, 16]) },
          },
          ({ rank, x, y }) => {
            pipeline(
              {
                grid: { step: 2 },
                inputs: { tile: { at: ({ step }) => x.at(block(step, 560)), multicast: "rank" } },
              },
              ({ step, tile }) => {
                y.at(rank, block(step, 560)).store(tile.load());
              },
            );
          },
        ),
      inputs: { x: fromNumbers(i8, [1000, 16], numbers(16000)) },
      expected: {
        y: [0, 1].flatMap(() => [...numbers(16000), ...Array.from({ length: 1920 }, () => 0)]),
      },
    },
    {
      name: "in and out by specialized threads",
      kernel: () =>
        kernel(
          {
            name: "doubled",
            threads: ["copy", "compute"],
            inputs: { x: tensor(f32, [4, 600]) },
            outputs: { y: tensor(f32, [4, 600]) },
          },
          ({ x, y }) => {
            warpSpecialized(
              {
                grid: { step: 4 },
                inputs: { row: ({ step }) => x.at(step) },
                outputs: { result: ({ step }) => y.at(step) },
              },
              ({ steps }) => {
                steps(({ row, result }) => {
                  result.store(row.load().mul(2));
                });
              },
            );
          },
        ),
      inputs: { x: fromNumbers(f32, [4, 600], numbers(2400)) },
      expected: { y: numbers(2400).map((value) => value * 2) },
    },
    {
      name: "of six axes",
      kernel: () =>
        kernel(
          {
            name: "six_axes",
            inputs: { x: tensor(f32, [2, 3, 2, 2, 3, 4]) },
            outputs: { y: tensor(f32, [2, 3, 2, 2, 3, 4]) },
            scratch: { buffer: smem(f32, [2, 3, 2, 2, 3, 4]), landed: barrier() },
          },
          ({ x, y, buffer, landed }) => {
            copyAsync(x, buffer, { barrier: landed });
            landed.wait();
            y.store(buffer.load());
          },
        ),
      inputs: { x: fromNumbers(f32, [2, 3, 2, 2, 3, 4], numbers(288)) },
      expected: { y: numbers(288) },
    },
  ],
  refused: [
    {
      code: "TW2064",
      by: () =>
        kernel(
          {
            name: "thin",
            inputs: { x: tensor(f32, [1000, 3]) },
            scratch: { buffer: smem(f32, [500, 3]), landed: barrier() },
          },
          ({ x, buffer, landed }) => {
            copyAsync(x.at(slice(0, 500)), buffer, { barrier: landed });
          },
        ),
    },
  ],
};

export const copyFeatures: readonly Feature[] = [long];
