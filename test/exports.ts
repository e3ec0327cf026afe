/**
 * Why a function of an entry lacks what `exports.test.ts` asks of it, a line a function:
 *
 *   compileAhead: { matrix: host },          it computes nothing on a device, so the device suite has no case of it
 *
 * A reason goes as soon as the function has what it lacked; the test says so.
 */

/** What a function must have: the test says of each where it belongs. */
export type Aspect =
  | "page"
  | "table"
  | "example"
  | "badCalls"
  | "gradient"
  | "matrix"
  | "benchmark";

export interface Reasons {
  readonly [name: string]: { readonly [A in Aspect]?: string };
}

const host = "runs on the host alone, so that devices cannot differ";
const fragment = "shown on its page in a fragment; no whole program yet";

export const languageReasons: Reasons = {
  bankConflicts: { matrix: host },
  blockSync: { example: fragment },
  blockedLayout: { matrix: host },
  broadcastLayout: { matrix: host },
  castStochastic: { example: fragment },
  clusterArrive: { example: fragment },
  clusterWait: { example: fragment },
  coalescedLayout: { matrix: host },
  commitGlobal: { example: fragment },
  compileAhead: { matrix: host },
  concatenate: { example: fragment },
  convertValue: { matrix: host },
  debugBreak: { matrix: "changes no result; tested by its own unit tests" },
  drawLayoutText: { matrix: host },
  drawProfiles: { matrix: host },
  drawRegisterLayout: { matrix: host },
  drawRelayout: { matrix: host },
  drawRelayoutText: { matrix: host },
  drawSharedLayout: { matrix: host },
  drawSharedText: { matrix: host },
  encodeFloat: { matrix: host },
  formatArray: { matrix: host },
  formatScaledArray: { matrix: host },
  formatLeaks: { example: fragment, matrix: host },
  fromNested: { matrix: host },
  holders: { matrix: host },
  isOperation: {
    page: "tells operations from kernels; its comment is all there is to say",
    example: fragment,
    matrix: host,
  },
  kernelFromCompiled: { matrix: host },
  launchNextKernel: { example: fragment },
  loadKernel: { example: fragment, matrix: host },
  mmaFragment: { matrix: host },
  packElements: { matrix: host },
  parseLayout: { matrix: host },
  parseSharedLayout: { matrix: host },
  parseTmemLayout: { matrix: host },
  placementReport: { matrix: host },
  planRelayout: { matrix: host },
  prefetch: { example: fragment },
  profileTrace: { example: fragment, matrix: host },
  reduceLayout: { matrix: host },
  reduceWith: { example: fragment },
  registersPerLane: { matrix: host },
  relayoutCost: { matrix: host },
  replication: { matrix: host },
  scaledNumbers: { matrix: host },
  setRegisters: {
    example: fragment,
    matrix: "changes no result; products by warp roles set registers",
  },
  sliceView: { matrix: host },
  stridedLayout: { matrix: host },
  takeAlong: { example: fragment },
  threadIndex: { example: fragment },
  tiling: { matrix: host },
  tmemPlace: { matrix: host },
  toFloat32: { matrix: host },
  toElements: { matrix: host },
  transposeLayout: { matrix: host },
  transposeView: { matrix: host },
  pingPong: { example: fragment },
  union: { example: fragment },
  unpackElements: { matrix: host },
  waitForPreviousKernel: { example: fragment },
  wholeView: { matrix: host },
  tcgen05Copy: { example: fragment, matrix: "of sm_100a alone; in test/tensor-memory.test.ts" },
};

const inBench = "its results are checked by its benchmark on a GPU (bench/gpu)";
const pointwise = "a function of tiles that `map` applies; the matrix has the ops it is made of";
const onHosts = "held against a reference on the simulator and the emulator; no case on a GPU yet";
const asMuch = (of: string): string => `reads and writes as ${of} does, which is measured`;

/** Operations whose derivative is that of a function of arrays, which test/arrays/gradients.ts holds. */
export const inArrays: { readonly [operation: string]: string } = {
  "activations.relu": "nn.relu",
  "activations.sigmoid": "sigmoid",
  "activations.silu": "nn.silu",
  "activations.gelu": "nn.gelu",
  cast: "astype",
  concatenate: "concatenate",
  crossEntropy: "nn.crossEntropy",
  gather: "take",
  matmul: "matmul",
  pad: "pad",
  permute: "transpose",
  reduce: "sum",
  scan: "cumsum",
  scatter: "addAt",
  slice: "slice",
  sort: "sort",
  topK: "topK",
};

const ownFunction =
  "of a function of the caller's own, whose derivative `fromKernel` takes from what it means";
const codes = "gives or takes codes of few bits, which derivatives take for constants";
const drawn = "draws from a key, which has no derivative";
const discrete = "gives places, counts or words, which have no derivative";
const fewBits = "of weights in few bits or without zeros, which are made after training";

