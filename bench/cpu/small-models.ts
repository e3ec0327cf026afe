/**
 * Steps of models as small as a page or a lesson has them, where what surrounds the arithmetic decides: a step of training of a small network
 * of convolutions, and the next token of a small transformer that remembers what it has seen.
 */
import {
  add,
  concatenate,
  einsum,
  equal,
  grad,
  iota,
  lessEqual,
  matmul,
  mul,
  nn,
  reshape,
  slice,
  softmax,
  sub,
  take,
  where,
  zeros,
} from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import type { CpuProgram } from "./programs.ts";
import type { Argument } from "./turns.ts";

type F32 = NDArray<"f32">;
type I32 = NDArray<"i32">;

const f32 = (...shape: readonly number[]): Argument => ({ shape });

const classes = 10;

/** [16, 16, 16, 3] to [16, 10]: what is pooled goes from 16 × 16 to 4 × 4. */
function convnet([v, w, dense]: readonly [F32, F32, F32], x: F32): F32 {
  const halved = (each: F32): F32 => nn.maxPool(nn.relu(each), [2, 2]);
  const first = halved(nn.conv(x, v, { padding: "same" }));
  const second = halved(nn.conv(first, w, { padding: "same" }));
  return matmul(reshape(second, [16, 4 * 4 * 32]), dense);
}

function convnetStep(...given: readonly NDArray[]): NDArray {
  const [v, w, dense, x, labels] = given as [F32, F32, F32, F32, I32];
  const parameters = [v, w, dense] as const;
  const gradients = grad((own: typeof parameters) => nn.crossEntropy(convnet(own, x), labels))(
    parameters,
  );
  const next = parameters.map((each, i) => sub(each, mul(gradients[i] as F32, 0.1)));
  return concatenate(next.map((each) => reshape(each, [-1])));
}

const [width, context, heads, letters] = [64, 64, 4, 96];

/** The logits of the next token, and the keys and values of this one; `seen` has those before it, [context, 2 · width] a layer. */
function token(...given: readonly NDArray[]): NDArray {
  const [table, place, here, ...layers] = given as [F32, I32, I32, ...F32[]];
  const normalized = (x: F32): F32 => nn.layerNorm(x, add(zeros([width]), 1), zeros([width]));
  const made: F32[] = [];
  let x = take(table, here);
  for (let at = 0; at < layers.length; at += 5) {
    const [mix, project, up, down, seen] = layers.slice(at, at + 5) as [F32, F32, F32, F32, F32];
    const mixed = matmul(normalized(x), mix);
    const part = (from: number, to: number): F32 =>
      slice(mixed, [null, [from * width, to * width]]);
    made.push(part(1, 3));
    const isHere = equal(iota([context, 2 * width], "i32", { axis: 0 }), place);
    const all = where(isHere, part(1, 3), seen);
    const [keys, values] = [0, 1].map((half) =>
      reshape(slice(all, [null, [half * width, (half + 1) * width]]), [context, heads, -1]),
    ) as [F32, F32];
    const scores = einsum("hd,khd->hk", reshape(part(0, 1), [heads, -1]), keys);
    const known = lessEqual(iota(scores.shape, "i32", { axis: 1 }), place);
    const weights = softmax(where(known, mul(scores, Math.sqrt(heads / width)), -1e9));
    x = add(x, matmul(reshape(einsum("hk,khd->hd", weights, values), [1, width]), project));
    x = add(x, matmul(nn.gelu(matmul(normalized(x), up)), down));
  }
  const logits = einsum("bd,vd->bv", normalized(x), table);
  return concatenate([logits, ...made].map((each) => reshape(each, [-1])));
}

const layer = [
  f32(width, 3 * width),
  f32(width, width),
  f32(width, 4 * width),
  f32(4 * width, width),
  f32(context, 2 * width),
];

export const smallModels: readonly CpuProgram[] = [
  {
    name: "convnet step, 16 × 16², 3-16-32",
    arguments: [
      f32(3, 3, 3, 16),
      f32(3, 3, 16, 32),
      f32(4 * 4 * 32, classes),
      f32(16, 16, 16, 3),
      { shape: [16], below: classes },
    ],
    ours: convnetStep,
    jax: undefined,
    numpy: undefined,
  },
  {
    name: "GPT token, two layers of 64",
    arguments: [
      f32(letters, width),
      { shape: [1], below: context },
      { shape: [1], below: letters },
      ...layer,
      ...layer,
    ],
    ours: token,
    jax: undefined,
    numpy: undefined,
  },
];
