/** Codes of tensor memory and of products that add up in it: TW230x. */
import { registerCodes } from "../entry.ts";

export const tensorMemoryCodes = registerCodes({
  TW2301: {
    title: "tile that tensor memory cannot hold",
    cause:
      "Tensor memory has 128 lanes, each a row of a tile: products of 128 rows fill them all, products of 64 rows half of each quarter.",
    example: "tmem(f32, [96, 64])",
    remedy: "make the tile 128 or 64 rows high, with axes for several tiles in front",
  },
  TW2302: {
    title: "window of tensor memory that is none",
    cause:
      "Warps reach the lanes of tensor memory by instructions that move whole rows of lanes. Windows are made of columns, and move as tiles.",
    example: "sums.at(slice(0, 64), all)  // sums is tmem(f32, [128, 256])",
    remedy: "take a slice of columns, load it, and take parts of the tile",
  },
  TW2303: {
    title: "formats that tcgen05Mma does not multiply",
    cause:
      "Tensor cores multiply formats of 8 and 16 bits and tf32, and add up in f32, f16 or i32.",
    example: "tcgen05Mma(sums, a, b)  // a is f32",
    remedy: "declare the operands as tf32, or cast them",
  },
  TW2304: {
    title: "operands of tcgen05Mma that do not fit together",
    cause:
      "The rows of a, the columns of b and the sums belong together, and so do the columns of a and the rows of b.",
    example: "tcgen05Mma(sums, a, b)  // [128, 256], [128, 64], [256, 64]",
    remedy: "transpose b, if it holds columns: b.transpose()",
  },
  TW2305: {
    title: "product that tcgen05Mma does not make",
    cause:
      "An instruction multiplies 64 or 128 rows by 8 to 256 columns, 16 at a time where there are 128 rows, and takes 32 bytes of each.",
    example: "tcgen05Mma(sums, a, b)  // [128, 8] by [8, 64] of bf16",
    remedy: "make k a multiple of 256 bits and the columns one of 16",
  },
  TW2306: {
    title: "access to tensor memory that no instruction makes",
    cause:
      "The shapes of loads and stores reach 32 lanes, or 16 of each half of a quarter, and a power of two of columns.",
    example: 'sums.load({ shape: "32x32b" })  // 64 rows',
    remedy: "leave the shape out, or take a window of a power of two of columns",
  },
  TW2307: {
    title: "access to tensor memory by fewer than four warps",
    cause:
      "A warp reaches the quarter of the lanes that its number in the warpgroup says: four warps have all rows.",
    example:
      "kernel({ warps: 2, scratch: { sums: tmem(f32, [128, 64]) } }, ({ sums }) => { sums.load(); })",
    remedy: "give the kernel threads of four warps or more",
  },
  TW2308: {
    title: "scales that do not fit a product",
    cause:
      "Scales are of narrow factors of 128 rows, f8e8m0fnu for each 32 along k, or of FP4 f8e4m3fn or f8e8m0fnu for each 16. They lie in atoms of 128 rows by 4 blocks: rows and blocks are filled up to these.",
    example: "tcgen05Mma(sums, a, b, { scales: [aScales, bScales] })  // aScales of 64 rows",
    remedy:
      "declare the scales as tmem(f8e8m0fnu, [128, 4], { scales: true }), with 128 more rows and 4 more blocks where the factor has more",
  },
  TW2309: {
    title: "pair of blocks that is none",
    cause:
      "Two blocks of a cluster make products together: those of ranks 2i and 2i + 1, neighbours along the cluster's last axis.",
    example: "tcgen05Mma(sums, a, b, { pair: true })  // no cluster",
    remedy: "give the kernel a cluster whose last axis has an even number of blocks, { half: 2 }",
  },
});
