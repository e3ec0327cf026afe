/** What the threads of the warp-specialized gradients share: arrays, tiles and barriers, and where a block and its turns are. */
import type { Barrier, Ref, Scalar, Semaphore } from "../../lang/index.ts";
import type { AttentionForm } from "./dimensions.ts";
import type { Sequence } from "./packing.ts";
import type { ScoreRules } from "./scores.ts";
import { headOf } from "./block-mask.ts";
import type { Visit, Visits } from "./block-mask.ts";

export type Index = Scalar<"i32">;
export type Half = "bf16";

/** Tiles of q in shared memory, and of the scores that go with them. */
export const stages = 2;
export const registers = { copy: 24, consumer: 240 } as const;

export interface Refs {
  readonly q: Ref<Half>;
  readonly k: Ref<Half>;
  readonly v: Ref<Half>;
  readonly dOut: Ref<Half>;
  readonly rowValues: Ref<"f32">;
  readonly ranks: Ref<"i32">;
  readonly sums: Ref<"f32">;
  readonly dk: Ref<Half>;
  readonly dv: Ref<Half>;
  readonly tileK: Ref<Half>;
  readonly tileV: Ref<Half>;
  readonly tileQ: Ref<Half>;
  readonly tileOut: Ref<Half>;
  readonly tileRows: Ref<"f32">;
  readonly tileScores: Ref<Half>;
  /** Of consumers that have half of the rows of scores each. */
  readonly tileWeights: Ref<Half>;
  readonly tileSums: Ref<"f32">;
  readonly fullK: Barrier;
  readonly fullV: Barrier;
  readonly fullQ: Barrier;
  readonly fullOut: Barrier;
  readonly empty: Barrier;
  /** Where dOut has one tile alone. */
  readonly emptyOut: Barrier;
  readonly ready: Barrier;
  readonly fullSums: Barrier;
  readonly emptySums: Barrier;
  readonly added: Semaphore;
  /** Of kernels with offsets. */
  readonly cleared: Barrier;
}

/** What the threads of the kernel share. */
export interface Work {
  readonly form: AttentionForm;
  /** Whether blocks add to dq in one order. */
  readonly isOrdered: boolean;
  readonly rules: ScoreRules;
  readonly refs: Refs;
  readonly sequence: Sequence;
  readonly kvHead: Index;
  readonly left: Index;
  /** The last block of columns of the sequence, and the number of this one among all. */
  readonly last: Index;
  readonly number: Index;
  /** Where the tiles of rows of the sequence begin among all. */
  readonly tiles: Index;
  /** Tiles of rows that see the columns of the block, and their heads. */
  readonly visits: Visits;
  /** How many blocks add to a tile of rows before this one, of a mask. */
  readonly rankOf: ((head: Index, tile: Index) => Index) | undefined;
}

/** Which head and which tile of rows a turn takes, and whether the mask is asked there. */
export function placeOfTurn(
  { form, kvHead, visits }: Work,
  turn: Index,
): Visit & { readonly head: Index } {
  const visit = visits.at(turn);
  return { ...visit, head: headOf(kvHead, form.sizes.h / form.sizes.kv, visit.own) };
}
