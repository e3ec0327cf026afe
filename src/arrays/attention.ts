/**
 * Attention as a function of arrays. Of f16 and bf16 it is the library's on devices, forward and backward, so that scores
 * are never in memory; what it means, there and everywhere else, is the formula.
 *
 *   q [b, s, h, d]   k [b, t, kv, d]   v [b, t, kv, e]   ──▶   [b, s, h, e]
 *
 *   forward    out, logSumExp        kept with q, k and v for the way back
 *   backward   dq, dk, dv            from those and the cotangent of out, in one order of summing
 */
import { dtypes } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { dim, tensor } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { NDArray } from "./array.ts";
import { customVjp } from "./derivatives.ts";
import { astype, exp, greaterEqual, mul, sub, where } from "./functions.ts";
import { fromLibrary } from "./kernels.ts";
import { einsum, logsumexp } from "./reductions.ts";
import { iota, reshape } from "./shapes.ts";
import { vjp } from "./transforms.ts";

/** Options of `nn.attention`. */
export interface AttentionOptions {
  /** Whether row i sees columns 0 to i alone. */
  readonly causal?: boolean | undefined;
  /** What products are multiplied by; 1 / √d by default. */
  readonly scale?: number | undefined;
}

interface Settled {
  readonly causal: boolean;
  readonly scale: number;
}

type Operands = readonly [q: NDArray, k: NDArray, v: NDArray];

/** Weights' logarithms and what they sum to, in f32 for narrower formats; heads of q that share one of k and v lie together. */
function logWeights([q, k]: Operands, { causal, scale }: Settled) {
  const [b = 1, s = 1, h = 1, d = 1] = q.shape;
  const [, t = 1, kv = 1] = k.shape;
  const shape = [b, kv, h / kv, s, t];
  const products = einsum(
    "bskgd,btkd->bkgst",
    reshape(widened(q), [b, s, kv, h / kv, d]),
    widened(k),
  );
  const scores = mul(products, scale);
  const isSeen = greaterEqual(iota(shape, "i32", { axis: 3 }), iota(shape, "i32", { axis: 4 }));
  const seen = causal ? where(isSeen, scores, -Infinity) : scores;
  return { seen, sums: logsumexp(seen, { axis: -1, keepDims: true }) };
}

function widened(x: NDArray): NDArray {
  return isHalf(x.dtype) ? astype(x, "f32") : x;
}

function isHalf(dtype: DTypeName): dtype is "bf16" | "f16" {
  return dtype === "bf16" || dtype === "f16";
}

/** The formula: its result, and the logarithm of each row's sum. */
function formula(operands: Operands, options: Settled): readonly [NDArray, NDArray<"f32">] {
  const [q, , v] = operands;
  const { seen, sums } = logWeights(operands, options);
  const mixed = einsum("bkgst,btke->bskge", exp(sub(seen, sums)), widened(v));
  const [b = 1, s = 1, h = 1] = q.shape;
  const out = astype(reshape(mixed, [b, s, h, v.shape[3] ?? 1]), q.dtype);
  return [out, astype(reshape(sums, [b, h, s]), "f32")];
}

type Attend = (...operands: Operands) => NDArray;

/** The library's attention of a format, with its gradients. */
function byLibrary(dtype: "bf16" | "f16", options: Settled): Attend {
  const of = dtypes[dtype];
  const spec = { q: of, k: of, v: of, ...options } as const;
  const [b, s, t, h] = [dim("b"), dim("s"), dim("t"), dim("h")];
  const [kv, d, e] = [dim("kv"), dim("d"), dim("e")];
  const [q, k, v] = [
    tensor(of, [b, s, h, d]),
    tensor(of, [b, t, kv, d]),
    tensor(of, [b, t, kv, e]),
  ];
  const [out, logSumExp] = [tensor(of, [b, s, h, e]), tensor(dtypes.f32, [b, h, s])];
  const inputs = { q, k, v };
  const alone = fromLibrary(
    { library: "attention", spec },
    { inputs, outputs: { out } },
    (...operands: Operands) => formula(operands, options)[0],
  );
  const withSums = fromLibrary(
    { library: "attention", spec: { ...spec, logSumExp: true } },
    { inputs, outputs: { out, logSumExp } },
    (...operands: Operands) => formula(operands, options),
  );
  const gradients = fromLibrary(
    { library: "attention_backward", spec: { ...spec, deterministic: true } },
    { inputs: { ...inputs, out, dOut: out, logSumExp }, outputs: { dq: q, dk: k, dv: v } },
    (q: NDArray, k: NDArray, v: NDArray, _out: NDArray, dOut: NDArray, _sums: NDArray) =>
      vjp((...operands: Operands) => formula(operands, options)[0], q, k, v)[1](dOut),
  );
  return customVjp(
    alone,
    (...operands: Operands) => {
      const [out, sums] = withSums(...operands);
      return [out, [...operands, out, sums]] as const;
    },
    ([q, k, v, out, sums], dOut: NDArray) => gradients(q, k, v, out, dOut, sums),
  );
}

/** One operation for each format and options, so that layers share their kernels. */
const made = new Map<string, Attend>();

function libraryAttention(dtype: "bf16" | "f16", options: Settled): Attend {
  const key = [dtype, options.causal, options.scale].join();
  const known = made.get(key) ?? byLibrary(dtype, options);
  made.set(key, known);
  return known;
}

/** The widest head that the library takes. */
const widestHead = 256;

/** softmax(q · kᵀ · scale) · v over heads; those of q may be a multiple of those of k and v. */
export function attention<D extends DTypeName>(
  q: NDArray<D>,
  k: NDArray<D>,
  v: NDArray<D>,
  options: AttentionOptions = {},
): NDArray<D> {
  requireShapes(q, k, v);
  const { causal = false, scale = 1 / Math.sqrt(q.shape[3] ?? 1) } = options;
  const settled = { causal, scale };
  const operands = [q, k, v] as unknown as Operands;
  const isSmall = Math.max(q.shape[3] ?? 0, v.shape[3] ?? 0) <= widestHead;
  const isSome = [...q.shape, ...k.shape, ...v.shape].every((extent) => extent > 0);
  const result =
    isHalf(q.dtype) && isSmall && isSome
      ? libraryAttention(q.dtype, settled)(...operands)
      : formula(operands, settled)[0];
  return result as unknown as NDArray<D>;
}

const floats: readonly DTypeName[] = ["f64", "f32", "bf16", "f16"];

/** Fails unless the operands are q, k and v of one attention. */
function requireShapes(q: NDArray, k: NDArray, v: NDArray): void {
  const [b = 0, , h = 0, d = 0] = q.shape;
  const [, t = 0, kv = 0] = k.shape;
  const isSame = (found: readonly number[], expected: readonly number[]): boolean =>
    expected.every((extent, axis) => extent === found[axis]);
  const fits =
    floats.includes(q.dtype) &&
    [q, k, v].every(({ rank, dtype }) => rank === 4 && dtype === q.dtype) &&
    isSame(k.shape, [b, t, kv, d]) &&
    isSame(v.shape, [b, t, kv]) &&
    kv > 0 &&
    h % kv === 0;
  if (fits) return;
  throw new TilewrightError({
    code: "TW9319",
    message: "attention: the shapes of q, k and v do not go together",
    expected:
      "q [b, s, h, d], k [b, t, kv, d] and v [b, t, kv, e] of one float dtype, h a multiple of kv",
    found: [q, k, v].map(({ dtype, shape }) => `${dtype}[${shape.join(", ")}]`).join(", "),
  });
}
