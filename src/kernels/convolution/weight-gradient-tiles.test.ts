/** Tiles of the gradient of w: which are chosen, and that tiles with shared runs, or with a block each, give the same sums. */
import { expect, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { overProducts } from "../../../test/support/convolution-reference.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { wholeNumbers } from "../../../test/support/library-checks.ts";
import { operation } from "../../device/operation.ts";
import { bf16, f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { captureLocation } from "../../support/location.ts";
import { targets } from "../../targets/target.ts";
import { readForm } from "./choose.ts";
import { convolutionBackwardW } from "./convolution.ts";
import { tmaWeightsKernel, sumPartialsKernel } from "./tma-weight-gradient.ts";
import { tmaDimensions } from "./tma-implicit-gemm.ts";
import { geometryOf, problemOf } from "./problem.ts";
import type { TmaWeightsConfiguration } from "./weight-gradient-tiles.ts";

function spec(images: number, size: number, channels: number, outputs: number, stride = 1) {
  return {
    x: tensor(bf16, [images, size, size, channels]),
    w: tensor(bf16, [outputs, 3, 3, channels]),
    ...{ padding: 1, strides: stride },
  };
}

/** Gradients of weights of 64 by 128 channels, in float64, rounded once. */
function expectedSums(
  x: ArrayLike<number>,
  dOut: ArrayLike<number>,
  batch: number,
  size: number,
  stride: number,
): readonly number[] {
  const sums = Array<number>(128 * 9 * 64).fill(0);
  const sizes = {
    ...{ batch, groups: 1, channels: 64, outputs: 128, input: [size, size], taps: [3, 3] },
    ...{ strides: [stride, stride], dilation: [1, 1], before: [1, 1], after: [1, 1] },
  };
  overProducts(sizes, true, (atX, atW, atOut) => {
    sums[atW] = (sums[atW] ?? NaN) + (x[atX] ?? NaN) * (dOut[atOut] ?? NaN);
  });
  return [...toNumbers(fromNumbers(bf16, [sums.length], sums))];
}

/** Nine runs of 64 columns, for so many processors that tiles take a quarter or a half of the last one. */
const shared = [
  { name: "quarters", processors: 4, stride: 1, width: { columns: 128, shared: 16 } },
  { name: "halves", processors: 2, stride: 1, width: { columns: 256, shared: 32 } },
  { name: "quarters, two by two", processors: 4, stride: 2, width: { columns: 128, shared: 16 } },
] as const;

test.each(
  (["simulator", "emulator"] as const).flatMap((kind) =>
    (kind === "emulator" ? shared.slice(0, 1) : shared).map((each) => ({ kind, ...each })),
  ),
)(
  "on the $kind, tiles of single blocks: $name",
  { timeout: 300_000 },
  async ({ kind, processors, stride, width }) => {
    const target = { ...targets.sm_90a, processors };
    const [batch, size, side] = [2, 4, 4 / stride];
    const op = convolutionBackwardW(spec(batch, size, 64, 128, stride));
    expect(op.plan({}, target).configuration).toMatchObject({ ...width, isWhole: true });
    expect(op.plan({}, target).launches).toHaveLength(1);
    const x = wholeNumbers(bf16, [batch, size, size, 64], 1);
    const dOut = wholeNumbers(bf16, [batch, side, side, 128], 2);
    const device = await open(kind, { target });
    const { dw } = await device.run(op, { x: x.array, dOut: dOut.array });
    device.dispose();
    expect([...toNumbers(dw)]).toEqual(expectedSums(x.values, dOut.values, batch, size, stride));
  },
);

/** The operation with two tiles of two blocks each, as large problems have them. */
function inParts(given: ReturnType<typeof spec>, steps: number) {
  const problem = problemOf("convolutionBackwardW", given as never, captureLocation());
  const geometry = geometryOf(problem, {});
  const form = readForm(problem, geometry, "forward");
  const configuration: TmaWeightsConfiguration = {
    ...({ kernel: "tma", box: [4, 4, 4], consumers: 2, columns: 256, shared: 32 } as const),
    ...{ isWhole: false, stages: 4 },
  };
  const [partials, share] = [2, steps / 2];
  const scalars = { share: { scalar: share }, period: { scalar: steps } };
  const dimensions = { ...tmaDimensions(geometry, form), workers: 4, partials };
  const product = tmaWeightsKernel(problem, geometry, form, configuration);
  const declared = new Set(product.kernel.dimensions.map(({ name }) => name));
  return operation({
    name: "in_parts",
    inputs: { x: given.x, dOut: problem.out },
    outputs: { dw: given.w },
    plan: () => ({
      configuration,
      source: "given",
      scratch: { sums: { dtype: f32, shape: [partials, 128, 576] } },
      launches: () => [
        {
          kernel: product,
          arguments: {
            ...{ x: { argument: "x" }, dOut: { argument: "dOut" }, sums: { argument: "sums" } },
            ...scalars,
          },
          dimensions: Object.fromEntries(
            Object.entries(dimensions).filter(([name]) => declared.has(name)),
          ),
        },
        {
          kernel: sumPartialsKernel(bf16, configuration, partials),
          arguments: {
            ...{ sums: { argument: "sums" }, out: { argument: "dw", shape: [128, 576] } },
            ...{ ...scalars, perGroup: { scalar: 128 } },
          },
          dimensions: {},
        },
      ],
    }),
  });
}

test(
  "tiles that share a run may be the work of two blocks each",
  { timeout: 300_000 },
  async () => {
    const [batch, size] = [14, 4];
    const x = wholeNumbers(bf16, [batch, size, size, 64], 3);
    const dOut = wholeNumbers(bf16, [batch, size, size, 128], 4);
    const device = await open("simulator");
    const given = { x: x.array, dOut: dOut.array };
    const { dw } = await device.run(inParts(spec(batch, size, 64, 128), 4), given as never);
    device.dispose();
    expect([...toNumbers(dw)]).toEqual(expectedSums(x.values, dOut.values, batch, size, 1));
  },
);

test.each([
  { name: "512 channels", images: 64, size: 14, channels: 512, stride: 1, found: [256, 32, false] },
  { name: "few steps", images: 64, size: 14, channels: 512, stride: 2, found: [128, 16, true] },
  { name: "256 channels", images: 64, size: 28, channels: 256, stride: 1, found: [256, 0, false] },
  { name: "less of them", images: 64, size: 14, channels: 256, stride: 1, found: [192, 0, false] },
  { name: "64 channels", images: 64, size: 56, channels: 64, stride: 1, found: [192, 0, false] },
] as const)("widths that were measured to be best: $name", ({ images, size, ...each }) => {
  const op = convolutionBackwardW(spec(images, size, each.channels, each.channels, each.stride));
  const [columns, own, isWhole] = each.found;
  expect(op.plan().configuration).toMatchObject({ columns, shared: own, isWhole });
});

test.skipIf(!hasPtxas)("tiles that share a run spill nothing", { timeout: 120_000 }, () => {
  for (const stride of [1, 2]) {
    const op = convolutionBackwardW(spec(64, 14, 512, 512, stride));
    expect(assemblyProblems(op.kernels())).toEqual([]);
  }
});
