/** Forms of products of a warp of 4-, 6- and 8-bit floats, with scales and without; `wgmma` is of sm_90a alone. */
import type { FormGroup } from "./form.ts";

const eightBits = "e4m3/e5m2";
const anyBits = "e4m3/e5m2/e2m3/e3m2/e2m1";
const whole = "sync aligned row col";

/** Sums of f32, or of f16 in half the registers. `metadata` is of sparse products. */
function plain(
  name: string,
  shape: string,
  types: string,
  [a, b, metadata = ""]: readonly string[],
) {
  return [
    `${name} | ${whole} kind::f8f6f4 ${shape} f32 ${types} ${types} f32 | {d32*4} ${a} ${b} {b32*4} ${metadata}`,
    `${name} | ${whole} kind::f8f6f4 ${shape} f16 ${types} ${types} f16 | {d32*2} ${a} ${b} {b32*2} ${metadata}`,
  ];
}

/** A scale with the bytes of the register and the threads that it may come from. */
const scales = (bytes: string): string => `{r32*1}+ ids:${bytes}:01 {r32*1}+ ids:${bytes}:0123`;

function scaled(
  name: string,
  modifiers: string,
  [types, scale]: readonly [types: string, scale: string],
  [b, metadata, bytes]: readonly [b: string, metadata: string, bytes: string],
): string {
  return `${name} | ${whole} block_scale ${modifiers} f32 ${types} ${types} f32 ${scale} | {d32*4} {b32*4} ${b} {b32*4} ${metadata} ${scales(bytes)}`;
}

const sparse = "mma.sp::ordered_metadata";
const metadata = "r32 i0..0";
const fourBits = "e2m1";

/** Of four bits, dense or sparse. */
function fourBitProducts(
  name: string,
  shape: string,
  b: string,
  behind: string,
): readonly string[] {
  return [
    scaled(name, `kind::mxf4 scale_vec::2X? ${shape}`, [fourBits, "ue8m0"], [b, behind, "02"]),
    scaled(name, `kind::mxf4nvf4 scale_vec::2X ${shape}`, [fourBits, "ue8m0"], [b, behind, "02"]),
    scaled(name, `kind::mxf4nvf4 scale_vec::4X ${shape}`, [fourBits, "ue4m3"], [b, behind, "0"]),
  ];
}

export const productForms: readonly FormGroup[] = [
  {
    targets: "accelerated",
    since: "8.6",
    forms: [
      ...plain("mma", "m16n8k32", eightBits, ["{b32*4}", "{b32*2}"]),
      ...plain("mma", "m16n8k16", eightBits, ["{b32*2}", "{b32*1}"]),
      `${sparse} | ${whole} kind::f8f6f4 m16n8k64 f32 ${eightBits} ${eightBits} f32 | {d32*4} {b32*4} {b32*4} {b32*4} ${metadata}`,
    ],
  },
  {
    targets: "blockScaled",
    since: "8.7",
    forms: [
      ...plain("mma", "m16n8k32", anyBits, ["{b32*4}", "{b32*2}"]),
      ...plain(sparse, "m16n8k64", anyBits, ["{b32*4}", "{b32*4}", metadata]),
      scaled(
        "mma",
        "kind::mxf8f6f4 scale_vec::1X? m16n8k32",
        [anyBits, "ue8m0"],
        ["{b32*2}", "", "0123"],
      ),
      scaled(
        sparse,
        "kind::mxf8f6f4 scale_vec::1X? m16n8k64",
        [anyBits, "ue8m0"],
        ["{b32*4}", metadata, "0123"],
      ),
      ...fourBitProducts("mma", "m16n8k64", "{b32*2}", ""),
    ],
  },
  {
    targets: "blockScaledExact",
    since: "8.7",
    forms: fourBitProducts(sparse, "m16n8k128", "{b32*4}", metadata),
  },
  {
    targets: "hopperOnly",
    since: "8.0",
    forms: ["fence", "commit_group", "wait_group", "mma_async"].map(
      (name) => `wgmma.${name} | * | *`,
    ),
  },
];
