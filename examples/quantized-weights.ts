/**
 * A classifier whose weights are quantised after training: loss, accuracy, size and time of each format with scales beside bf16.
 *
 *   tilewright run examples/quantized-weights.ts                      small, on the CPU: some seconds
 *   tilewright run examples/quantized-weights.ts --device gpu -- --size large
 *
 *   format          bits   loss    accuracy   time
 *   bf16            16     0.15    95.8 %     1.00
 *   mxfp4           4.25   0.18    95.1 %     …
 */
import process from "node:process";
import { fp8Block128x128, mxfp4, mxfp6e2m3, mxfp8e4m3, nvfp4 } from "tilewright";
import type { Device, ScaledFormat } from "tilewright";
import {
  add,
  argmax,
  array,
  astype,
  equal,
  jit,
  matmul,
  mean,
  mul,
  nn,
  random,
  slice,
  take,
  transpose,
  useDevice,
  valueAndGrad,
} from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";

type F32 = NDArray<"f32">;
type Weights = NDArray<"bf16"> | nn.ScaledArray;
/** The formats that are compared. */
const compared = { mxfp8e4m3, mxfp6e2m3, mxfp4, nvfp4, fp8Block128x128 };

/** How much of everything there is. */
export interface Configuration {
  readonly features: number;
  readonly width: number;
  readonly classes: number;
  readonly examples: number;
  readonly steps: number;
  /** Rows of calls that are timed: few, so that they take as long as reading the weights. */
  readonly rows: number;
  /** Such calls. */
  readonly calls: number;
}

export const configurations = {
  small: { features: 64, width: 128, classes: 8, examples: 512, steps: 30, rows: 16, calls: 3 },
  large: {
    ...{ features: 4096, width: 8192, classes: 512, examples: 8192, steps: 60 },
    ...{ rows: 16, calls: 200 },
  },
} as const satisfies { readonly [size: string]: Configuration };

/** Weights of both layers, [outputs, inputs]: what products sum comes last. */
interface Parameters<W = F32> {
  readonly hidden: W;
  readonly output: W;
}

/** Points around the centre of their class, and the classes. */
function examplesOf(key: random.Key, { features, classes, examples }: Configuration) {
  const [first, second, third] = random.split(key, 3);
  if (first === undefined || second === undefined || third === undefined)
    throw new Error("three keys");
  const centres = mul(random.normal(first, [classes, features]), 0.7);
  const labels = random.randint(second, [examples], 0, classes);
  const points = add(take(centres, labels), random.normal(third, [examples, features]));
  return { points, labels };
}

function logits({ hidden, output }: Parameters, points: F32): F32 {
  return matmul(nn.relu(matmul(points, transpose(hidden))), transpose(output));
}

/** The same of weights in bf16 or in a format with scales, beside activations in bf16. */
function inference({ hidden, output }: Parameters<Weights>, points: F32): F32 {
  const between = nn.relu(nn.scaledMatmul(astype(points, "bf16"), hidden, { dtype: "bf16" }));
  return nn.scaledMatmul(between, output);
}

/** Trains on half of the examples; the other half is what weights are compared on. */
export async function train(configuration: Configuration) {
  const { features, width, classes, steps } = configuration;
  const learningRate = 0.3 / features;
  const [data, one, two] = random.split(random.key(3), 3);
  if (data === undefined || one === undefined || two === undefined) throw new Error("three keys");
  const { points, labels } = examplesOf(data, configuration);
  let parameters: Parameters = {
    hidden: mul(random.normal(one, [width, features]), (2 / features) ** 0.5),
    output: mul(random.normal(two, [classes, width]), (1 / width) ** 0.5),
  };
  const zero = { hidden: mul(parameters.hidden, 0), output: mul(parameters.output, 0) };
  let state: nn.AdamState<Parameters> = { step: array(0), first: zero, second: zero };
  const half = configuration.examples / 2;
  const [seen, unseen] = [
    [0, half],
    [half, 2 * half],
  ].map(([from = 0, to = 0]) => ({
    points: slice(points, [[from, to]]),
    labels: slice(labels, [[from, to]]),
  }));
  if (seen === undefined || unseen === undefined) throw new Error("two halves");
  const step = jit((given: Parameters, moments: nn.AdamState<Parameters>) => {
    const [, gradients] = valueAndGrad((own: Parameters) =>
      nn.crossEntropy(logits(own, seen.points), seen.labels),
    )(given);
    return nn.adamw(given, gradients, moments, { learningRate });
  });
  for (let turn = 0; turn < steps; turn += 1) [parameters, state] = step(parameters, state);
  return { parameters, ...unseen };
}

