/** Forms of what threads compute for themselves: narrow conversions, pairs of f32, wide accesses, reductions of a warp. */
import type { FormGroup } from "./form.ts";

const pairs = (root: string, rounding: string, sources: string): string =>
  `${root} | ${rounding} ftz? f32x2 | r64 ${sources}`;

/** `f32` sums of a narrower operand. */
const mixed = (root: string, rounding: string, sources: string): readonly string[] =>
  ["f16", "bf16"].map((type) => `${root} | ${rounding} sat? f32 ${type} | d32 ${sources}`);

const rounded = "rn/rz/rm/rp";

/** Everything that says how an access is ordered and cached. */
const access = (kinds: string, caches: string): string =>
  `weak/volatile/relaxed/${kinds}? cta/cluster/gpu/sys? global? ${caches}? L1::evict_normal/L1::evict_unchanged/L1::evict_first/L1::evict_last/L1::no_allocate? L2::evict_normal/L2::evict_first/L2::evict_last?`;
const load = `${access("acquire", "ca/cg/cs/lu/cv")} nc? L2::64B/L2::128B/L2::256B?`;
const store = access("release", "wb/cg/cs/wt");

const wideAccesses = [
  ["v8 b32/u32/s32/f32", "{d32_*8}"],
  ["v4 b64/u64/s64/f64", "{d64_*4}"],
].flatMap(([types = "", vector = ""]) => [
  `ld | ${load} ${types} | ${vector} [s]`,
  `ld | ${load} L2::cache_hint ${types} | ${vector} [s] b64`,
  `st | ${store} ${types} | [s] ${vector}`,
  `st | ${store} L2::cache_hint ${types} | [s] ${vector} b64`,
]);

const smallFloats = "e4m3x2/e5m2x2";
const eightBitConversions = [
  `cvt | rn satfinite relu? ${smallFloats} f32 | d16 b32 b32`,
  `cvt | rn satfinite relu? ${smallFloats} f16x2 | d16 b32`,
  `cvt | rn relu? f16x2 ${smallFloats} | d32 b16`,
];

const narrowFloats = "e2m3x2/e3m2x2";
const narrowConversions = [
  "cvt | rn satfinite relu? e2m1x2 f32 | d8 b32 b32",
  "cvt | rn satfinite relu? e2m1x2 f16x2 | d8 b32",
  "cvt | rn relu? f16x2 e2m1x2 | d32 r8",
  `cvt | rn satfinite relu? ${narrowFloats} f32 | d16 b32 b32`,
  `cvt | rn relu? f16x2 ${narrowFloats} | d32 b16`,
  "cvt | rz/rp satfinite? ue8m0x2 f32 | d16 b32 b32",
  "cvt | rz/rp satfinite? ue8m0x2 bf16x2 | d16 b32",
  "cvt | rn bf16x2 ue8m0x2 | d32 b16",
];

const stochasticConversions = [
  "cvt | rs relu? satfinite? f16x2/bf16x2 f32 | d32 b32 b32 r32",
  "cvt | rs relu? satfinite e2m1x4 f32 | d16 {b32*4} r32",
  "cvt | rs relu? satfinite e4m3x4/e5m2x4/e2m3x4/e3m2x4 f32 | d32 {b32*4} r32",
];

const matrices = "sync aligned";
const matrixSpace = "shared/shared::cta?";

export const arithmeticForms: readonly FormGroup[] = [
  {
    targets: "blackwell",
    since: "8.6",
    forms: [
      ...["add", "sub", "mul"].map((root) => pairs(root, `${rounded}?`, "r64 r64")),
      pairs("fma", rounded, "r64 r64 r64"),
      ...["add", "sub"].flatMap((root) => mixed(root, `${rounded}?`, "b16 b32")),
      ...mixed("fma", rounded, "b16 b16 b32"),
    ],
  },
  {
    targets: "blackwell",
    since: "8.8",
    forms: [
      ...wideAccesses,
      "max | ftz? NaN? abs? f32 | d32 b32 b32 b32",
      "min | ftz? NaN? abs? f32 | d32 b32 b32 b32",
    ],
  },
  {
    targets: "ampere",
    since: "7.0",
    forms: [
      "redux | sync add/min/max u32/s32 | r32 u32 u32",
      "redux | sync and/or/xor b32 | r32 u32 u32",
    ],
  },
  {
    targets: "scaledSums",
    since: "8.6",
    forms: ["redux | sync min/max abs? NaN? f32 | d32 b32 u32"],
  },
  { targets: "hopper", since: "7.8", forms: eightBitConversions },
  { targets: "ada", since: "8.1", forms: eightBitConversions },
  { targets: "accelerated", since: "8.6", forms: narrowConversions },
  { targets: "stochastic", since: "8.7", forms: stochasticConversions },
  {
    targets: "accelerated",
    since: "8.6",
    forms: [
      `ldmatrix | ${matrices} m8n16 x1/x2/x4 ${matrixSpace} b8x16 b6x16_p32/b4x16_p64 | {d32*N} [s]`,
      `ldmatrix | ${matrices} m16n16 x1/x2 trans ${matrixSpace} b8 | {d32*2N} [s]`,
      `ldmatrix | ${matrices} m16n16 x1/x2 trans ${matrixSpace} b8x16 b6x16_p32/b4x16_p64 | {d32*2N} [s]`,
      `stmatrix | ${matrices} m16n8 x1/x2/x4 trans ${matrixSpace} b8 | [s] {b32*N}`,
    ],
  },
  {
    targets: "registers",
    since: "8.0",
    forms: ["setmaxnreg | inc/dec sync aligned u32 | registers8"],
  },
];
