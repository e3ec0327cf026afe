/** How attention to a paged cache is divided into tiles, and over the processors. */
export interface PagedConfiguration {
  /** Rows of a tile: heads that share one of k and v, of as many tokens of q as fit. 8 are of FP8 in one warp alone. */
  readonly rows: 8 | 16 | 64;
  /** Warps of a block, which is one program thread. */
  readonly warps: 1 | 2 | 4;
  /** Tokens of the cache in a tile. */
  readonly columns: 16 | 32 | 64 | 128;
  /** Tiles in flight. */
  readonly stages: 2 | 4 | 8;
  /** Into how many splits the tokens of all sequences are dealt, for each head of k and v. */
  readonly splits: number;
}
