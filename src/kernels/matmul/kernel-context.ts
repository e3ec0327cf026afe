/**
 * What the persistent kernel is made from, and what its threads work on: the description that the parts of it (copying, multiplying,
 * storing, the order of tiles) share, so that none of them needs another.
 */
import type { Barrier, Ref, Scalar } from "../../lang/index.ts";
import type { Mailbox } from "../../lang/pipeline/dynamic-tile-counter.ts";
import type { Handing, Segments } from "../../lang/pipeline/stream-k.ts";
import type { Location } from "../../support/location.ts";
import type { PersistentConfiguration, ProductSizes } from "./configuration.ts";
import type { ProductDimensions } from "./dimensions.ts";
import type { Sides } from "./mainloop/operands.ts";
import type { Prepared } from "./prologue/prepare.ts";
import type { MatmulProblem } from "./problem.ts";
import type { PrologueInput } from "./prologue/prologue.ts";
import type { Recipe } from "./f32-emulation.ts";
import type { ProductMemory } from "../../targets/product-instructions.ts";
import type { DealtRows, TilePlace } from "./scheduler/tile-scheduler.ts";

/** Rows and columns of the windows of the last tiles, where these are not whole ones. */
export interface Edges {
  readonly row?: number | undefined;
  readonly column?: number | undefined;
  /** Whether blocks of a pair whose part of the columns lies outside as a whole fetch the first columns instead, which is as good. */
  readonly moved?: boolean | undefined;
}

export interface PersistentForm {
  readonly problem: MatmulProblem;
  readonly recipe: Recipe;
  readonly prepared: Prepared;
  readonly configuration: PersistentConfiguration;
  /** Where the target's instruction adds up. */
  readonly sums: ProductMemory;
  readonly sizes: ProductSizes;
  /** Processors of the GPU. */
  readonly processors: number;
  /** Bytes of the cache that they share. */
  readonly cache: number;
  /** Whether TMA can write the result, whose rows must begin at multiples of 16 bytes. */
  readonly copiesOut: boolean;
  /** Windows of the last tiles. */
  readonly edges: Edges;
  readonly location: Location;
  /** Where rows belong to groups, each with a matrix of its own: which tile has which of them. */
  readonly dealt?: DealtRows;
  /** Parts of k that the matrices of the batch are, unless 1; these have no operands of their own then. */
  readonly parts: number;
}

/** Where numbers come from, and by which way threads get them. */
export interface Counting {
  readonly counter: Ref<"i32">;
  readonly mailbox: Mailbox;
  readonly blocks: Scalar<"i32">;
  /** Rounds that are dealt, one at least. */
  readonly rounds: Scalar<"i32">;
}

/** Sums in tensor memory: places for tiles, and what tells that one is complete, or in registers. */
export interface TensorSums {
  readonly sums: Ref;
  readonly summed: Barrier;
  readonly taken: Barrier;
}

/** What the threads of the kernel work on. */
export interface Work {
  readonly form: PersistentForm;
  readonly shapes: Shapes;
  readonly sides: Sides;
  /** The operands along rows and columns, and their tiles. */
  readonly left: Ref;
  readonly right: Ref;
  readonly out: Ref;
  readonly leftTiles: Ref;
  readonly rightTiles: Ref;
  /** Undefined where lanes store the result themselves. */
  readonly result: Ref | undefined;
  /** Where they do so through shared memory: buffers for pieces. */
  readonly rowPieces: Ref | undefined;
  readonly full: Barrier;
  readonly empty: Barrier;
  /** Undefined where sums are in registers. */
  readonly tensor: TensorSums | undefined;
  /** Further inputs and outputs of the epilogue. */
  readonly inputs: { readonly [name: string]: Ref };
  readonly dimensions: ProductDimensions;
  /** What the prologue takes besides its operand, in memory and in slots of the ring. */
  readonly prologueInputs: readonly PrologueSource[];
  /** All arguments of the kernel by their names. */
  readonly named: { readonly [name: string]: Ref };
  /** Of sparse weights, likewise. */
  readonly metadata: { readonly all: Ref; readonly tiles: Ref } | undefined;
  /** Sums of parts of tiles that blocks hand to each other; undefined where there are none. */
  readonly handed: Handing | undefined;
  /** By which the first thread tells the second that it has begun the last step of a tile; undefined where nobody waits for that. */
  readonly ahead: Barrier | undefined;
  readonly worker: Scalar<"i32">;
  /** Whether each block has one tile. */
  readonly isOnce: boolean;
  /** Elements along k. */
  readonly depth: Scalar<"i32">;
  /** Steps of a tile, or of a part of it. */
  readonly steps: Scalar<"i32">;
  /** This block's number in its cluster. */
  readonly rank: Scalar<"i32">;
  /**
   * Says what this block works on. Each thread finds it, rather than hold what was found before they parted; but for f64,
   * whose sums leave no registers to find it in.
   */
  readonly deal: () => Segments;
  /** Where blocks take the number of the next tile from; undefined where they know it. */
  readonly counting: Counting | undefined;
  readonly place: (tile: Scalar<"i32">) => TilePlace;
}

export interface PrologueSource {
  readonly input: PrologueInput;
  readonly all: Ref;
  /** Undefined where it is read from memory. */
  readonly tiles: Ref | undefined;
}

/** Sizes of tiles and pieces. */
export interface Shapes {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly piece: number;
  /** Rows of a thread that stores. */
  readonly own: number;
}
