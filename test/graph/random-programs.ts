/**
 * Random functions over arrays, of which programs are made by jit, grad and vmap in any nesting. What a function does is
 * drawn from a seed; it takes a matrix and gives a number, stays within small numbers, and has a derivative everywhere
 * that matters.
 */
import {
  add,
  array,
  astype,
  checkpoint,
  concatenate,
  cond,
  cos,
  customVjp,
  einsum,
  exp,
  expandDims,
  flip,
  grad,
  greater,
  logsumexp,
  lower,
  matmul,
  iota,
  max,
  maximum,
  minimum,
  mul,
  nn,
  ones,
  reshape,
  scan,
  sin,
  slice,
  softmax,
  sub,
  sum,
  switchCase,
  take,
  tanh,
  transpose,
  vmap,
  where,
  zeros,
} from "../../src/arrays/index.ts";
import type { NDArray } from "../../src/arrays/index.ts";
import { Random } from "../../src/support/random.ts";

type F32 = NDArray<"f32">;
type Step = (x: F32) => F32;

const flips: readonly Step[] = [
  (x) => sin(x),
  (x) => cos(x),
  (x) => tanh(x),
  (x) => exp(tanh(x)),
  (x) => mul(x, 0.5),
  (x) => add(x, 1),
  (x) => mul(tanh(x), x),
  (x) => maximum(x, 0.25),
  (x) => transpose(x),
  (x) => reshape(x, [...x.shape].reverse()),
  (x) => sub(x, sum(mul(x, x), { axis: 0, keepDims: true })),
  (x) => mul(x, sum(x, { axis: 1, keepDims: true })),
  (x) => tanh(matmul(x, transpose(x))),
  (x) => concatenate([x, mul(x, -1)]),
  (x) => softmax(x),
  (x) => logsumexp(x, { axis: 0, keepDims: true }),
  (x) => nn.layerNorm(x, ones([x.shape[1] ?? 1]), zeros([x.shape[1] ?? 1]), { epsilon: 0.5 }),
  (x) => where(greater(x, 0.1), sin(x), mul(x, 0.3)),
  (x) => flip(x, { axis: 1 }),
  (x) => take(x, minimum(iota([3], "i32", { axis: 0 }), 1)),
  (x) => slice(concatenate([x, x], { axis: 1 }), [null, [1, (x.shape[1] ?? 1) + 1]]),
  (x) => max(x, { axis: 1, keepDims: true }),
  (x) => einsum("ij,kj->ik", x, sin(x)),
  (x) =>
    reshape(
      scan(
        (state: F32, row: F32) => [tanh(add(state, row)), mul(state, row)] as const,
        slice(x, [[0, 1], null]),
        expandDims(x, { axis: 1 }),
      )[1],
      x.shape,
    ),
  (x) =>
    cond(
      greater(sum(x), 0),
      () => cos(x),
      () => mul(x, 2),
    ),
  (x) => switchCase(astype(mul(sum(x), 3), "i32"), [() => x, () => sin(x), () => tanh(x)]),
  checkpoint((x: F32) => tanh(matmul(exp(mul(x, -0.5)), transpose(x))), { policy: "dots" }),
  customVjp(
    (x: F32) => exp(tanh(x)),
    (x: F32) => [exp(tanh(x)), x] as const,
    (x: F32, c: F32) => [mul(c, cos(x))],
  ),
];

/** A function of a seed, its steps drawn at random, and the inputs that it is called with. */
export function randomProgram(seed: number): {
  readonly text: string;
  readonly shape: readonly number[];
} {
  const random = new Random(seed);
  const pick = (count: number): number => Math.floor(random.uniform() * count);
  const steps = Array.from({ length: 2 + pick(5) }, () => flips[pick(flips.length)] as Step);
  const f = (x: F32): F32 => sum(steps.reduce((value, step) => small(step(value)), x));
  const rows = 1 + pick(4);
  const columns = 1 + pick(5);
  const forms: readonly ((x: F32) => unknown)[] = [
    f,
    (x) => grad(f)(x),
    (x) => vmap(f)(stack(x)),
    (x) => vmap(grad(f))(stack(x)),
    (x) => grad((y: F32) => sum(mul(grad(f)(y), 0.5)))(x),
  ];
  const form = forms[pick(forms.length)] as (x: F32) => unknown;
  const zeros = array(Array.from({ length: rows }, () => new Array<number>(columns).fill(0)));
  return { text: lower((x: F32) => form(x), zeros), shape: [rows, columns] };
}

/** Keeps programs small: a matrix that has grown is summed along its rows. */
function small(x: F32): F32 {
  const [rows = 1, columns = 1] = x.shape;
  return rows * columns <= 256 ? x : sum(x, { axis: 0, keepDims: true });
}

function stack(x: F32): F32 {
  const [rows = 1, columns = 1] = x.shape;
  const batch = [1, rows, columns];
  return concatenate([reshape(x, batch), reshape(mul(x, 0.5), batch)]);
}
