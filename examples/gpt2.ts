/**
 * GPT-2, and one step of its training: the model as plain functions of arrays, its gradient, and AdamW. Parameters are f32;
 * products, activations and gradients are bf16, sums and norms f32.
 *
 *   tilewright run examples/gpt2.ts --device gpu -- --size small --steps 10
 */
import process from "node:process";
import type { Device } from "tilewright";
import {
  add,
  array,
  astype,
  einsum,
  jit,
  logsumexp,
  matmul,
  mul,
  neg,
  nn,
  oneHot,
  random,
  reshape,
  slice,
  sub,
  sum,
  take,
  tanh,
  useDevice,
  valueAndGrad,
  zeros,
  mapTree,
  mean,
} from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";

type F32 = NDArray<"f32">;
type Bf16 = NDArray<"bf16">;
type Tokens = NDArray<"i32">;

export interface Configuration {
  readonly vocabulary: number;
  readonly context: number;
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
}

/** GPT-2 small, with its vocabulary rounded up to a multiple of 128; and one small enough for the simulator. */
export const configurations = {
  small: {
    vocabulary: 50304,
    context: 1024,
    layers: 12,
    heads: 12,
    width: 768,
  },
  tiny: { vocabulary: 32, context: 8, layers: 1, heads: 2, width: 16 },
} satisfies { readonly [name: string]: Configuration };

interface Linear {
  readonly weight: F32;
  readonly bias: F32;
}

interface Norm {
  readonly scale: F32;
  readonly offset: F32;
}

interface Layer {
  readonly before: Norm;
  readonly attention: Linear;
  readonly projection: Linear;
  readonly between: Norm;
  readonly up: Linear;
  readonly down: Linear;
}

export interface Parameters {
  readonly tokens: F32;
  readonly positions: F32;
  readonly layers: readonly Layer[];
  readonly after: Norm;
}

/** Parameters as GPT-2 starts with: normal with deviation 0.02, smaller before each sum with the residual. */
export function initialParameters(configuration: Configuration, seed = 0): Parameters {
  const { vocabulary, context, layers, width } = configuration;
  const keys = random.split(random.key(seed), 2 + 4 * layers).values();
  const normal = (shape: readonly number[], deviation = 0.02): F32 => {
    const { value: key } = keys.next();
    if (key === undefined) throw new Error("every matrix of parameters has a key");
    return mul(random.normal(key, shape), deviation);
  };
  const linear = (from: number, to: number, deviation?: number): Linear => ({
    weight: normal([from, to], deviation),
    bias: zeros([to]),
  });
  const norm = (): Norm => ({
    scale: add(zeros([width]), 1),
    offset: zeros([width]),
  });
  const last = 0.02 / Math.sqrt(2 * layers);
  return {
    tokens: normal([vocabulary, width]),
    positions: normal([context, width], 0.01),
    layers: Array.from({ length: layers }, () => ({
      before: norm(),
      attention: linear(width, 3 * width),
      projection: linear(width, width, last),
      between: norm(),
      up: linear(width, 4 * width),
      down: linear(4 * width, width, last),
    })),
    after: norm(),
  };
}

const half = (x: F32): Bf16 => astype(x, "bf16");
const single = (x: Bf16): F32 => astype(x, "f32");

function linear(x: Bf16, { weight, bias }: Linear): Bf16 {
  return add(matmul(x, half(weight)), half(bias));
}

function normalized(x: Bf16, { scale, offset }: Norm): Bf16 {
  return half(nn.layerNorm(single(x), scale, offset));
}

/** GPT-2's gelu: by tanh. */
function gelu(x: Bf16): Bf16 {
  const wide = single(x);
  const inner = mul(add(wide, mul(mul(mul(wide, wide), wide), 0.044715)), Math.sqrt(2 / Math.PI));
  return half(mul(mul(wide, 0.5), add(tanh(inner), 1)));
}

/** Every token looks at itself and those before it. */
function attention(x: Bf16, { heads }: Configuration): Bf16 {
  const [batch = 1, length = 1, triple = 3] = x.shape;
  const width = triple / 3;
  const part = (at: number): Bf16 =>
    reshape(slice(x, [null, null, [at * width, (at + 1) * width]]), [
      batch,
      length,
      heads,
      width / heads,
    ]);
  const mixed = nn.attention(part(0), part(1), part(2), { causal: true });
  return reshape(mixed, [batch, length, width]);
}

