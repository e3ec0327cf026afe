/**
 * The programs of the comparison on the CPU, each in our arrays, in jax-js's and in NumPy's, on the same numbers: what people train and ask for
 * on a machine without a GPU.
 */
import {
  add,
  argmax,
  concatenate,
  cumsum,
  grad,
  matmul,
  mean,
  mul,
  nn,
  random,
  reshape,
  scan,
  sigmoid,
  slice,
  softmax,
  sort,
  sub,
  sum,
  take,
  tanh,
} from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import type * as Jax from "@jax-js/jax";
import { smallModels } from "./small-models.ts";
import type { Argument } from "./turns.ts";

type JaxModule = typeof Jax;
type JaxArray = Jax.numpy.Array;

export interface CpuProgram {
  readonly name: string;
  readonly arguments: readonly Argument[];
  readonly ours: (...given: readonly NDArray[]) => NDArray;
  /** Undefined where it has none of it. */
  readonly jax: ((jax: JaxModule) => (...given: readonly JaxArray[]) => JaxArray) | undefined;
  /** Python, of x0, x1 …; undefined where it is no single expression. */
  readonly numpy: string | undefined;
}

type F32 = NDArray<"f32">;
type Given = readonly F32[];

const typed = (f: (...given: Given) => NDArray): CpuProgram["ours"] => f as CpuProgram["ours"];

const loss = (v: F32, b: F32, w: F32, c: F32, x: F32, y: F32): F32 => {
  const error = sub(add(matmul(nn.relu(add(matmul(x, v), b)), w), c), y);
  return mean(mul(error, error));
};

const convnet = (v: F32, w: F32, x: F32): F32 =>
  nn.relu(nn.conv(nn.relu(nn.conv(x, v, { padding: "same" })), w, { padding: "same" }));

/** One kernel for all four gates; the state and its memory side by side. */
const lstm = (x: F32, w: F32, u: F32, start: F32): F32 => {
  const width = 128;
  const gates = reshape(matmul(reshape(x, [64 * 16, width]), w), [64, 16, 4 * width]);
  const [last] = scan(
    (carry: readonly [F32, F32], row: F32) => {
      const [h, c] = carry;
      const all = add(row, matmul(h, u));
      const gate = (at: number): F32 => slice(all, [null, [at * width, (at + 1) * width]]);
      const memory = add(mul(sigmoid(gate(0)), c), mul(sigmoid(gate(1)), tanh(gate(2))));
      const next = mul(sigmoid(gate(3)), tanh(memory));
      return [[next, memory] as const, next] as const;
    },
    [start, start] as const,
    gates,
  );
  return concatenate([...last]);
};

const f32 = (...shape: readonly number[]): Argument => ({ shape });

const square = (n: number): CpuProgram => ({
  name: `matmul ${n}`,
  arguments: [f32(n, n), f32(n, n)],
  ours: typed((a, b) => matmul(a as F32, b as F32)),
  jax:
    ({ numpy: np }) =>
    (a, b) =>
      np.matmul(a as JaxArray, b as JaxArray),
  numpy: "x0 @ x1",
});

