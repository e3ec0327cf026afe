/**
 * When the kernel for few rows is possible, which configurations of it there are, and what a model thinks of them. It is
 * bound by what memory gives, or by the instructions that turn stored numbers into what tensor cores take:
 *
 *   8192 × 28672, i4      memory   117 MB at 4.3 TB/s                                               27 µs
 *   up to 16 rows         issued   235 M weights · 3.5 instructions, 132 · 4 · 32 of them a cycle   28 µs
 */
import type { Location } from "../../../support/location.ts";
import type { Target } from "../../../targets/target.ts";
import { packedBytes } from "../../../formats/dtype.ts";
import { requireSettings } from "../../support/arguments.ts";
import { matmulSettings } from "../configuration.ts";
import type { SkinnyConfiguration, ProductSizes } from "../configuration.ts";
import { memoryBytes } from "../cost/rates.ts";
import { areTogether, mostRows, skinnyColumns, stepDepth } from "./skinny.ts";
import { requireRoom } from "../problem.ts";
import { refused } from "../argument-errors.ts";
import type { MatmulProblem } from "../problem.ts";
import { packedUnit, scalesOfUnit } from "../weights/quantized.ts";
import type { QuantizedSpec } from "../weights/quantized.ts";
import { hasSumsInFlight } from "../../../targets/product-instructions.ts";

/**
 * Instructions of a lane for each weight that it has, as many as the time suggests that they took on an H200: of 4 bits, and of 8 bits where that is
 * told, or else what these take besides, which have no conversion of two at once. Those of blocks of 64 columns were given what others have, so that they are chosen. Machine code has 1.7 of 8 rows, and of 16 rows 2.0 with four turns,
 * 2.2 with two and 2.7 without. Those of 4 bits with more rows, whose products take no instructions of lanes, make them faster than the persistent kernel where they were:
 *
 *   rows   of the skinny and of the persistent kernel, in i4
 *   32     8192 × 28672  40.5  51.3 µs   8192 × 8192  14.7  18.2   28672 × 8192  44.5  47.3   4096 × 14336  15.9  16.3
 *   64     8192 × 28672  57.2  59.8      8192 × 8192  20.8  21.4   28672 × 8192  58.0  58.5   4096 × 14336  18.9  19.8
 */
const forms: readonly (Pick<SkinnyConfiguration, "rows" | "columns" | "sliceK"> & {
  readonly instructions: number;
  readonly wide?: number;
})[] = [
  { rows: 8, columns: 16, sliceK: 4, instructions: 2.8 },
  { rows: 8, columns: 64, sliceK: 4, instructions: 2.8 },
  { rows: 16, columns: 16, sliceK: 4, instructions: 3.1 },
  { rows: 16, columns: 64, sliceK: 4, instructions: 3.05 },
  { rows: 16, columns: 32, sliceK: 4, instructions: 3.05 },
  { rows: 16, columns: 32, sliceK: 2, instructions: 3.1 },
  { rows: 16, columns: 16, sliceK: 1, instructions: 3.5 },
  { rows: 32, columns: 16, sliceK: 4, instructions: 2.9 },
  { rows: 32, columns: 16, sliceK: 1, instructions: 2.9, wide: 5.6 },
  { rows: 64, columns: 16, sliceK: 1, instructions: 3.2 },
];
const wideInstructions = 1;
/** Rows of the forms with fewest. */
const fewestRows = 8;
/** Columns of a block that may have any part of k, and of one that has all of it. */
const [mostColumns, leastColumns] = [256, 64];
/** Rows for which conversions of 8 bits leave registers enough. Their stages are too large for turns, which have two each. */
const mostWideRows = 32;
/** Instructions that a processor issues a second, over all lanes, of which a part is really issued. */
const issuedInstructions = 4 * 32 * 1.7e9;
const issued = 0.8;
/** The part of the shorter of computing and fetching that the other does not hide. */
const notHidden = 0.2;
/** Seconds until the ring of a block is full for the first time, and that a launch takes besides. */
const [fillSeconds, launchSeconds] = [1.5e-6, 2.5e-6];
const [mostSplit, leastSteps] = [16, 4];
/**
 * Bytes of weights that a block asks for ahead, of four steps at least. More of them make memory slower: with 16 rows of 8192 ×
 * 28672 in i4, 6 stages of 16 KB took 49.7 µs and 11 of them 50.5, 4 of 32 KB 50.4 and 6 of them 51.8.
 */
