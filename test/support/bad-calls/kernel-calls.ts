/** Calls of `tilewright/kernels`: each takes one object, which is given whole and field by field. */
import * as kernels from "tilewright/kernels";
import {
  tensor,
  bf16,
  bool,
  f16,
  f32,
  f4e2m1fn,
  f8e4m3fn,
  f8e8m0fnu,
  i32,
  i4,
  mxfp4,
  u32,
  u8,
} from "tilewright";
import { fromBody, given } from "./bad-call.ts";
import type { BadCall, Untyped } from "./bad-call.ts";
import { inKernel } from "./surroundings.ts";
import { numberTakes, options, parameter } from "./junk.ts";
import type { Parameter } from "./junk.ts";

const exported = kernels as unknown as { readonly [name: string]: Untyped | undefined };

interface Fields {
  readonly [field: string]: Parameter;
}

const namespaces = { random: kernels.random } as unknown as {
  readonly [name: string]: { readonly [name: string]: Untyped | undefined };
};

function named(name: string): Untyped {
  const [first = "", second] = name.split(".");
  const found = second === undefined ? exported[first] : namespaces[first]?.[second];
  if (found === undefined) throw new Error(`there is no export ${name}`);
  return found;
}

/** The call with its object replaced, and with each of its fields. */
function ofFields(name: string, fields: Fields): readonly BadCall[] {
  const call = named(name);
  const keys = Object.keys(fields);
  const objectOf = (values: readonly unknown[]): object =>
    Object.fromEntries(keys.map((key, at) => [key, values[at]]));
  const parameters = Object.values(fields);
  const whole = parameter(() => objectOf(parameters.map(({ valid }) => valid())));
  return [
    { name, of: call, parameters: [whole], call },
    {
      name: `${name} by field`,
      parameters,
      call: (...values) => call(objectOf(values)),
    },
  ];
}

/** Fields that may be left out. */
const optional = (valid: () => unknown, ...takes: Parameter["takes"]): Parameter =>
  parameter(valid, "undefined", ...takes);

const format = parameter(() => f32);
const matrix = parameter(() => tensor(f32, [8, 64]));
const optionalFormat = optional(() => f16);
const axis = optional(() => -1, "negative", "zero");
const generator = optional(() => "rbg");
const flag = optional(() => true, "boolean");
const norm: Fields = {
  x: matrix,
  residual: optional(() => tensor(f32, [8, 64])),
  scale: optional(() => f32),
  epsilon: optional(() => 1e-3, "zero", "fraction", "huge", "infinite"),
  out: optionalFormat,
  statistics: flag,
  quantize: optional(() => ({ format: mxfp4 })),
};

const storedWeights: Fields = {
  x: format,
  b: parameter(() => kernels.quantized(i4, [256, 64], { scale: bf16 })),
};

/** What is combined by functions of one's own. */
const ofOwn: Fields = {
  inputs: parameter(() => ({ x: tensor(f32, [8, 64]) })),
  load: parameter(() => ({ x }: { readonly x: unknown }) => ({ sum: x })),
  combine: parameter(
    () => (left: { readonly sum: { add: Untyped } }, right: { readonly sum: unknown }) => ({
      sum: left.sum.add(right.sum),
    }),
  ),
  identity: parameter(() => ({ sum: 0 })),
  finish: optional(() => (state: unknown) => state, "function"),
};

const attended: Fields = {
  q: parameter(() => bf16),
  k: parameter(() => bf16),
  v: parameter(() => bf16),
  causal: flag,
  window: optional(() => ({ left: 3 }), "object", "bare"),
  bias: optional(() => undefined),
  mask: optional(
    () =>
      ({ row, column }: { readonly row: { ge: Untyped }; readonly column: unknown }) =>
        row.ge(column),
    "function",
  ),
  softCap: optional(() => 30, "fraction", "huge"),
  scale: optional(() => 0.5, "zero", "negative", "fraction", "huge"),
};

/** The same, where its object may be left out. */
function withDefault(call: BadCall, ...takes: BadCall["parameters"][number]["takes"]): BadCall {
  const parameters = call.parameters.map((each) => ({
    ...each,
    takes: [...each.takes, "undefined" as const, ...takes],
  }));
  return { ...call, parameters };
}