/** The logits of the next token at every place. */
export function forward(
  parameters: Parameters,
  tokens: Tokens,
  configuration: Configuration,
): Bf16 {
  const length = tokens.shape[1] ?? 1;
  const table = half(parameters.tokens);
  const places = half(slice(parameters.positions, [[0, length], null]));
  let x = add(take(table, tokens), places);
  for (const layer of parameters.layers) {
    const mixed = attention(linear(normalized(x, layer.before), layer.attention), configuration);
    x = add(x, linear(mixed, layer.projection));
    const grown = gelu(linear(normalized(x, layer.between), layer.up));
    x = add(x, linear(grown, layer.down));
  }
  return einsum("bld,vd->blv", normalized(x, parameters.after), table);
}

/** The mean over all places of −log of the next token's probability. */
export function lossOf(
  parameters: Parameters,
  tokens: Tokens,
  targets: Tokens,
  configuration: Configuration,
): F32 {
  const logits = single(forward(parameters, tokens, configuration));
  const hits = oneHot(targets, configuration.vocabulary, "f32");
  const picked = sum(mul(logits, hits), { axis: -1 });
  return neg(mean(sub(picked, logsumexp(logits, { axis: -1 }))));
}

export interface TrainingState {
  readonly parameters: Parameters;
  readonly optimizer: nn.AdamState<Parameters>;
}

export function initialState(parameters: Parameters): TrainingState {
  const empty = (): Parameters => mapTree(parameters, (leaf) => zeros(leaf.shape, leaf.dtype));
  return {
    parameters,
    optimizer: { step: array(0), first: empty(), second: empty() },
  };
}

/** One step of training, as a function to compile. */
export function stepOf(configuration: Configuration, rate = 6e-4) {
  return (
    { parameters, optimizer }: TrainingState,
    tokens: Tokens,
    targets: Tokens,
  ): { readonly state: TrainingState; readonly loss: F32 } => {
    const [loss, gradients] = valueAndGrad((own: Parameters) =>
      lossOf(own, tokens, targets, configuration),
    )(parameters);
    const options = { learningRate: rate, beta2: 0.95, weightDecay: 0.1 };
    const [next, state] = nn.adamw(parameters, gradients, optimizer, options);
    return { state: { parameters: next, optimizer: state }, loss: loss as F32 };
  };
}

/** Tokens that repeat a short pattern with some noise, and those that follow them. */
export function sampleBatch(
  { vocabulary, context }: Configuration,
  batch: number,
): readonly [Tokens, Tokens] {
  let state = 12345;
  const next = (): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state;
  };
  const rows = Array.from({ length: batch }, () => {
    const start = next() % vocabulary;
    return Array.from({ length: context + 1 }, (_, i) =>
      i % 5 === 4 ? next() % vocabulary : (start + i * i) % Math.min(vocabulary, 997),
    );
  });
  const cut = (from: number): Tokens =>
    array(
      rows.map((row) => row.slice(from, from + context)),
      "i32",
    );
  return [cut(0), cut(1)];
}

/** The value of an option among the arguments, such as `--steps 10`. */
function option(name: string, fallback: string): string {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : (process.argv[at + 1] ?? fallback);
}

/** Trains on one batch; gives the losses before each step. */
export async function train(
  device: Device,
  configuration: Configuration,
  batch: number,
  steps: number,
): Promise<readonly number[]> {
  await useDevice(device);
  // Parameters and moments stay where they lie: the results take their memory.
  const step = jit(stepOf(configuration), { name: "train", donate: [0] });
  const since = (start: number): string => `${(performance.now() - start).toFixed(1)} ms`;
  const begin = performance.now();
  let state = jit(() => initialState(initialParameters(configuration)))();
  await state.parameters.after.scale.values();
  console.log(`parameters and moments  ${since(begin)}`);
  const [tokens, targets] = sampleBatch(configuration, batch);
  const losses: number[] = [];
  for (let turn = 0; turn < steps; turn++) {
    const start = performance.now();
    const result = step(state, tokens, targets);
    state = result.state;
    losses.push(Number(await result.loss.values()));
    result.loss.dispose();
    console.log(`step ${turn}  loss ${losses.at(-1)?.toFixed(4)}  ${since(start)}`);
  }
  console.log(`memory  ${(device.memory.peak / 2 ** 30).toFixed(2)} GiB at most`);
  mapTree(state, (leaf) => {
    leaf.dispose();
    return leaf;
  });
  await useDevice();
  return losses;
}

export async function main(device: Device): Promise<void> {
  const size = option("size", "tiny") as keyof typeof configurations;
  const batch = Number(option("batch", size === "tiny" ? "2" : "8"));
  await train(device, configurations[size], batch, Number(option("steps", "3")));
}