const [aheadBytes, leastStages] = [96 * 1024, 4];
/** Bytes for each row of a block through which sixteen warps rearrange 16 columns of f32, rows a little apart from each other. */
const rearrangedBytes = 16 * (16 + 4) * 4;

/** Why the kernel for few rows cannot be used, in words; undefined where it can. */
export function skinnyProblem(
  { weights, sizes, major }: MatmulProblem,
  { k }: ProductSizes,
  target: Target,
): string | undefined {
  if (weights === undefined) return "b is not quantised";
  if (!target.features.includes("tma")) return `${target.name} has no TMA`;
  if (sizes.batch !== undefined) return "there is a batch";
  if (major.a !== "k") return "a lies by columns";
  if (k === 0) return "there is nothing to multiply";
  return k % 8 === 0 ? undefined : `rows of ${k} elements of a are no multiples of 16 bytes`;
}

/**
 * Whether blocks of few columns leave few processors without work, and none with more than one of them. That is what was timed, 8192 × 28672 on 132
 * processors, as blocks of 64 columns with all of k, of 128 with half of it and of 256 with a quarter:
 *
 *   rows   µs of blocks of 64, 128 and 256 columns
 *   1      i4 33.2     –  35.3   i8 59.0  –  63.5
 *   16     i4 31.6  36.9  37.9   i8 58.9  –  63.6   FP8 59.0  –  63.8
 *   32     i4 40.5     –  46.1
 *
 * Up to 8 rows have forms of their own: one row of 16384 × 4096 took 14.8 µs by that of 128 columns for 16, and 14.2 by that of 256 for 8.
 */
function fillsOnce(
  form: Pick<SkinnyConfiguration, "rows" | "columns" | "sliceK">,
  splitK: number,
  { m, n }: ProductSizes,
  { processors }: Target,
): boolean {
  const blocks = splitK * Math.ceil(n / skinnyColumns(form));
  const isOwn = m <= form.rows && (2 * m > form.rows || form.rows === fewestRows);
  return isOwn && blocks <= processors && blocks > 0.75 * processors;
}

/** Those that there are of weights, whose stored columns have whole steps, with instructions that the target has. */
function formsOf(weights: QuantizedSpec, { k }: ProductSizes, target: Target): typeof forms {
  const stored = Math.ceil(k / packedUnit) * packedUnit;
  return forms.filter((form) => {
    const { rows, columns, sliceK } = form;
    if (stored % stepDepth(weights, form) !== 0) return false;
    if (areTogether(weights, form) && !hasSumsInFlight(target)) return false;
    return weights.dtype.bits === 4 || (rows <= mostWideRows && (sliceK === 1 || columns === 16));
  });
}

function sharedBytes(
  { dtype, scale, zero, group }: QuantizedSpec,
  configuration: Omit<SkinnyConfiguration, "kernel">,
): number {
  const { rows, stages, sliceK, splitK } = configuration;
  const width = skinnyColumns(configuration);
  const depth = stepDepth({ dtype }, configuration);
  // Scales and zero points are counted where they do not travel with the weights, too.
  const count = width * scalesOfUnit({ group });
  const scales = packedBytes(scale, count) + (zero ? packedBytes(dtype, count) : 0);
  const units = depth / packedUnit;
  const step = packedBytes(dtype, width * depth) + rows * depth * 2 + units * scales + 16;
  const parts = (sliceK - 1) * rows * width * 4;
  // Results that warps finish by themselves are rearranged for the way to memory.
  const finishing =
    splitK === 1 && !areTogether({ dtype }, configuration) ? rearrangedBytes * rows : 0;
  return stages * step + parts + finishing + 1024;
}

export function skinnyCandidates(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): readonly SkinnyConfiguration[] {
  const { weights } = problem;
  if (weights === undefined || skinnyProblem(problem, sizes, target) !== undefined) return [];
  // Blocks below each other would read the weights again.
  if (sizes.m > mostRows) return [];
  const splitsOf = (form: (typeof forms)[number]): readonly number[] => {
    const steps = Math.ceil(sizes.k / stepDepth(weights, form));
    const width = skinnyColumns(form);
    const most = width === mostColumns ? mostSplit : width / leastColumns;
    return Array.from({ length: most }, (_, index) => index + 1)
      .filter((splitK) => width === mostColumns || fillsOnce(form, splitK, sizes, target))
      .filter((splitK) => splitK === 1 || steps / splitK >= leastSteps);
  };
  return formsOf(weights, sizes, target)
    .filter(({ rows }) => rows <= 16 || rows < 2 * sizes.m)
    .flatMap((known) =>
      splitsOf(known).flatMap((splitK) => {
        const { rows, columns, sliceK } = known;
        const form = { kernel: "skinny", rows, columns, sliceK, splitK } as const;
        const stages = stagesOf(weights, form, target);
        return stages === undefined ? [] : [{ ...form, stages }];
      }),
    );
}

