/** Cases of the library's benchmark, made small: they run, and their results pass the checks of the benchmark. */
import { expect, test } from "vitest";
import { open } from "tilewright";
import type { BenchCase } from "../bench/gpu/case.ts";
import { crossEntropyCase, normBackwardCase } from "../bench/gpu/cases/gradients.ts";
import {
  embeddingCase,
  rowsCase,
  scanCase,
  scatterCase,
  sortCase,
  sumCase,
  topCase,
} from "../bench/gpu/cases/library.ts";
import { mapCases } from "../bench/gpu/cases/library-maps.ts";
import { attentionByHand, productByHand } from "../bench/gpu/cases/handwritten.ts";
import { convolutionCase } from "../bench/gpu/cases/convolution.ts";
import { randomCases } from "../bench/gpu/cases/random.ts";
import { poolCase, uniqueCase } from "../bench/gpu/cases/windows.ts";
import { pagedCase } from "../bench/gpu/cases/paged.ts";
import { raggedCase, raggedOuterCase } from "../bench/gpu/cases/ragged.ts";

const smallImages = { images: 2, size: 6, channels: 64, window: 3, stride: 1, depthwise: false };
const table = { vocabulary: 9, tokens: 12, width: 8 };
const cases: readonly BenchCase[] = [
  rowsCase("softmax", 4, 64),
  rowsCase("layer_norm", 4, 64),
  rowsCase("rms_norm", 4, 64),
  normBackwardCase("layer_norm_backward", 5, 64),
  normBackwardCase("rms_norm_backward", 5, 64),
  crossEntropyCase(3, 90),
  sumCase(8, 64, 0),
  sumCase(8, 64, 1),
  scanCase(500),
  sortCase(700),
  topCase(2, 90, 4),
  uniqueCase(90, 7),
  poolCase("max", 1, 7, 8),
  poolCase("average", 1, 8, 8),
  ...(["forward", "dx", "dw"] as const).flatMap((made) => [
    convolutionCase({ ...smallImages, made }),
    convolutionCase({ ...smallImages, made, stride: 2 }),
    convolutionCase({ ...smallImages, made, window: 1, channels: 8 }),
    convolutionCase({ ...smallImages, made, depthwise: true, stride: 2, channels: 8 }),
  ]),
  ...mapCases(8, 256),
  embeddingCase(table),
  scatterCase(table, false),
  scatterCase(table, true),
  ...randomCases(2000),
  raggedCase({ m: 64, n: 32, k: 32, groups: 4, halving: true }),
  raggedOuterCase({ m: 64, n: 32, k: 32, groups: 4, halving: true }),
  productByHand(136),
  ...[false, true].map((causal) =>
    attentionByHand({ batch: 1, length: 256, heads: 2, shared: 2, head: 128, back: 0, causal }),
  ),
  ...(["bf16", "f8e4m3fn"] as const).map((format) =>
    pagedCase({
      ...{ format, sequences: 2, length: 40, ragged: true },
      ...{ heads: 4, shared: 2, head: 16, size: 16 },
    }),
  ),
];

test.each(cases.map((each) => [each.name, each] as const))("%s", async (_, each) => {
  const device = await open("simulator");
  const made = await each.prepare(device, 2);
  await made.check();
  made.dispose();
  expect(device.leaks).toEqual([]);
  device.dispose();
});
