/** Pins and conversions of layouts. */
import { defaultTarget, f32, kernel, placeKernel, tensor } from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature } from "./feature.ts";

const [rows, columns] = [64, 64];
const arrays = {
  inputs: { x: tensor(f32, [rows, columns]) },
  outputs: { out: tensor(f32, [rows, columns]) },
};
const numbers = Array.from({ length: rows * columns }, (_, index) => (index % 251) - 100);

export const conversionFeatures: readonly Feature[] = [
  {
    name: "Explicit conversion of layouts, and layouts by name",
    written: [".convertLayout(", '.layoutCast("wgmma")'],
    page: "layouts.md#pin-and-convert",
    cases: () => [
      {
        name: "between two pins",
        kernel: () =>
          kernel({ name: "two_pins", ...arrays }, ({ x, out }) => {
            const pinned = x.load().layoutCast("wgmma").mul(2);
            out.store(pinned.convertLayout("wgmmaTransposed").add(pinned));
          }),
        inputs: { x: fromNumbers(f32, [rows, columns], numbers) },
        expected: { out: numbers.map((value) => value * 4) },
      },
    ],
    refused: [
      {
        code: "TW6101",
        by: () => {
          const { kernel: bad } = kernel({ name: "to_one_number", ...arrays }, ({ x, out }) => {
            out.store(x.load().convertLayout("splat"));
          });
          placeKernel(bad, defaultTarget);
        },
      },
    ],
  },
];