const perAxis = optional(() => 1, "numbers");

function convolved(name: string): Fields {
  return {
    x: parameter(() => tensor(bf16, [2, 8, 8, 16])),
    w: parameter(() => tensor(bf16, [8, 3, 3, 16])),
    channels: optional(() => "last"),
    strides: perAxis,
    dilation: perAxis,
    padding: optional(() => 1, "zero", "numbers"),
    groups: optional(() => 1),
    ...(name === "convolution" && { out: optional(() => f32) }),
    precision: optional(() => undefined),
  };
}

const pooled: Fields = {
  x: parameter(() => tensor(bf16, [2, 8, 8, 16])),
  kind: parameter(() => "max"),
  window: parameter(() => 2, "numbers"),
  channels: optional(() => "last"),
  strides: perAxis,
  dilation: perAxis,
  padding: optional(() => 1, "zero", "numbers"),
  includePadding: flag,
};

export const kernelCalls: readonly BadCall[] = [
  ...ofFields("cast", { x: format, out: parameter(() => f16) }),
  ...ofFields("copy", { x: matrix, out: optional(() => tensor(f32, [8, 64])) }),
  ...ofFields("fill", { out: format, value: parameter(() => 1, ...numberTakes) }),
  {
    name: "map",
    parameters: [
      parameter(() => ({ x: f32 })),
      parameter(() => ({ x }: { readonly x: unknown }) => ({ out: x })),
      options(() => ({ name: "same" })),
    ],
    of: kernels.map,
    call: named("map"),
  },
  ...ofFields("reduce", {
    x: matrix,
    axis: optional(() => [1], "list", "numbers", "negative", "zero"),
    combine: optional(() => "max"),
    keepDims: flag,
    inputs: optional(() => ({}), "object", "bare"),
    load: optional(
      () =>
        ({ x }: { readonly x: unknown }) =>
          x,
      "function",
    ),
    epilogue: optional(() => (result: unknown) => result, "function"),
    out: optional(() => f32),
  }),
  ...ofFields("reduceWith", {
    ...ofOwn,
    axis: optional(() => [1], "list", "numbers", "negative", "zero"),
    keepDims: flag,
  }),
  ...ofFields("scanWith", { ...ofOwn, axis, reverse: flag }),
  ...ofFields("argReduce", { x: matrix, find: parameter(() => "min"), axis, keepDims: flag }),
  ...ofFields("scan", {
    x: matrix,
    axis,
    combine: optional(() => "sum"),
    reverse: flag,
    out: optional(() => f32),
  }),
  ...["softmax", "logSoftmax"].flatMap((name) =>
    ofFields(name, { x: matrix, axis, out: optionalFormat }),
  ),
  ...["softmaxBackward", "logSoftmaxBackward"].flatMap((name) =>
    ofFields(name, { out: matrix, dOut: optional(() => tensor(f32, [8, 64])), axis }),
  ),
  ...ofFields("crossEntropy", {
    logits: matrix,
    gradient: flag,
    dLoss: optional(() => tensor(f32, [8])),
    ignored: optional(() => 3, "negative", "zero", "huge"),
  }),
  ...ofFields("attention", {
    ...attended,
    out: optional(() => bf16),
    sinks: optional(() => f32),
    score: optional(
      () =>
        ({ score }: { readonly score: unknown }) =>
          score,
      "function",
    ),
    logSumExp: flag,
    // What it says is looked at when sizes are known.
    configuration: optional(() => undefined, "object", "bare"),
  }),
  ...ofFields("attentionBackward", attended),
  ...ofFields("pagedAttention", {
    q: parameter(() => bf16),
    pages: parameter(() => ({ k: bf16, v: bf16 })),
    table: optional(() => i32),
    lengths: optional(() => i32),
    out: optional(() => bf16),
    causal: flag,
    window: optional(() => ({ left: 3 }), "object", "bare"),
    softCap: optional(() => 30, "fraction", "huge"),
    scale: optional(() => 0.5, "zero", "negative", "fraction", "huge"),
    scales: flag,
    logSumExp: flag,
    // What it says is looked at when sizes are known.
    configuration: optional(() => undefined, "object", "bare"),
  }),
  ...ofFields("gated", {
    x: parameter(() => bf16),
    activation: parameter(() => "silu", "function"),
  }),
  ...ofFields("rotary", {
    x: parameter(() => tensor(f32, [8, 2, 64])),
    cos: parameter(() => f32),
    sin: parameter(() => f32),
    axis: optional(() => 0, "zero", "negative"),
  }),
  ...ofFields("gather", {
    x: matrix,
    indices: parameter(() => tensor(i32, [5])),
    axis,
  }),
  ...ofFields("scatter", {
    out: matrix,
    indices: parameter(() => tensor(i32, [5])),
    combine: parameter(() => "max"),
    deterministic: optional(() => false, "boolean"),
  }),
  ...ofFields("segmentReduce", {
    x: matrix,
    segments: parameter(() => tensor(i32, [8])),
    count: parameter(() => 5),
    combine: optional(() => "max"),
    sorted: flag,
  }),
  ...ofFields("concatenate", {
    parts: parameter(() => ({ first: tensor(f32, [8, 64]), second: tensor(f32, [8, 64]) })),
    axis,
  }),
  ...ofFields("pad", {
    x: matrix,
    before: parameter(() => [1, 0]),
    after: parameter(() => [1, 0]),
    value: optional(() => 1, ...numberTakes),
  }),
  ...ofFields("permute", { x: matrix, permutation: parameter(() => [1, 0]) }),
  ...ofFields("slice", {
    x: matrix,
    starts: parameter(() => [0, 8]),
    sizes: parameter(() => [4, 8]),
    steps: optional(() => [1, 2]),
  }),
  ...ofFields("dropout", { x: format, rate: parameter(() => 0.5, "zero"), generator }),
  ...["layerNormBackward", "rmsNormBackward"].flatMap((name) =>
    ofFields(name, {
      x: matrix,
      dOut: optional(() => tensor(f32, [8, 64])),
      scale: optional(() => f32),
      ...(name === "layerNormBackward" && { bias: flag }),
    }),
  ),
  ...ofFields("quantize", {
    x: matrix,
    out: parameter(() => f8e4m3fn),
    groupSize: optional(() => 32),
  }),
  ...ofFields("quantizeBlocks", {
    x: matrix,
    format: parameter(() => mxfp4),
    axis: optional(() => 1, "negative", "zero"),
    scaleRounding: optional(() => "floor"),
    out: optional(() => u8),
  }),
  ...ofFields("histogram", {
    x: format,
    bins: parameter(() => 8),
    low: parameter(() => -1, "negative", "zero", "fraction"),
    high: parameter(() => 2, "zero", "fraction", "huge"),
    weights: optional(() => f32),
  }),
  ...ofFields("bincount", {
    x: parameter(() => i32),
    length: parameter(() => 8),
    weights: optional(() => f32),
  }),
  ...ofFields("searchSorted", {
    sorted: format,
    queries: optional(() => f32),
    side: optional(() => "right"),
  }),
  ...ofFields("sort", {
    x: matrix,
    axis,
    descending: flag,
    indices: flag,
    payloads: optional(() => ({ weights: tensor(f32, [8, 64]) }), "object", "bare"),
    configuration: optional(() => ({ warps: 4, items: 4 })),
  }),
  ...ofFields("argsort", { x: matrix, axis, descending: flag }),
  ...ofFields("topK", {
    x: matrix,
    k: parameter(() => 5),
    axis,
    largest: flag,
    payloads: optional(() => ({ weights: tensor(f32, [8, 64]) }), "object", "bare"),
  }),
  ...ofFields("unique", {
    x: matrix,
    size: parameter(() => 5),
    counts: flag,
    indices: flag,
    inverse: flag,
    fill: optional(() => 1, ...numberTakes),
  }),
  ...ofFields("random.bits", { out: optional(() => u32), generator }).map((each) =>
    each.name === "random.bits" ? withDefault(each, "object", "bare") : each,
  ),
  ...ofFields("random.uniform", {
    out: format,
    low: optional(() => -1, "negative", "zero", "fraction"),
    high: optional(() => 2, "zero", "fraction", "huge"),
    generator,
  }),
  ...ofFields("random.normal", { out: format, generator }),
  ...ofFields("random.permutation", { out: optional(() => i32), generator }).map((each) =>
    each.name === "random.permutation" ? withDefault(each, "object", "bare") : each,
  ),
  ...ofFields("random.categorical", { logits: format, generator }),
  ...ofFields("random.bernoulli", {
    out: optional(() => bool),
    probability: parameter(() => 0.5, "zero"),
    generator,
  }),
  ...ofFields("pool", { ...pooled, tap: flag }),
  ...ofFields("poolBackward", pooled),
  ...["convolution", "convolutionBackwardX", "convolutionBackwardW"].flatMap((name) =>
    ofFields(name, convolved(name)),
  ),
  ...Object.entries(kernels.activations).map(([name, activation]): BadCall => ({
    name: `activations.${name}`,
    of: activation,
    parameters: [parameter(given(({ tile }) => tile)), options()],
    call: (...values) => {
      inKernel((inBody) =>
        (activation as Untyped)(...values.map((value) => fromBody(value, inBody))),
      );
    },
  })),
  ...ofFields("raggedDot", {
    a: parameter(() => bf16),
    b: parameter(() => bf16),
    groupSizes: optional(() => i32),
    out: optional(() => f32),
    inputs: optional(() => ({}), "object", "bare"),
    epilogue: optional(
      () =>
        ({ sums }: { readonly sums: unknown }) =>
          sums,
      "function",
    ),
    precision: optional(() => undefined),
    accumulation: optional(() => undefined),
    configuration: optional(() => undefined, "object", "bare"),
  }),
  ...ofFields("raggedOuter", {
    a: parameter(() => bf16),
    b: parameter(() => bf16),
    groupSizes: optional(() => i32),
    out: optional(() => f32),
    precision: optional(() => undefined),
    accumulation: optional(() => undefined),
  }),
  ...ofFields("rmsNorm", norm),
  ...ofFields("layerNorm", { ...norm, bias: optional(() => f32) }),
  {
    name: "quantized",
    of: kernels.quantized,
    parameters: [
      parameter(() => i4),
      parameter(() => [256, 64]),
      parameter(() => ({ groupSize: 128, scale: bf16 })),
    ],
    call: kernels.quantized as unknown as Untyped,
  },
  {
    name: "sparse24",
    of: kernels.sparse24,
    parameters: [parameter(() => bf16), parameter(() => [256, 64])],
    call: kernels.sparse24 as unknown as Untyped,
  },
  ...Object.entries({ compress24: kernels.compress24, expand24: kernels.expand24 }).map(
    ([name, of]) => ({
      ...{ name, of, call: of as unknown as Untyped },
      parameters: [parameter(() => kernels.sparse24(bf16, [256, 64]))],
    }),
  ),
  ...ofFields("quantizeWeights", storedWeights),
  ...ofFields("dequantizeWeights", storedWeights),
  ...ofFields("scaledMatmul", {
    a: parameter(() => "mxfp4"),
    b: parameter(() => "mxfp8e4m3"),
    batched: flag,
    grouped: optional(() => false, "boolean"),
    scaleLayout: optional(() => ({ a: "plain" }), "object", "bare"),
    globalScale: flag,
    out: optional(() => f32),
    inputs: optional(() => ({}), "object", "bare"),
  }),
  ...ofFields("packWeights", {
    b: parameter(() =>
      kernels.quantized(f4e2m1fn, [256, 64], { groupSize: 32, scale: f8e8m0fnu, as: bf16 }),
    ),
    scale: optional(() => f8e8m0fnu),
    scaleLayout: optional(() => "plain"),
  }),
  ...ofFields("matmul", {
    a: parameter(() => bf16),
    b: parameter(() => bf16),
    out: optional(() => f32),
    inputs: optional(() => ({}), "object", "bare"),
    epilogue: optional(
      () =>
        ({ sums }: { readonly sums: unknown }) =>
          sums,
      "function",
    ),
    prologue: optional(() => undefined, "object", "bare"),
    precision: optional(() => undefined),
    accumulation: optional(() => undefined),
    // What it says is looked at when sizes are known.
    configuration: optional(() => undefined, "object", "bare"),
  }),
];
