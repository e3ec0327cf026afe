/** How a matrix product is carried out: which kernel, its tiles, and how often k is split. */

/** Columns of a tile of the persistent kernel. */
export const persistentColumns = [8, 16, 32, 64, 96, 128, 144, 160, 192, 224, 256] as const;

/** The kernels, each with what there is to choose in it. */
export type MatmulConfiguration =
  /** The persistent kernel on wgmma and TMA. */
  | {
      /** Which kernel runs it. */
      readonly kernel: "persistent";
      /** Program threads that multiply, 64 rows each. */
      readonly consumers: 1 | 2 | 4;
      /** Columns of a block's part of the result. */
      readonly columns: (typeof persistentColumns)[number];
      /** Pairs of tiles in flight. */
      readonly stages: number;
      /**
       * Whether tiles are whole, those of the last round split along k (`lang/pipeline/stream-k.ts`), or all of them multiplied in parts
       * that a launch of its own sums (`split-k.ts`).
       */
      readonly schedule: "tiles" | "stream-k" | "split-k";
      /** Whether rows of tiles go along columns of the result (`operands.ts`). */
      readonly swapAB: boolean;
      /** Blocks with tiles one below the other, each of which fetches its part of the columns for all of them. */
      readonly cluster: 1 | 2;
    }
  /** The plain kernel, which reads anything. */
  | {
      /** Which kernel runs it. */
      readonly kernel: "plain";
      /** Rows of a block's part of the result: 64 or 128 on GPUs. */
      readonly rows: number;
      /** Columns of a block's part of the result: 32, 64 or 128 on GPUs. */
      readonly columns: number;
      /** 16, 32, 64 or 128 on GPUs; 8 is of f64 alone. */
      readonly depth: number;
      /** Parts of k that are summed apart, and then together in a fixed order. */
      readonly splitK: number;
    }
  /** The kernel for few rows and weights in few bits (`skinny.ts`). */
  | {
      /** Which kernel runs it. */
      readonly kernel: "skinny";
      /** Rows of a block. */
      readonly rows: 8 | 16 | 32 | 64;
      /** Columns of each of its sixteen warps, of which four have theirs together where a block has 64. */
      readonly columns: 16 | 32 | 64;
      /** Into how many slices the warps of a block divide k: those that have the same columns take steps in turn (sliced-K). */
      readonly sliceK: 1 | 2 | 4;
      /** Steps along k in flight, of 128 elements; of 256 where slices have 16 columns of 4 bits. */
      readonly stages: number;
      /** As in the plain kernel. */
      readonly splitK: number;
    }
  /** The kernel for one row and weights by columns (`gemv.ts`). */
  | {
      /** Which kernel runs it. */
      readonly kernel: "gemv";
      /** Columns of a block. */
      readonly columns: 1 | 2 | 4;
      /** Warps of a block. */
      readonly warps: 1 | 2 | 4;
      /** Words of 16 bytes that a lane reads of each column at once. */
      readonly words: 1 | 2 | 4;
    };

export type PersistentConfiguration = Extract<MatmulConfiguration, { kernel: "persistent" }>;
export type PlainConfiguration = Extract<MatmulConfiguration, { kernel: "plain" }>;
export type SkinnyConfiguration = Extract<MatmulConfiguration, { kernel: "skinny" }>;
export type GemvConfiguration = Extract<MatmulConfiguration, { kernel: "gemv" }>;
/** Kernels that products of all formats have. */
export type TiledConfiguration = PersistentConfiguration | PlainConfiguration;

/** What there is to choose in each kernel. */
export const matmulSettings: {
  readonly [K in MatmulConfiguration["kernel"]]: readonly (keyof Extract<
    MatmulConfiguration,
    { kernel: K }
  >)[];
} = {
  persistent: ["kernel", "consumers", "columns", "stages", "schedule", "swapAB", "cluster"],
  plain: ["kernel", "rows", "columns", "depth", "splitK"],
  skinny: ["kernel", "rows", "columns", "sliceK", "stages", "splitK"],
  gemv: ["kernel", "columns", "warps", "words"],
};

/** The sizes of one product. */
export interface ProductSizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch: number;
}

/** Rows that a multiplying thread has, which is what wgmma has. */
export const threadRows = 64;
/** Bytes of a row of a tile in shared memory: the widest swizzle. */
export const rowBytes = 128;
