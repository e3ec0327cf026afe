/**
 * Functions of the library on random shapes and formats, against places reckoned one by one. A check is a function and a seed, with ten shapes:
 *
 *   npm run test:gpu -- --jobs 12 --only "library convolution"        200 convolutions, with both gradients of each
 */
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { bf16, f16, f32, f64, i32, i8, u32, u8 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import type { Device } from "../../src/device/device.ts";
import {
  bincount,
  cast,
  concatenate,
  copy,
  dropout,
  gated,
  gather,
  histogram,
  map,
  pad,
  permute,
  pool,
  poolBackward,
  random as draws,
  rotary,
  scatter,
  searchSorted,
  slice,
  unique,
} from "../../src/kernels/index.ts";
import { tensor } from "../../src/lang/index.ts";
import { Random } from "../../src/support/random.ts";
import { rbgBits } from "../support/philox.ts";
import { threefry } from "../support/threefry.ts";
import type { TwoWords } from "../support/threefry.ts";
import { checkConvolution, randomConvolution, requireEqual } from "../support/convolution-check.ts";
import { everyPlace, resultExtents } from "../support/convolution-reference.ts";
import { wholeNumbers } from "../support/whole-numbers.ts";
import type { Check } from "./check.ts";

type Sweep = (device: Device, random: Random, seed: number) => Promise<void>;

const [seeds, shapes] = [20, 10];

function sweep(name: string, run: Sweep): readonly Check[] {
  return Array.from({ length: seeds }, (_, index) => ({
    name: `library ${name} from seed ${index + 1}`,
    run: async (device) => {
      const random = new Random(index + 1);
      for (let round = 0; round < shapes; round += 1) await run(device, random, 10 * index + round);
    },
  }));
}

function oneOf<const T>(random: Random, list: readonly T[]): T {
  const found = list[random.below(list.length)];
  if (found === undefined) throw new Error("there is nothing to choose from");
  return found;
}

const formats = [f32, bf16, f16, f64, i32, i8, u8] as const;

/** Some long and some short extents, a few thousand elements in all. */
function randomShape(random: Random, rank = 1 + random.below(4)): number[] {
  const most = [3000, 60, 16, 8][rank - 1] ?? 8;
  return Array.from({ length: rank }, () => 1 + random.below(most));
}

function placeOf(shape: readonly number[], at: readonly number[]): number {
  return at.reduce((place, index, axis) => place * (shape[axis] ?? 1) + index, 0);
}

function count(shape: readonly number[]): number {
  return shape.reduce((all, extent) => all * extent, 1);
}

function given(random: Random, shape: readonly number[], seed: number) {
  const dtype = oneOf(random, formats) as unknown as DType<"f32">;
  return { dtype, spec: tensor(dtype, shape), ...wholeNumbers(dtype, shape, seed) };
}

function requireClose(found: HostArray, expected: readonly number[], text: string): void {
  const unit = found.dtype.bits === 16 ? 2 ** -7 : 2 ** -20;
  for (const [index, value] of toNumbers(found).entries()) {
    const wanted = expected[index] ?? NaN;
    if (!(Math.abs(value - wanted) <= unit * Math.max(1, Math.abs(wanted))))
      throw new Error(`element ${index} is ${value} instead of ${wanted}: ${text}`);
  }
}

const movement: Sweep = async (device, random, seed) => {
  const shape = randomShape(random);
  const x = given(random, shape, seed);
  const text = `seed ${seed}, ${x.dtype.name} [${shape.join(", ")}]`;
  const at = (place: readonly number[]): number => x.values[placeOf(shape, place)] ?? NaN;
  const axes = shape.map((_, axis) => axis);
  for (let last = axes.length - 1; last > 0; last -= 1) {
    const other = random.below(last + 1);
    [axes[last], axes[other]] = [axes[other] ?? 0, axes[last] ?? 0];
  }
  const turned = axes.map((axis) => shape[axis] ?? 1);
  const permuted = await device.run(permute({ x: x.spec, permutation: axes }), { x: x.array });
  const back = (own: readonly number[]) => shape.map((_, axis) => own[axes.indexOf(axis)] ?? 0);
  requireEqual(
    permuted.out,
    everyPlace(turned).map((own) => at(back(own))),
    `permute ${text}`,
  );
  const starts = shape.map((extent) => random.below(extent));
  const steps = shape.map(() => 1 + random.below(3));
  const sizes = shape.map(
    (extent, axis) => 1 + Math.floor((extent - 1 - (starts[axis] ?? 0)) / (steps[axis] ?? 1)),
  );
  const part = await device.run(slice({ x: x.spec, starts, sizes, steps }), { x: x.array });
  const from = (own: readonly number[]) =>
    own.map((index, axis) => (starts[axis] ?? 0) + index * (steps[axis] ?? 1));
  requireEqual(
    part.out,
    everyPlace(sizes).map((own) => at(from(own))),
    `slice ${text}`,
  );
  const [before, after] = [shape.map(() => random.below(3)), shape.map(() => random.below(4))];
  const padded = await device.run(pad({ x: x.spec, before, after, value: 5 }), { x: x.array });
  const whole = shape.map((extent, axis) => extent + (before[axis] ?? 0) + (after[axis] ?? 0));
  const framed = everyPlace(whole).map((own) => {
    const inner = own.map((index, axis) => index - (before[axis] ?? 0));
    return inner.every((index, axis) => index >= 0 && index < (shape[axis] ?? 0)) ? at(inner) : 5;
  });
  requireEqual(padded.out, framed, `pad ${text}`);
};

const joined: Sweep = async (device, random, seed) => {
  const shape = randomShape(random, 1 + random.below(3));
  const axis = random.below(shape.length);
  const other = shape.map((extent, own) => (own === axis ? 1 + random.below(40) : extent));
  const dtype = oneOf(random, formats) as unknown as DType<"f32">;
  const [a, b] = [wholeNumbers(dtype, shape, seed), wholeNumbers(dtype, other, seed + 1)];
  const parts = { a: tensor(dtype, shape), b: tensor(dtype, other) };
  const { out } = await device.run(concatenate({ parts, axis }), { a: a.array, b: b.array });
  const split = shape[axis] ?? 0;
  const whole = shape.map((extent, own) => (own === axis ? extent + (other[own] ?? 0) : extent));
  const expected = everyPlace(whole).map((own) =>
    (own[axis] ?? 0) < split
      ? a.values[placeOf(shape, own)]
      : b.values[
          placeOf(
            other,
            own.map((index, each) => (each === axis ? index - split : index)),
          )
        ],
  );
  const text = `concatenate [${shape.join(", ")}] and [${other.join(", ")}] along ${axis}`;
  requireEqual(out, expected as readonly number[], text);
};

const rows: Sweep = async (device, random, seed) => {
  const [height, width, picks] = [
    1 + random.below(50),
    1 + random.below(300),
    1 + random.below(90),
  ];
  const table = given(random, [height, width], seed);
  const chosen = Array.from({ length: picks }, () => random.below(height));
  const indices = fromNumbers(i32, [picks], chosen);
  const spec = tensor(i32, [picks]);
  const text = `seed ${seed}, ${table.dtype.name} [${height}, ${width}], ${picks} rows`;
  const found = await device.run(gather({ x: table.spec, indices: spec }), {
    x: table.array,
    indices,
  });
  const row = (of: readonly number[], own: number) => of.slice(own * width, (own + 1) * width);
  requireEqual(
    found.out,
    chosen.flatMap((own) => row(table.values, own)),
    `gather ${text}`,
  );
  const dtype = oneOf(random, [f32, f64, i32]) as unknown as DType<"f32">;
  const updates = wholeNumbers(dtype, [picks, width], seed + 1);
  const start = wholeNumbers(dtype, [height, width], seed + 2);
  const combine = oneOf(random, ["add", "max", "min"]);
  const expected = [...start.values];
  const together = {
    add: (one: number, two: number) => one + two,
    max: (one: number, two: number) => Math.max(one, two),
    min: (one: number, two: number) => Math.min(one, two),
  }[combine];
  for (const [index, own] of chosen.entries())
    for (let column = 0; column < width; column += 1) {
      const place = own * width + column;
      expected[place] = together(
        expected[place] ?? NaN,
        updates.values[index * width + column] ?? NaN,
      );
    }
  for (const deterministic of [false, true]) {
    const op = scatter({
      out: tensor(dtype, [height, width]),
      indices: spec,
      combine,
      deterministic,
    });
    const { out } = await device.run(op, { indices, updates: updates.array, out: start.array });
    requireEqual(out, expected, `scatter ${combine} ${dtype.name}, ${text}`);
  }
};

const elementwise: Sweep = async (device, random, seed) => {
  const shape = randomShape(random);
  const x = given(random, shape, seed);
  const text = `seed ${seed}, ${x.dtype.name} [${shape.join(", ")}]`;
  const out = oneOf(random, [f32, bf16, f64, i32]) as unknown as DType<"f32">;
  const as = await device.run(cast({ x: x.spec, out }), { x: x.array });
  requireEqual(as.out, x.values, `cast to ${out.name} ${text}`);
  const same = await device.run(copy({ x: x.spec }), { x: x.array });
  requireEqual(same.out, x.values, `copy ${text}`);
  const narrow = shape.map((extent) => (random.below(2) === 0 ? 1 : extent));
  const y = wholeNumbers(f32, narrow, seed + 1);
  const z = wholeNumbers(f32, shape, seed + 2);
  const op = map({ y: tensor(f32, narrow), z: tensor(f32, shape) }, ({ y: one, z: two }) => ({
    out: one.mul(two).add(2),
  }));
  const made = await device.run(op, { y: y.array, z: z.array });
  const expected = everyPlace(shape).map((own, index) => {
    const place = placeOf(
      narrow,
      own.map((each, axis) => (narrow[axis] === 1 ? 0 : each)),
    );
    return (y.values[place] ?? NaN) * (z.values[index] ?? NaN) + 2;
  });
  requireEqual(made.out, expected, `map [${narrow.join(", ")}] ${text}`);
};

const halves: Sweep = async (device, random, seed) => {
  const [height, half] = [1 + random.below(20), 1 + random.below(200)];
  const dtype = oneOf(random, [f32, bf16]) as unknown as DType<"f32">;
  const x = wholeNumbers(dtype, [height, 2 * half], seed);
  const text = `seed ${seed}, ${dtype.name} [${height}, ${2 * half}]`;
  const pair = (row: number, column: number) => [
    x.values[row * 2 * half + column] ?? NaN,
    x.values[row * 2 * half + half + column] ?? NaN,
  ];
  const op = gated({ x: tensor(dtype, [height, 2 * half]), activation: "silu" });
  const { out } = await device.run(op, { x: x.array });
  const gates = everyPlace([height, half]).map(([row = 0, column = 0]) => {
    const [gate = NaN, value = NaN] = pair(row, column);
    return (gate / (1 + Math.exp(-gate))) * value;
  });
  requireClose(out, gates, `gated ${text}`);
  const heads = 1 + random.below(4);
  const wide = [height, heads, 2 * half];
  const turned = wholeNumbers(dtype, wide, seed + 1);
  const [cos, sin] = [2, 3].map((own) => wholeNumbers(f32, [height, half], seed + own));
  if (cos === undefined || sin === undefined) throw new Error("two tables");
  const rotated = await device.run(rotary({ x: tensor(dtype, wide), cos: f32, sin: f32 }), {
    ...{ x: turned.array, cos: cos.array, sin: sin.array },
  });
  const expected = everyPlace(wide).map(([row = 0, head = 0, column = 0]) => {
    const own = column % half;
    const first = turned.values[placeOf(wide, [row, head, own])] ?? NaN;
    const second = turned.values[placeOf(wide, [row, head, own + half])] ?? NaN;
    const [c = NaN, s = NaN] = [cos.values[row * half + own], sin.values[row * half + own]];
    return column < half ? first * c - second * s : second * c + first * s;
  });
  requireEqual(rotated.out, expected, `rotary ${text}, ${heads} heads`);
};

const pooling: Sweep = async (device, random, seed) => {
  const sizes = { ...randomConvolution(random, seed), groups: 1, outputs: 1 };
  const { batch, channels, input, taps, strides: steps, dilation, before, after } = sizes;
  // A window lies in x with one of its elements at least.
  const around = before.map((each, axis) => {
    const reach = (dilation[axis] ?? 1) * ((taps[axis] ?? 1) - 1);
    return [Math.min(each, reach), Math.min(after[axis] ?? 0, reach)] as const;
  });
  const own = {
    ...sizes,
    before: around.map(([first]) => first),
    after: around.map(([, last]) => last),
  };
  if (resultExtents(own).some((extent) => extent < 1)) return;
  const shape = [batch, ...input, channels];
  const dtype = oneOf(random, [f32, bf16]) as unknown as DType<"f32">;
  const x = wholeNumbers(dtype, shape, seed);
  const spec = { x: tensor(dtype, shape), window: taps, strides: steps, dilation, padding: around };
  const text = JSON.stringify({ ...own, dtype: dtype.name });
  // By rows, or channel by channel.
  const turned = [batch, channels, ...input];
  const byChannels = everyPlace(turned).map(
    ([n = 0, c = 0, ...at]) => x.values[placeOf(shape, [n, ...at, c])] ?? NaN,
  );
  const strides = shape.map((_, axis) => {
    const inner = axis === 0 ? 1 : axis === shape.length - 1 ? 2 : axis + 2;
    return count(turned.slice(inner));
  });
  const isTurned = random.below(2) === 0;
  const given = isTurned ? { ...spec, x: tensor(dtype, shape, { strides }) } : spec;
  const elements = isTurned ? fromNumbers(dtype, shape, byChannels) : x.array;
  const made = await device.run(pool({ ...given, kind: "max", tap: true }), { x: elements });
  const output = resultExtents(own);
  const results = everyPlace([batch, ...output, channels]);
  const slopes = wholeNumbers(dtype, [batch, ...output, channels], seed + 1);
  const [greatest, which, gradient] = [[] as number[], [] as number[], x.values.map(() => 0)];
  for (const [index, place] of results.entries()) {
    const [n = 0, c = 0] = [place[0], place.at(-1)];
    const spatial = place.slice(1, -1);
    let [best, tap, from] = [-Infinity, -1, -1];
    for (const [number, each] of everyPlace(taps).entries()) {
      const at = spatial.map(
        (own, axis) =>
          own * (steps[axis] ?? 1) +
          (each[axis] ?? 0) * (dilation[axis] ?? 1) -
          (around[axis]?.[0] ?? 0),
      );
      if (!at.every((one, axis) => one >= 0 && one < (input[axis] ?? 0))) continue;
      const element = placeOf(shape, [n, ...at, c]);
      const value = x.values[element] ?? NaN;
      if (value > best) [best, tap, from] = [value, number, element];
    }
    greatest.push(best);
    which.push(tap);
    if (from >= 0) gradient[from] = (gradient[from] ?? 0) + (slopes.values[index] ?? NaN);
  }
  requireEqual(made.out, greatest, `pool ${text}`);
  requireEqual(made.tap, which, `taps of pool ${text}`);
  const op = poolBackward({ ...spec, kind: "max" });
  const { dx } = await device.run(op, { dOut: slopes.array, tap: made.tap });
  requireEqual(dx, gradient, `gradient of pool ${text}`);
};

const counting: Sweep = async (device, random, seed) => {
  const length = 1 + random.below(5000);
  const kinds = 1 + random.below(200);
  const values = Array.from({ length }, () => random.below(kinds + 3) - 1);
  const x = fromNumbers(i32, [length], values);
  const text = `seed ${seed}, ${length} of ${kinds}`;
  const often = (low: number, high: number) =>
    Array.from(
      { length: high - low },
      (_, own) => values.filter((each) => each === low + own).length,
    );
  const bins = await device.run(bincount({ x: tensor(i32, [length]), length: kinds }), { x });
  requireEqual(bins.out, often(0, kinds), `bincount ${text}`);
  const floats = fromNumbers(f32, [length], values);
  const op = histogram({ x: tensor(f32, [length]), bins: kinds, low: 0, high: kinds });
  const found = await device.run(op, { x: floats });
  const last = values.filter((each) => each === kinds).length;
  const inBins = often(0, kinds).map((each, index) => (index === kinds - 1 ? each + last : each));
  requireEqual(found.out, inBins, `histogram ${text}`);
  const distinct = [...new Set(values)].toSorted((one, two) => one - two);
  const once = await device.run(
    unique({ x: tensor(i32, [length]), size: distinct.length, counts: true }),
    { x },
  );
  requireEqual(once.values, distinct, `unique ${text}`);
  requireEqual(
    once.counts,
    distinct.map((own) => values.filter((each) => each === own).length),
    `counts of unique ${text}`,
  );
  const sorted = values.toSorted((one, two) => one - two);
  const side = oneOf(random, ["left", "right"]);
  const searched = await device.run(searchSorted({ sorted: i32, side }), {
    ...{ sorted: fromNumbers(i32, [length], sorted), queries: x },
  });
  const places = values.map((own) =>
    side === "left"
      ? sorted.findIndex((each) => each >= own)
      : sorted.findLastIndex((each) => each <= own) + 1,
  );
  requireEqual(searched.out, places, `searchSorted ${side} ${text}`);
};

/** Both words of Threefry's hash together, as JAX draws them. */
function threefryBits(words: readonly number[], number: number): number {
  const [a, b] = threefry(words as unknown as TwoWords, [0, number]);
  return (a ^ b) >>> 0;
}

/** What draws, words of a key, and the bits of an element. */
const generators = [
  ["threefry", 2, threefryBits],
  ["rbg", 4, rbgBits],
] as const;

const drawing: Sweep = async (device, random, seed) => {
  const shape = randomShape(random);
  for (const [generator, length, bitsOf] of generators) {
    const words = Array.from({ length }, () => random.below(2 ** 31));
    // Counters whose lowest words end within the array.
    if (length === 4 && seed % 2 === 0)
      words.splice(2, 2, 2 ** 32 - 1 - random.below(200), 2 ** 32 - 1);
    const key = fromNumbers(u32, [length], words);
    const bits = Array.from({ length: count(shape) }, (_, index) => bitsOf(words, index));
    const text = `seed ${seed}, ${generator}, key ${words.join(" ")}, [${shape.join(", ")}]`;
    const plain = await device.run(draws.bits({ out: tensor(u32, shape), generator }), { key });
    requireEqual(plain.out, bits, `bits ${text}`);
    const unit = bits.map((each) => (each >>> 9) / 2 ** 23);
    const uniform = await device.run(draws.uniform({ out: tensor(f32, shape), generator }), {
      key,
    });
    requireEqual(uniform.out, unit, `uniform ${text}`);
    const x = fromNumbers(f32, shape, new Float32Array(bits.length).fill(3));
    const dropped = await device.run(dropout({ x: tensor(f32, shape), rate: 0.25, generator }), {
      key,
      x,
    });
    requireEqual(
      dropped.out,
      unit.map((each) => (each < 0.75 ? 4 : 0)),
      `dropout ${text}`,
    );
    if (generator === "threefry") continue;
    const normal = await device.run(draws.normal({ out: tensor(f32, shape), generator }), { key });
    requireNormal(toNumbers(normal.out), bits, text);
  }
};

/** Box and Muller's transform of pairs of words, in float64; the last element may lack its other word. */
function requireNormal(found: ArrayLike<number>, bits: readonly number[], text: string): void {
  for (let at = 0; at + 1 < bits.length; at += 2) {
    const u = Math.fround(Math.fround(bits[at] ?? NaN) / 2 ** 32 + 2 ** -33);
    const radius = Math.sqrt(-2 * Math.log(u));
    const angle = (Math.PI * ((bits[at + 1] ?? NaN) | 0)) / 2 ** 31;
    const away = Math.max(
      Math.abs((found[at] ?? NaN) - radius * Math.cos(angle)),
      Math.abs((found[at + 1] ?? NaN) - radius * Math.sin(angle)),
    );
    if (!(away < 4e-6)) throw new Error(`normal ${text}: ${found[at]} at ${at} is ${away} away`);
  }
}

export const libraryChecks: readonly Check[] = [
  ...sweep("convolution", (device, random, seed) =>
    checkConvolution(device, randomConvolution(random, seed)),
  ),
  ...sweep("pooling", pooling),
  ...sweep("movement", movement),
  ...sweep("concatenate", joined),
  ...sweep("rows", rows),
  ...sweep("elementwise", elementwise),
  ...sweep("halves", halves),
  ...sweep("counting", counting),
  ...sweep("random", drawing),
];