/** What a format makes of the classifier. */
export interface Row {
  readonly format: ScaledFormat["name"] | "bf16";
  readonly bits: number;
  readonly loss: number;
  readonly accuracy: number;
  /** Milliseconds of a call. */
  readonly milliseconds: number;
}

type Trained = Awaited<ReturnType<typeof train>>;

/** Loss and accuracy of the classifier with these weights, and how long a call of few rows takes. */
async function measured(
  { points, labels }: Trained,
  { calls, rows, features }: Configuration,
  weights: Parameters<Weights>,
): Promise<Pick<Row, "loss" | "accuracy" | "milliseconds">> {
  const evaluate = jit((own: typeof weights) => {
    const found = inference(own, points);
    const isRight = astype(equal(argmax(found, { axis: -1 }), labels), "f32");
    return { loss: nn.crossEntropy(found, labels), accuracy: mean(isRight) };
  });
  const { loss, accuracy } = evaluate(weights);
  const [lost, right] = [Number(await loss.values()), Number(await accuracy.values())];
  const forward = jit(inference);
  const few = slice(points, [
    [0, rows],
    [0, features],
  ]);
  await forward(weights, few).read();
  const start = performance.now();
  let last = forward(weights, few);
  for (let call = 1; call < calls; call += 1) last = forward(weights, few);
  await last.read();
  return {
    ...{ loss: lost, accuracy: right },
    milliseconds: (performance.now() - start) / calls,
  };
}

/** bf16 first, then every format with scales, along the axis that products sum. */
export async function compare(
  trained: Trained,
  configuration: Configuration,
  formats: readonly ScaledFormat[] = Object.values(compared),
): Promise<readonly Row[]> {
  const { hidden, output } = trained.parameters;
  const halves = { hidden: astype(hidden, "bf16"), output: astype(output, "bf16") };
  const rows: Row[] = [
    { ...{ format: "bf16", bits: 16 }, ...(await measured(trained, configuration, halves)) },
  ];
  for (const { name: format, element, scale, block } of formats) {
    const packed = {
      hidden: nn.quantizeBlocks(hidden, format),
      output: nn.quantizeBlocks(output, format),
    };
    const own = /^f(\d)/.exec(element.name)?.[1];
    const figures = await measured(trained, configuration, packed);
    rows.push({ format, bits: Number(own) + scale.bits / (block[0] * block[1]), ...figures });
  }
  return rows;
}

/** A line a format; times as parts of bf16's. */
export function table(rows: readonly Row[]): string {
  const whole = rows[0]?.milliseconds ?? NaN;
  const lines = rows.map(({ format, bits, loss, accuracy, milliseconds }) =>
    [
      format.padEnd(16),
      bits.toFixed(2).padStart(5),
      loss.toFixed(4).padStart(8),
      `${(100 * accuracy).toFixed(1)} %`.padStart(8),
      (milliseconds / whole).toFixed(2).padStart(6),
    ].join("  "),
  );
  return ["format            bits      loss  accuracy    time", ...lines].join("\n");
}

export async function main(device: Device): Promise<void> {
  const at = process.argv.indexOf("--size");
  const configuration: Configuration =
    process.argv[at + 1] === "large" ? configurations.large : configurations.small;
  // The simulator is for kernels: programs have a default of their own.
  if (device.name !== "simulator") await useDevice(device);
  const trained = await train(configuration);
  console.log(table(await compare(trained, configuration)));
  await useDevice();
}
