/**
 * A transformer that learns to write: character by character, from this repository's own documentation. It trains, draws its
 * loss, saves its parameters, loads them again and writes a few lines with them.
 *
 *   tilewright run examples/characters.ts                     tiny, on the CPU: some seconds
 *   tilewright run examples/characters.ts --device gpu        four layers, on a GPU
 *   … -- --steps 500 --output /tmp                            where characters.svg and characters.safetensors go
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Device, HostArray } from "tilewright";
import {
  add,
  array,
  einsum,
  greaterEqual,
  iota,
  jit,
  mapTree,
  matmul,
  mul,
  nn,
  random,
  reshape,
  slice,
  softmax,
  take,
  transpose,
  useDevice,
  valueAndGrad,
  where,
  zeros,
} from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import { readSafetensors, writeSafetensors } from "tilewright/files";

type F32 = NDArray<"f32">;
type Tokens = NDArray<"i32">;

export interface Configuration {
  readonly context: number;
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
  readonly batch: number;
  readonly steps: number;
  readonly rate: number;
}

export const configurations = {
  tiny: { context: 16, layers: 1, heads: 2, width: 32, batch: 8, steps: 60, rate: 1e-2 },
  gpu: { context: 128, layers: 4, heads: 4, width: 256, batch: 32, steps: 1500, rate: 1e-3 },
} satisfies { readonly [name: string]: Configuration };

interface Layer {
  readonly mix: F32;
  readonly project: F32;
  readonly up: F32;
  readonly down: F32;
  readonly norms: readonly [F32, F32];
}

export interface Parameters {
  readonly characters: F32;
  readonly places: F32;
  readonly layers: readonly Layer[];
  readonly last: F32;
}

/** Text as numbers, by the characters that it has. */
export class Alphabet {
  readonly letters: readonly string[];
  readonly #places: ReadonlyMap<string, number>;

  constructor(text: string) {
    this.letters = [...new Set(text)].sort();
    this.#places = new Map(this.letters.map((letter, i) => [letter, i]));
  }

