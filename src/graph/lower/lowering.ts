/**
 * The forms that a lowering can have. `record.ts` has one for every op kind.
 *
 * | form    | ops                                   | what it is                                                      |
 * |---------|---------------------------------------|-----------------------------------------------------------------|
 * | map     | add, select, slice, gather, iota …    | results at points from operands at points; neighbours share a kernel |
 * | fold    | reduce, dot_general, convolution …    | the same with a loop inside: the root of its kernel              |
 * | steps   | sort …                                | several kernels, one after another, with memory between them    |
 * | library | sort                                  | an operation of the library                                     |
 * | expand  | batch_norm_training, top_k …          | other ops                                                       |
 * | pairs   | complex, fft                          | made of real ops where complex values become pairs (`complex/`)  |
 * | alias   | optimization_barrier, calls that JAX prints | its results are its operands                               |
 * | control | while, case, if                       | plans within the plan                                           |
 * | check   | check.expect_eq …                     | compared on the host when the program has run                   |
 * | none    | create_token …                        | nothing runs                                                    |
 * | choose  | custom_call                           | one of these, by what is called                                 |
 * | refuse  | all_reduce …                          | no device runs it, with the reason                              |
 */
import type { Tile } from "../../lang/index.ts";
import type { GraphBuilder } from "../infer/builder.ts";
import type { GraphModule, GraphOp, GraphValue } from "../ops/node.ts";
import type { GraphOpKind } from "../ops/table.ts";
import type { CollectiveCall, ProcessCounts } from "../ranks/collective.ts";
import type { AnyPointRule, PointContext } from "./context.ts";
import type { LibraryCall } from "./library.ts";
import type { Index } from "./points/indices.ts";
import type { Points } from "./points/points.ts";
import type { Caches } from "../../targets/target.ts";
import type { TiledKernel } from "./tiled/tiled.ts";

/** The results of an op at points; one tile a result. */
export type PointRule<K extends GraphOpKind> = (
  op: GraphOp<K>,
  points: Points,
  context: PointContext,
) => readonly Tile[];

/** A kernel of a lowering with several: values at the points of its results, which all have one shape. */
export interface KernelStep {
  /** What it computes, for the plan and the profile. */
  readonly title: string;
  /** Values of the program, or results of earlier steps. */
  readonly inputs: readonly GraphValue[];
  readonly results: readonly GraphValue[];
  /** Tells it from every step that computes something else from inputs of the same types. */
  readonly key: string;
  /** What it computes of the op's operands where it uses them; all of them unless it says so. */
  readonly uses?: readonly GraphValue[];
  readonly rule?: (points: Points, context: PointContext) => readonly Tile[];
  /** A grid and a body of its own instead. */
  readonly tiled?: TiledKernel;
}

/** What an op changes of an operand, where the result lies in the operand's memory: elements of a window, the others stay as they are. */
export interface UpdateInPlace {
  /** The operand whose memory it is. */
  readonly operand: GraphValue;
  /** The extents of the window. */
  readonly shape: readonly number[];
  /** Where the elements at points of the window go, what they are, and whether they go anywhere. */
  readonly rule: (
    points: Points,
    context: PointContext,
  ) => {
    readonly axes: readonly Index[];
    readonly value: Tile;
    readonly where: boolean | Tile<"bool">;
  };
}

/** The ops that an op becomes. */
export type Expansion<K extends GraphOpKind> = (
  op: GraphOp<K>,
  builder: GraphBuilder,
  module: GraphModule,
  /** How ops are computed in kernels, for kernels that run regions. */
  rule: AnyPointRule,
) => readonly GraphValue[];

export type Lowering<K extends GraphOpKind> =
  | {
      readonly form: "map";
      /** Whether computing it again is cheaper than keeping it. */
      readonly isFree: boolean;
      readonly rule: PointRule<K>;
      /** The operand whose bytes are those of the result: where both need memory, they share it. */
      readonly sameBytes?: ((op: GraphOp<K>) => GraphValue) | undefined;
      /** An operation of the library where the result is kept, which reads its operands from memory. */
      readonly library?: ((op: GraphOp<K>) => LibraryCall | undefined) | undefined;
      /** How the result is made in the memory of an operand that nobody needs any more. */
      readonly update?: ((op: GraphOp<K>) => UpdateInPlace | undefined) | undefined;
    }
  | {
      readonly form: "fold";
      readonly rule: PointRule<K>;
      /** The same. */
      readonly update?: ((op: GraphOp<K>) => UpdateInPlace | undefined) | undefined;
      /** A kernel over larger tiles, for the shapes and types that have one. */
      readonly tiled?: ((op: GraphOp<K>, caches?: Caches) => TiledKernel | undefined) | undefined;
      /** An operation of the library, which goes before both. */
      readonly library?: ((op: GraphOp<K>) => LibraryCall | undefined) | undefined;
    }
  | {
      readonly form: "steps";
      readonly steps: (op: GraphOp<K>) => readonly KernelStep[];
      /** Operands whose elements are looked at once, in the kernel that computes them. */
      readonly inline?: (op: GraphOp<K>) => readonly GraphValue[];
    }
  | {
      readonly form: "library";
      readonly call: (op: GraphOp<K>) => LibraryCall;
    }
  | {
      readonly form: "expand";
      /** A function with a name, which is that of the rule: each needs a case in `test/graph/rewrites`. */
      readonly to: Expansion<K>;
    }
  | {
      readonly form: "alias";
      readonly operands: (op: GraphOp<K>) => readonly GraphValue[];
    }
  | { readonly form: "pairs" }
  | { readonly form: "control" }
  | {
      readonly form: "collective";
      /** What the ranks do; undefined where the op is refused for its region. */
      readonly call: (op: GraphOp<K>, processes: ProcessCounts) => CollectiveCall | undefined;
    }
  /** The number of the process, which whoever loads the plan knows. */
  | { readonly form: "number"; readonly of: "replica" | "partition" }
  | { readonly form: "check" }
  | { readonly form: "none" }
  | { readonly form: "choose"; readonly by: (op: GraphOp<K>) => Lowering<K> }
  | { readonly form: "refuse"; readonly reason: string };

export type Lowerings<K extends GraphOpKind> = {
  readonly [N in K]: Lowering<N>;
};

export function map<K extends GraphOpKind>(rule: PointRule<K>): Lowering<K> {
  return { form: "map", isFree: false, rule };
}

/** A map that moves elements, which costs no more than loading them. */
export function view<K extends GraphOpKind>(
  rule: PointRule<K>,
): Lowering<K> & { readonly form: "map" } {
  return { form: "map", isFree: true, rule };
}

export function fold<K extends GraphOpKind>(
  rule: PointRule<K>,
  tiled?: (op: GraphOp<K>, caches?: Caches) => TiledKernel | undefined,
): Lowering<K> {
  return { form: "fold", rule, tiled };
}

export function refuse(reason: string): Lowering<GraphOpKind> & { readonly form: "refuse" } {
  return { form: "refuse", reason };
}