export const programs: readonly CpuProgram[] = [
  {
    name: "MLP gradient, 64 × 784-256-10",
    arguments: [f32(784, 256), f32(256), f32(256, 10), f32(10), f32(64, 784), f32(64, 10)],
    ours: typed((...given) => {
      const [v, b, w, c, x, y] = given as [F32, F32, F32, F32, F32, F32];
      const [dv, db, dw, dc] = grad((parameters: readonly [F32, F32, F32, F32]) =>
        loss(...parameters, x, y),
      )([v, b, w, c]);
      return concatenate([dv, db, dw, dc].map((each) => reshape(each, [-1])));
    }),
    jax:
      ({ numpy: np, nn: layers, grad: gradient }) =>
      (...given) => {
        const [v, b, w, c, x, y] = given as [
          JaxArray,
          JaxArray,
          JaxArray,
          JaxArray,
          JaxArray,
          JaxArray,
        ];
        const of = ([p, q, r, s]: [JaxArray, JaxArray, JaxArray, JaxArray]): JaxArray =>
          np.mean(
            np.square(
              np
                .matmul(layers.relu(np.matmul(x, p).add(q)), r)
                .add(s)
                .sub(y),
            ),
          );
        const all = gradient(of)([v, b, w, c]);
        return np.concatenate(all.map((each: JaxArray) => each.flatten()));
      },
    numpy: undefined,
  },
  square(256),
  square(512),
  square(1024),
  {
    name: "convolutions, 16 × 16², 3-16-32",
    arguments: [f32(3, 3, 3, 16), f32(3, 3, 16, 32), f32(16, 16, 16, 3)],
    ours: typed((v, w, x) => convnet(v as F32, w as F32, x as F32)),
    jax:
      ({ lax, nn: layers }) =>
      (v, w, x) => {
        const [first, second, input] = [v, w, x].map((each, i) =>
          (each as JaxArray).transpose(i === 2 ? [0, 3, 1, 2] : [3, 2, 0, 1]),
        ) as [JaxArray, JaxArray, JaxArray];
        return layers.relu(
          lax.conv(layers.relu(lax.conv(input, first, [1, 1], "SAME")), second, [1, 1], "SAME"),
        );
      },
    numpy: undefined,
  },
  {
    name: "their gradient",
    arguments: [f32(3, 3, 3, 16), f32(3, 3, 16, 32), f32(16, 16, 16, 3)],
    ours: typed((v, w, x) => {
      const [dv, dw] = grad((parameters: readonly [F32, F32]) =>
        sum(convnet(...parameters, x as F32)),
      )([v as F32, w as F32]);
      return concatenate([dv, dw].map((each) => reshape(each, [-1])));
    }),
    jax:
      ({ numpy: np, lax, nn: layers, grad: gradient }) =>
      (...given) => {
        const [v, w, x] = given as [JaxArray, JaxArray, JaxArray];
        const input = x.transpose([0, 3, 1, 2]);
        const of = ([p, q]: [JaxArray, JaxArray]): JaxArray =>
          layers
            .relu(
              lax.conv(
                layers.relu(lax.conv(input, p.transpose([3, 2, 0, 1]), [1, 1], "SAME")),
                q.transpose([3, 2, 0, 1]),
                [1, 1],
                "SAME",
              ),
            )
            .sum();
        return np.concatenate(gradient(of)([v, w]).map((each: JaxArray) => each.flatten()));
      },
    numpy: undefined,
  },
  {
    name: "layer norm 1024 × 768",
    arguments: [f32(1024, 768), f32(768), f32(768)],
    ours: typed((x, scale, shift) => nn.layerNorm(x as F32, scale as F32, shift as F32)),
    jax:
      ({ nn: layers }) =>
      (x, scale, shift) =>
        layers
          .standardize(x as JaxArray)
          .mul(scale as JaxArray)
          .add(shift as JaxArray),
    numpy: "(x0 - x0.mean(1, keepdims=True)) / np.sqrt(x0.var(1, keepdims=True) + 1e-5) * x1 + x2",
  },
  {
    name: "softmax 1024²",
    arguments: [f32(1024, 1024)],
    ours: typed((x) => softmax(x as F32)),
    jax:
      ({ nn: layers }) =>
      (x) =>
        layers.softmax(x as JaxArray),
    numpy: "(lambda e: e / e.sum(1, keepdims=True))(np.exp(x0 - x0.max(1, keepdims=True)))",
  },
  {
    name: "attention 8 × 256 × 64",
    arguments: [f32(1, 256, 8, 64), f32(1, 256, 8, 64), f32(1, 256, 8, 64)],
    ours: typed((q, k, v) => nn.attention(q as F32, k as F32, v as F32)),
    jax:
      ({ nn: layers }) =>
      (q, k, v) =>
        layers.dotProductAttention(q as JaxArray, k as JaxArray, v as JaxArray),
    numpy: undefined,
  },
  {
    name: "sort 100,000",
    arguments: [f32(100_000)],
    ours: typed((x) => sort(x as F32)),
    jax:
      ({ numpy: np }) =>
      (x) =>
        np.sort(x as JaxArray),
    numpy: "np.sort(x0)",
  },
  {
    name: "argmax 1,000,000",
    arguments: [f32(1_000_000)],
    ours: typed((x) => argmax(x as F32)),
    jax:
      ({ numpy: np }) =>
      (x) =>
        np.argmax(x as JaxArray),
    numpy: "np.argmax(x0)",
  },
  {
    name: "cumulative sum 1,000,000",
    arguments: [f32(1_000_000)],
    ours: typed((x) => cumsum(x as F32)),
    jax:
      ({ numpy: np }) =>
      (x) =>
        np.cumsum(x as JaxArray),
    numpy: "np.cumsum(x0)",
  },
  {
    name: "embedding 4096 × 128",
    arguments: [f32(10_000, 128), { shape: [4096], below: 10_000 }],
    ours: (table, indices) => take(table as F32, indices as NDArray<"i32">),
    jax:
      ({ numpy: np }) =>
      (table, indices) =>
        np.take(table as JaxArray, indices as JaxArray, 0),
    numpy: "x0[x1]",
  },
  {
    name: "its gradient",
    arguments: [f32(10_000, 128), { shape: [4096], below: 10_000 }],
    ours: (table, indices) =>
      grad((t: F32) => sum(take(t, indices as NDArray<"i32">)))(table as F32),
    jax:
      ({ numpy: np, grad: gradient }) =>
      (table, indices) =>
        gradient((t: JaxArray) => np.take(t, indices as JaxArray, 0).sum())(table as JaxArray),
    numpy: undefined,
  },
  {
    name: "normals 1,000,000",
    arguments: [],
    ours: () => random.normal(random.key(1), [1_000_000]),
    jax:
      ({ random: numbers }) =>
      () =>
        numbers.normal(numbers.key(1), [1_000_000]),
    numpy: "np.random.default_rng(1).standard_normal(1_000_000, dtype=np.float32)",
  },
  {
    name: "LSTM, 64 steps, 16 × 128",
    arguments: [f32(64, 16, 128), f32(128, 512), f32(128, 512), f32(16, 128)],
    ours: typed((x, w, u, start) => lstm(x as F32, w as F32, u as F32, start as F32)),
    jax:
      ({ numpy: np, nn: layers }) =>
      (...given) => {
        const [x, w, u, start] = given as [JaxArray, JaxArray, JaxArray, JaxArray];
        const gates = np.matmul(x, w);
        let [h, c] = [start.ref, start];
        for (let step = 0; step < 64; step++) {
          const all = gates.ref.slice(step).add(np.matmul(h, u.ref));
          const gate = (at: number): JaxArray => all.ref.slice([], [at * 128, (at + 1) * 128]);
          c = layers
            .sigmoid(gate(0))
            .mul(c)
            .add(layers.sigmoid(gate(1)).mul(np.tanh(gate(2))));
          h = layers.sigmoid(gate(3)).mul(np.tanh(c.ref));
        }
        return np.concatenate([h, c]);
      },
    numpy: undefined,
  },
  ...smallModels,
];