export const kernelReasons: Reasons = {
  "activations.gelu": { matrix: pointwise },
  "activations.geluTanh": {
    gradient: "a function of tiles; `fromKernel` takes its derivative from what it means",
    badCalls: "called in a loop over all activations",
    matrix: pointwise,
    benchmark: asMuch("activations.gelu"),
  },
  "activations.relu": { matrix: pointwise, benchmark: asMuch("activations.gelu") },
  "activations.sigmoid": { matrix: pointwise, benchmark: asMuch("activations.gelu") },
  argReduce: { gradient: discrete, benchmark: asMuch("reduce") },
  argsort: { gradient: discrete, matrix: onHosts, benchmark: asMuch("sort") },
  bincount: { gradient: discrete, benchmark: asMuch("histogram") },
  compress24: { gradient: fewBits, matrix: onHosts },
  concatenate: { benchmark: asMuch("copy") },
  copy: { gradient: "its own gradient" },
  dequantizeWeights: { gradient: fewBits, matrix: onHosts },
  dropout: { gradient: "its own gradient, with the same key" },
  expand24: { gradient: fewBits, matrix: onHosts },
  fill: { gradient: "takes no array" },
  gated: { gradient: ownFunction },
  histogram: { gradient: discrete },
  layerNormBackward: { matrix: inBench },
  logSoftmax: { benchmark: asMuch("softmax") },
  logSoftmaxBackward: { matrix: onHosts, benchmark: asMuch("softmax") },
  map: { gradient: ownFunction },
  scaledMatmul: {
    gradient: "`nn.scaledDotGeneral` of arrays, whose gradients are such products",
    benchmark: asMuch("matmul"),
  },
  packWeights: { gradient: fewBits, matrix: onHosts, benchmark: asMuch("copy") },
  pad: { benchmark: asMuch("copy") },
  pagedAttention: { gradient: "a step of generating text, of which nobody takes derivatives" },
  poolBackward: { benchmark: "not measured yet" },
  quantize: { gradient: "rounds to few bits, which has no derivative" },
  quantizeBlocks: {
    gradient: "rounds to few bits, which has no derivative; `nn.fakeQuantize` has one",
    matrix: onHosts,
  },
  quantized: { gradient: fewBits, matrix: "a description of weights, which computes nothing" },
  quantizeWeights: { gradient: fewBits, matrix: onHosts },
  raggedDot: {
    gradient: "`raggedDot` with b turned, and `raggedOuter`: see docs/kernels-ragged.md",
  },
  raggedOuter: { gradient: "two products by `raggedDot`" },
  "random.bernoulli": { gradient: drawn, benchmark: asMuch("random.uniform") },
  "random.bits": { gradient: drawn },
  "random.categorical": { gradient: drawn, benchmark: "not measured yet" },
  "random.normal": { gradient: drawn },
  "random.permutation": {
    gradient: drawn,
    matrix: onHosts,
    benchmark: "a sort of random words: see sort",
  },
  "random.uniform": { gradient: drawn },
  reduceWith: { gradient: ownFunction, benchmark: asMuch("reduce") },
  rmsNormBackward: { matrix: inBench },
  rotary: { gradient: "itself, with −sin" },
  scanWith: { gradient: ownFunction },
  searchSorted: { gradient: discrete, benchmark: "not measured yet" },
  segmentReduce: {
    gradient: "that of sums is `gather`; of products and extremes there is none yet",
    matrix: onHosts,
    benchmark: "not measured yet",
  },
  softmaxBackward: { benchmark: asMuch("softmax") },
  sparse24: { gradient: fewBits, matrix: "a description of weights, which computes nothing" },
  unique: { gradient: discrete },
};

const noFloats = "its results are no floats";
const makes = "takes no array of floats";
const places = "takes or gives places, which have no derivative";

export const arrayReasons: Reasons = {
  all: { gradient: noFloats },
  any: { gradient: noFloats },
  arange: { gradient: makes },
  argmax: { gradient: places },
  argmin: { gradient: places },
  argsort: { gradient: places },
  array: { gradient: makes },
  bitcast: { gradient: noFloats },
  bitwiseAnd: { gradient: noFloats },
  bitwiseOr: { gradient: noFloats },
  bitwiseXor: { gradient: noFloats },
  broadcastShapes: { gradient: makes },
  equal: { gradient: noFloats },
  fromKernel: {
    gradient: "its derivative is that of its meaning, or given with it; checkMeaning compares them",
  },
  greater: { gradient: noFloats },
  greaterEqual: { gradient: noFloats },
  iota: { gradient: makes },
  less: { gradient: noFloats },
  lessEqual: { gradient: noFloats },
  logicalNot: { gradient: noFloats },
  lower: { gradient: "gives text" },
  "nn.dequantizeBlocks": { gradient: codes },
  "nn.fakeQuantize": {
    gradient: "straight-through, which src/arrays/scaled.test.ts holds: not that of its steps",
  },
  "nn.quantizeBlocks": { gradient: codes },
  "nn.scaledDotGeneral": {
    gradient:
      "of quantised arrays, which src/arrays/scaled-products.test.ts holds: not that of its steps",
  },
  "nn.scaledMatmul": { gradient: codes },
  "nn.scaledArray": { gradient: codes },
  "nn.withScaleLayout": { gradient: codes },
  "nn.adamw": { gradient: "a step of training, of which nobody takes derivatives" },
  notEqual: { gradient: noFloats },
  oneHot: { gradient: makes },
  ones: { gradient: makes },
  "random.bernoulli": { gradient: drawn },
  "random.bits": { gradient: drawn },
  "random.categorical": { gradient: drawn },
  "random.foldIn": { gradient: drawn },
  "random.gumbel": { gradient: drawn },
  "random.key": { gradient: drawn },
  "random.normal": { gradient: drawn },
  "random.permutation": { gradient: drawn },
  "random.randint": { gradient: drawn },
  "random.split": { gradient: drawn },
  "random.uniform": { gradient: drawn },
  shiftLeft: { gradient: noFloats },
  shiftRight: { gradient: noFloats },
  stopGradient: {
    gradient: "zero by definition, which src/arrays/derivatives.test.ts holds",
  },
  useDevice: { gradient: "chooses where programs run" },
  whileLoop: {
    gradient:
      "going backwards needs a count of trips that its condition shows; tests of derivatives have such loops",
  },
  zeros: { gradient: makes },
};