/** As many stages as are asked for ahead, of which those that take turns have two each; undefined where there is no room for these. */
function stagesOf(
  weights: QuantizedSpec,
  form: Omit<SkinnyConfiguration, "stages">,
  target: Target,
): number | undefined {
  const { sliceK } = form;
  const step = packedBytes(weights.dtype, skinnyColumns(form) * stepDepth(weights, form));
  const ahead = Math.max(leastStages, Math.ceil(aheadBytes / step));
  let stages = Math.ceil(ahead / sliceK) * sliceK;
  while (sharedBytes(weights, { ...form, stages }) > target.sharedMemoryPerBlock) stages -= sliceK;
  return stages < 2 * sliceK ? undefined : stages;
}

/** What the model thinks a configuration takes. */
export function skinnySeconds(
  { weights, out }: MatmulProblem,
  { m, n, k }: ProductSizes,
  configuration: SkinnyConfiguration,
  target: Target,
): number {
  if (weights === undefined) return Infinity;
  const { rows, sliceK, splitK } = configuration;
  const width = skinnyColumns(configuration);
  const tall = Math.ceil(m / rows);
  const blocks = splitK * tall * Math.ceil(n / width);
  const depth = stepDepth(weights, configuration);
  const steps = Math.ceil(Math.ceil(k / depth) / splitK);
  const instructions = instructionsOf(weights, configuration);
  // Those who have no turn in the last steps wait for the others.
  const taken = Math.ceil(steps / sliceK) * sliceK;
  const computing = (taken * width * depth * instructions) / (issuedInstructions * issued);
  // Rows of a come from the cache, for all but the first block.
  const bytes = packedBytes(weights.dtype, width * depth);
  const fetching = (steps * bytes) / (memoryBytes / target.processors);
  const rounds = Math.ceil(blocks / target.processors);
  const busy = Math.max(computing, fetching) + notHidden * Math.min(computing, fetching);
  const product = rounds * (busy + fillSeconds) + launchSeconds;
  const summed = splitK === 1 ? 0 : splitK * m * n * 4 * 2;
  const written = (summed + packedBytes(out.dtype, m * n)) / memoryBytes;
  return product + written + (splitK === 1 ? 0 : launchSeconds);
}

function instructionsOf({ dtype }: QuantizedSpec, configuration: SkinnyConfiguration): number {
  const known = forms.find((form) => isOfForm(configuration, form));
  if (known === undefined) return Infinity;
  const { instructions, wide = instructions + wideInstructions } = known;
  return dtype.bits === 4 ? instructions : wide;
}

function isOfForm(
  configuration: SkinnyConfiguration,
  { rows, columns, sliceK }: (typeof forms)[number],
): boolean {
  return (
    configuration.rows === rows &&
    configuration.columns === columns &&
    configuration.sliceK === sliceK &&
    configuration.stages % sliceK === 0
  );
}

/** Refuses what no kernel of this form can be. */
export function requireSkinny(
  configuration: SkinnyConfiguration,
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
  location: Location,
): void {
  requireSettings(problem.of, configuration, matmulSettings.skinny, location);
  const text = JSON.stringify(configuration);
  const reason = skinnyProblem(problem, sizes, target);
  const { weights } = problem;
  if (reason !== undefined || weights === undefined)
    throw refused(
      "TW9904",
      `matmul cannot use the skinny kernel here: ${reason ?? ""}`,
      'another kernel, or none: { kernel: "plain", … }',
      text,
      location,
    );
  const { splitK } = configuration;
  const known = formsOf(weights, sizes, target);
  const isKnown = known.some((form) => isOfForm(configuration, form));
  if (!isKnown || !Number.isSafeInteger(splitK) || splitK < 1 || splitK > 64)
    throw refused(
      "TW9904",
      "matmul has no such skinny kernel",
      `${known.map((form) => `${form.rows} rows and ${form.columns} columns with sliceK ${form.sliceK}`).join(", ")}; splitK from 1 to 64`,
      text,
      location,
    );
  requireRoom(problem.of, configuration, sharedBytes(weights, configuration), target, location);
}
