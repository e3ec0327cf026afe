/**
 * A function of an array for every export of `tilewright/arrays` that has a derivative, by the export's name; `gradients.test.ts` holds the
 * gradient of each against central differences. `test/exports.test.ts` asks for an entry, or a reason, for every new export.
 */
import * as arrays from "tilewright/arrays";
import { type NDArray, nn } from "tilewright/arrays";

type F64 = NDArray<"f64">;
type Smooth = (x: F64) => F64;

/** Made where they are used: what a function makes outside of its recording cannot depend on its argument. */
const numbers = (...values: readonly number[]): F64 => arrays.array(values, "f64");
const indices = (...values: readonly number[]) => arrays.array(values, "i32");
const weights = (shape: readonly number[]): F64 => {
  const count = shape.reduce((product, extent) => product * extent, 1);
  const list = Array.from({ length: count }, (_, index) => ((index * 5) % 7) / 7 - 0.3);
  return arrays.reshape(arrays.array(list, "f64"), shape);
};

/** Of x [2, 3], whose elements lie between 0.2 and 0.9. */
export const gradients: { readonly [name: string]: Smooth } = {
  abs: (x) => arrays.abs(x),
  sign: (x) => arrays.sign(x),
  floor: (x) => arrays.floor(x),
  ceil: (x) => arrays.ceil(x),
  round: (x) => arrays.round(x),
  full: (x) => arrays.mul(arrays.full([2, 3], 2, "f64"), x),
  neg: (x) => arrays.neg(x),
  exp: (x) => arrays.exp(x),
  expm1: (x) => arrays.expm1(x),
  log: (x) => arrays.log(x),
  log1p: (x) => arrays.log1p(x),
  sigmoid: (x) => arrays.sigmoid(x),
  sin: (x) => arrays.sin(x),
  cos: (x) => arrays.cos(x),
  tan: (x) => arrays.tan(x),
  tanh: (x) => arrays.tanh(x),
  sqrt: (x) => arrays.sqrt(x),
  rsqrt: (x) => arrays.rsqrt(x),
  cbrt: (x) => arrays.cbrt(x),
  erf: (x) => arrays.erf(x),
  erfInv: (x) => arrays.erfInv(x),
  add: (x) => arrays.add(x, arrays.sin(x)),
  sub: (x) => arrays.sub(1, x),
  mul: (x) => arrays.mul(x, x),
  div: (x) => arrays.div(1, x),
  rem: (x) => arrays.rem(x, 0.15),
  pow: (x) => arrays.pow(x, x),
  atan2: (x) => arrays.atan2(x, arrays.cos(x)),
  maximum: (x) => arrays.maximum(x, 0.5),
  minimum: (x) => arrays.minimum(x, 0.5),
  clip: (x) => arrays.clip(x, 0.4, 0.6),
  where: (x) => arrays.where(arrays.less(x, 0.5), arrays.sin(x), x),
  astype: (x) => arrays.mul(arrays.astype(x, "f64"), x),
  broadcastTo: (x) => arrays.broadcastTo(x, [4, 2, 3]),
  reshape: (x) => arrays.reshape(x, [3, 2]),
  transpose: (x) => arrays.transpose(x),
  flip: (x) => arrays.flip(x),
  concatenate: (x) => arrays.concatenate([x, arrays.sin(x)]),
  stack: (x) => arrays.stack([x, arrays.sin(x)], { axis: 1 }),
  expandDims: (x) => arrays.expandDims(x, { axis: 1 }),
  squeeze: (x) => arrays.squeeze(arrays.reshape(x, [1, 6]), { axis: 0 }),
  pad: (x) =>
    arrays.pad(x, [
      [1, 0],
      [0, 2],
    ]),
  slice: (x) => arrays.slice(x, [null, [0, 3, 2]]),
  dynamicSlice: (x) => arrays.dynamicSlice(x, [arrays.array(1, "i32"), 0], [1, 2]),
  dynamicUpdateSlice: (x) => arrays.dynamicUpdateSlice(x, weights([1, 2]), [0, 1]),
  take: (x) => arrays.take(x, indices(1, 1, 0)),
  takeAlongAxis: (x) => arrays.takeAlongAxis(x, arrays.reshape(indices(2, 0), [2, 1]), { axis: 1 }),
  addAt: (x) => arrays.addAt(x, indices(0, 0), arrays.sin(x)),
  setAt: (x) => arrays.setAt(x, indices(1), weights([1, 3])),
  sum: (x) => arrays.sum(x, { axis: 0 }),
  prod: (x) => arrays.prod(x, { axis: 1 }),
  max: (x) => arrays.max(x, { axis: 1 }),
  min: (x) => arrays.min(x, { axis: 0, keepDims: true }),
  mean: (x) => arrays.mean(x, { axis: 1 }),
  variance: (x) => arrays.variance(x),
  logsumexp: (x) => arrays.logsumexp(x, { axis: 1 }),
  softmax: (x) => arrays.softmax(x),
  matmul: (x) => arrays.matmul(x, arrays.transpose(x)),
  einsum: (x) => arrays.einsum("ij,kj->ik", x, arrays.sin(x)),
  sort: (x) => arrays.sort(x, { axis: 1 }),
  topK: (x) => arrays.topK(x, 2)[0],
  cumsum: (x) => arrays.cumsum(x, { axis: 1 }),
  cumprod: (x) => arrays.cumprod(x, { axis: 1, reverse: true }),
  cummax: (x) => arrays.cummax(x, { axis: 0 }),
  cummin: (x) => arrays.cummin(x, { axis: 0 }),
  associativeScan: (x) => arrays.associativeScan(arrays.mul, x, { axis: 1 }),
  cond: (x) =>
    arrays.cond(
      arrays.less(arrays.sum(x), 100),
      () => arrays.sin(x),
      () => x,
    ),
  switchCase: (x) => arrays.switchCase(arrays.array(1, "i32"), [() => x, () => arrays.sin(x)]),
  scan: (x) =>
    arrays.scan(
      (carry: F64, each: F64) => [arrays.mul(carry, each), carry],
      numbers(1, 1, 1),
      x,
    )[0],
  jit: (x) => arrays.jit((each: F64) => arrays.sin(each))(x),
  vmap: (x) => arrays.vmap((row: F64) => arrays.softmax(row))(x),
  checkpoint: (x) => arrays.checkpoint((each: F64) => arrays.sin(arrays.mul(each, each)))(x),
  checkpointName: (x) => arrays.sin(arrays.checkpointName(x, "x")),
  customVjp: (x) =>
    arrays.customVjp(
      (each: F64) => arrays.sin(each),
      (each: F64) => [arrays.sin(each), each] as const,
      (each: F64, cotangent: F64) => [arrays.mul(cotangent, arrays.cos(each))],
    )(x),
  grad: (x) => arrays.grad((each: F64) => arrays.sum(arrays.pow(each, 3)))(x),
  valueAndGrad: (x) => arrays.valueAndGrad((each: F64) => arrays.sum(arrays.sin(each)))(x)[1],
  jvp: (x) => arrays.jvp((each: F64) => arrays.sin(each), [x], [x])[1],
  vjp: (x) => arrays.vjp((each: F64) => arrays.sin(each), x)[1](x)[0],
  scope: (x) => arrays.scope(() => arrays.sin(x)),
  mapTree: (x) => arrays.mapTree({ x }, (leaf) => arrays.sin(leaf)).x,
  "nn.relu": (x) => nn.relu(arrays.sub(x, 0.5)),
  "nn.gelu": (x) => nn.gelu(x),
  "nn.silu": (x) => nn.silu(x),
  "nn.softplus": (x) => nn.softplus(x),
  "nn.logSoftmax": (x) => nn.logSoftmax(x),
  "nn.layerNorm": (x) => nn.layerNorm(x, numbers(1, 2, 3), numbers(0, 1, 0)),
  "nn.batchNorm": (x) => nn.batchNorm(x, numbers(1, 2, 3), numbers(0, 1, 0))[0],
  "nn.conv": (x) => nn.conv(arrays.reshape(x, [1, 3, 2, 1]), weights([2, 2, 1, 2])),
  "nn.maxPool": (x) => nn.maxPool(arrays.reshape(x, [1, 3, 2, 1]), [2, 2]),
  "nn.avgPool": (x) => nn.avgPool(arrays.reshape(x, [1, 3, 2, 1]), [2, 1]),
  "nn.attention": (x) => {
    const heads = arrays.reshape(x, [1, 3, 1, 2]);
    return nn.attention(heads, heads, arrays.sin(heads));
  },
  "nn.crossEntropy": (x) => nn.crossEntropy(x, indices(2, 0)),
  "nn.sgd": (x) => nn.sgd(x, arrays.sin(x), { learningRate: 0.1 }),
};