  encode(text: string): readonly number[] {
    return [...text].map((letter) => this.#places.get(letter) ?? 0);
  }
}

export function initialParameters(
  { context, layers, width }: Configuration,
  letters: number,
): Parameters {
  let key = random.key(1);
  const normal = (...shape: readonly number[]): F32 => {
    const [next, own] = random.split(key);
    key = next as typeof key;
    return mul(random.normal(own as typeof key, shape), 1 / Math.sqrt(width));
  };
  const ones = (): F32 => add(zeros([width]), 1);
  return {
    characters: normal(letters, width),
    places: normal(context, width),
    layers: Array.from({ length: layers }, () => ({
      mix: normal(width, 3 * width),
      project: normal(width, width),
      up: normal(width, 4 * width),
      down: mul(normal(4 * width, width), 0.5),
      norms: [ones(), ones()],
    })),
    last: ones(),
  };
}

/** Every character looks at itself and those before it. */
function attention(mixed: F32, heads: number): F32 {
  const [batch = 1, length = 1, triple = 3] = mixed.shape;
  const width = triple / 3;
  const part = (at: number): F32 =>
    reshape(slice(mixed, [null, null, [at * width, (at + 1) * width]]), [
      batch,
      length,
      heads,
      width / heads,
    ]);
  const scores = mul(einsum("bqhd,bkhd->bhqk", part(0), part(1)), Math.sqrt(heads / width));
  const isSeen = greaterEqual(
    iota(scores.shape, "i32", { axis: 2 }),
    iota(scores.shape, "i32", { axis: 3 }),
  );
  const seen = einsum("bhqk,bkhd->bhqd", softmax(where(isSeen, scores, -1e9)), part(2));
  return reshape(transpose(seen, [0, 2, 1, 3]), [batch, length, width]);
}

/** The logits of the next character at every place of [batch, length] characters. */
export function forward(parameters: Parameters, tokens: Tokens, { heads, width }: Configuration) {
  const normalized = (x: F32, scale: F32): F32 => nn.layerNorm(x, scale, zeros([width]));
  let x = add(take(parameters.characters, tokens), parameters.places);
  for (const { mix, project, up, down, norms } of parameters.layers) {
    x = add(x, matmul(attention(matmul(normalized(x, norms[0]), mix), heads), project));
    x = add(x, matmul(nn.gelu(matmul(normalized(x, norms[1]), up)), down));
  }
  return einsum("bld,vd->blv", normalized(x, parameters.last), parameters.characters);
}

interface State {
  readonly parameters: Parameters;
  readonly optimizer: nn.AdamState<Parameters>;
}

function stepOf(configuration: Configuration) {
  return ({ parameters, optimizer }: State, tokens: Tokens, targets: Tokens) => {
    const [loss, gradients] = valueAndGrad((own: Parameters) =>
      nn.crossEntropy(forward(own, tokens, configuration), targets),
    )(parameters);
    const { rate } = configuration;
    const [next, state] = nn.adamw(parameters, gradients, optimizer, {
      learningRate: rate,
      beta2: 0.99,
    });
    return { state: { parameters: next, optimizer: state }, loss };
  };
}

/** Pieces of the text at random, and the same moved by one character. */
function batchOf(
  text: readonly number[],
  { batch, context }: Configuration,
  next: () => number,
): readonly [Tokens, Tokens] {
  const starts = Array.from({ length: batch }, () =>
    Math.floor(next() * (text.length - context - 1)),
  );
  const cut = (offset: number): Tokens =>
    array(
      starts.map((start) => text.slice(start + offset, start + offset + context)),
      "i32",
    );
  return [cut(0), cut(1)];
}

/** Numbers from 0 to 1 that are the same in every run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function disposeTree(tree: unknown): void {
  mapTree(tree, (leaf) => {
    leaf.dispose();
    return leaf;
  });
}

/** Trains on a text; gives the parameters, which are the caller's, and the losses. */
export async function train(
  text: readonly number[],
  letters: number,
  configuration: Configuration,
): Promise<{ readonly parameters: Parameters; readonly losses: readonly number[] }> {
  const step = jit(stepOf(configuration), { name: "train", donate: [0] });
  const parameters = initialParameters(configuration, letters);
  const empty = (): Parameters => mapTree(parameters, (leaf) => zeros(leaf.shape));
  const optimizer = { step: array(0), first: empty(), second: empty() };
  let state: State = { parameters, optimizer };
  const next = generator(7);
  const losses: number[] = [];
  for (let turn = 0; turn < configuration.steps; turn++) {
    const [tokens, targets] = batchOf(text, configuration, next);
    const { state: after, loss } = step(state, tokens, targets);
    state = after;
    losses.push(Number(await loss.values()));
    loss.dispose();
  }
  disposeTree(state.optimizer);
  return { parameters: state.parameters, losses };
}

/** The names of a tree's arrays, such as `layers.0.mix`, with their data. */
async function namedArrays(tree: unknown, path = ""): Promise<{ [name: string]: HostArray }> {
  if (typeof tree !== "object" || tree === null) return {};
  if ("read" in tree) return { [path]: await (tree as F32).read() };
  const parts = await Promise.all(
    Object.entries(tree).map(([name, each]) =>
      namedArrays(each, path === "" ? name : `${path}.${name}`),
    ),
  );
  return Object.assign({}, ...parts) as { [name: string]: HostArray };
}

/** The tree with the arrays of those names. */
function withArrays(
  tree: unknown,
  arrays: { readonly [name: string]: HostArray },
  path = "",
): unknown {
  if (typeof tree !== "object" || tree === null) return tree;
  if ("read" in tree) return array(arrays[path] as HostArray<"f32">);
  const inner = (name: string): string => (path === "" ? name : `${path}.${name}`);
  if (Array.isArray(tree))
    return tree.map((each: unknown, i) => withArrays(each, arrays, inner(String(i))));
  return Object.fromEntries(
    Object.entries(tree).map(([name, each]) => [name, withArrays(each, arrays, inner(name))]),
  );
}

export async function save(parameters: Parameters): Promise<Uint8Array> {
  return writeSafetensors(await namedArrays(parameters));
}

export async function load(
  bytes: Uint8Array,
  configuration: Configuration,
  letters: number,
): Promise<Parameters> {
  const arrays = await readSafetensors(bytes);
  return withArrays(initialParameters(configuration, letters), arrays) as Parameters;
}

/** Text that goes on from a beginning, one character after another by the probabilities that the model gives. */
export async function write(
  parameters: Parameters,
  configuration: Configuration,
  alphabet: Alphabet,
  beginning: string,
  count: number,
): Promise<string> {
  const { context } = configuration;
  const probabilities = jit((own: Parameters, tokens: Tokens, place: Tokens) => {
    const logits = forward(own, tokens, configuration);
    return softmax(mul(reshape(take(reshape(logits, [context, -1]), place), [-1]), 1.5));
  });
  const next = generator(3);
  const written = [...alphabet.encode(beginning)];
  for (let turn = 0; turn < count; turn++) {
    const seen = written.slice(-context);
    // What lies beyond the last character is not looked at.
    const padded = [...seen, ...Array.from({ length: context - seen.length }, () => 0)];
    const place = array([seen.length - 1], "i32");
    const result = probabilities(parameters, array([padded], "i32"), place);
    const weights = (await result.values()) as readonly number[];
    result.dispose();
    let left = next();
    const chosen = weights.findIndex((weight) => (left -= weight) < 0);
    written.push(chosen < 0 ? weights.length - 1 : chosen);
  }
  return written.map((each) => alphabet.letters[each] ?? "").join("");
}

/** The losses as a curve. */
export function drawLosses(losses: readonly number[]): string {
  const [width, height, edge] = [640, 320, 40];
  const top = Math.max(...losses);
  const x = (i: number): number => edge + (i / Math.max(1, losses.length - 1)) * (width - 2 * edge);
  const y = (loss: number): number => height - edge - (loss / top) * (height - 2 * edge);
  const points = losses.map((loss, i) => `${x(i).toFixed(1)},${y(loss).toFixed(1)}`).join(" ");
  const label = (text: string, left: number, down: number): string =>
    `<text x="${left}" y="${down}" font-family="sans-serif" font-size="12">${text}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}">
<rect width="${width}" height="${height}" fill="white"/>
<path d="M${edge} ${edge}V${height - edge}H${width - edge}" stroke="#888" fill="none"/>
<polyline points="${points}" stroke="#0a58ca" fill="none"/>
${label(`loss, from ${losses[0]?.toFixed(2)} to ${losses.at(-1)?.toFixed(2)}`, edge, edge - 12)}
${label(`${losses.length} steps`, width - edge - 60, height - edge + 20)}
</svg>
`;
}

function option(name: string, fallback: string): string {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : (process.argv[at + 1] ?? fallback);
}

/** All pages of the documentation, one after the other. */
export function documentation(): string {
  const folder = join(import.meta.dirname ?? "examples", "../docs");
  const pages = readdirSync(folder).filter((name) => name.endsWith(".md"));
  return pages.map((name) => readFileSync(join(folder, name), "utf8")).join("\n");
}

export async function main(device: Device): Promise<void> {
  const isGpu = device.name === "gpu";
  const base: Configuration = isGpu ? configurations.gpu : configurations.tiny;
  const configuration = { ...base, steps: Number(option("steps", String(base.steps))) };
  // The simulator is for kernels: programs have a default of their own.
  if (device.name !== "simulator") await useDevice(device);
  const text = documentation();
  const alphabet = new Alphabet(text);
  const letters = alphabet.letters.length;
  const start = performance.now();
  const { parameters, losses } = await train(alphabet.encode(text), letters, configuration);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(
    `${losses.length} steps in ${seconds} s: loss ${losses[0]?.toFixed(2)} to ${losses.at(-1)?.toFixed(2)}`,
  );
  const output = option("output", ".");
  const file = join(output, "characters.safetensors");
  writeFileSync(file, await save(parameters));
  writeFileSync(join(output, "characters.svg"), drawLosses(losses));
  disposeTree(parameters);
  const loaded = await load(readFileSync(file), configuration, letters);
  console.log(await write(loaded, configuration, alphabet, "A kernel ", isGpu ? 400 : 60));
  disposeTree(loaded);
  await useDevice();
}
