/** How attention is divided into tiles. */

/** wgmma and TMA: consumers of 64 rows each, over columns that a ring of `stages` brings. */
export interface WarpSpecializedAttention {
  /** Which kernel runs it. */
  readonly kernel: "warp-specialized";
  /** Warpgroups that compute. */
  readonly consumers: 1 | 2 | 3;
  /** A multiple of 16 from 32 to 256, of 32 for FP8. */
  readonly columns: number;
  /** Blocks of keys and values that there is room for. */
  readonly stages: 1 | 2 | 4;
  /** Blocks that share the tiles of rows; one for each tile or each processor by default. */
  readonly workers?: number;
  /** The order in which they take them; what suits the sizes by default. */
  readonly schedule?: AttentionSchedule;
}

/** Orders of tiles of rows, as `tile-scheduler.ts` has them; sequences with offsets are dealt by rows. */
export const attentionSchedules = ["linear", "paired", "longest-first"] as const;
export type AttentionSchedule = (typeof attentionSchedules)[number];

/** Blocks of one thread that read memory themselves. */
export interface PlainAttention {
  /** Which kernel runs it. */
  readonly kernel: "plain";
  /** Queries of a block. */
  readonly rows: 16 | 32 | 64 | 128;
  /** Keys of a step. */
  readonly columns: 16 | 32 | 64 | 128;
}

/** How `attention` is carried out. */
export type AttentionConfiguration = WarpSpecializedAttention | PlainAttention;

/** What there is to choose in each kernel. */
export const warpSpecializedSettings: readonly (keyof WarpSpecializedAttention)[] = [
  ...(["kernel", "consumers", "columns", "stages", "workers", "schedule"] as const),
];
export const plainSettings = ["kernel", "rows", "columns"] as const;

/** Rows of a consumer: those of one wgmma. */
export const consumerRows = 64;

/** Gradients on wgmma and TMA: blocks of 128 columns, over tiles of 64 rows. */
export interface WarpSpecializedGradients {
  /** Which kernel runs it. */
  readonly kernel: "warp-specialized";
}

/** Gradients by blocks of one thread: tiles of scores of so many rows and columns. */
export interface PlainGradients {
  /** Which kernel runs it. */
  readonly kernel: "plain";
  /** Queries of a step. */
  readonly rows: 16 | 32 | 64;
  /** Keys of a block. */
  readonly columns: 16 | 32 | 64;
}

/** How `attentionBackward` is carried out. */
export type GradientConfiguration = WarpSpecializedGradients | PlainGradients;
