/**
 * What a random program does with tensor memory, as data: it is traced (`trace.ts`), and computed in float64 with a bound of what tensor cores round (`compute.ts`).
 *
 *   group 0    f16 by f16 into f32, 128 rows, k = 32; sums [2, 128, 48]; left factors in shared and in tensor memory
 *   store      z to sums[1, :, 16 : 32]
 *   multiply   sums[1, :, 0 : 32] += left 0 · right 1
 *   commit, wait, load …
 */
import type { DType } from "../../../src/formats/dtype.ts";
import type { TmemShape } from "../../../src/ir/ops/tensor-memory.ts";

export interface Sums {
  readonly tiles: number;
  readonly columns: number;
}

/** Where a left factor lies: in shared memory along k, or across it, or in tensor memory. */
export interface Left {
  readonly place: "along" | "across" | "tensor";
  /** How it is stored in tensor memory, where not as usual. */
  readonly shape?: TmemShape | undefined;
}

export interface Right {
  readonly columns: number;
  readonly along: boolean;
}

/** Products of one form, with sums and factors of their own. */
export interface Group {
  readonly a: DType;
  readonly b: DType;
  readonly sum: DType;
  readonly rows: number;
  readonly depth: number;
  readonly sums: readonly Sums[];
  readonly lefts: readonly Left[];
  readonly rights: readonly Right[];
  /** Whether blocks of 32 along k have scales. */
  readonly isScaled: boolean;
}

/** A number that may be one of the launch, or count the turns of the loop around it. */
export interface Place {
  readonly base: number;
  /** Adds the turn of the loop, and begins again behind the last tile. */
  readonly turns: boolean;
}

export interface Region {
  readonly group: number;
  readonly sums: number;
  readonly tile: Place;
  readonly column: number;
  /** Whether the column is added to a number of the launch, which is 0. */
  readonly isDynamic: boolean;
  readonly width: number;
}

/** Whether a product adds to what is there: always, never, from the second turn on, or as a number of the launch says. */
export type Adds = "always" | "never" | "later" | "flag";

export type BarrierName = "done" | "later";

export type Statement =
  | {
      readonly kind: "store";
      readonly into: Region;
      readonly shape: TmemShape | undefined;
      readonly negates: boolean;
    }
  | {
      readonly kind: "multiply";
      readonly into: Region;
      readonly left: number;
      readonly right: number;
      readonly adds: Adds;
    }
  | { readonly kind: "commit"; readonly barrier: BarrierName }
  | { readonly kind: "wait"; readonly barrier: BarrierName }
  | {
      readonly kind: "load";
      readonly from: Region;
      readonly shape: TmemShape | undefined;
      /** The array that it is stored in, and how many turns that has. */
      readonly output: number;
    }
  /** Writes a factor, or its scales, again from another version of what is in global memory. */
  | {
      readonly kind: "refill";
      readonly group: number;
      readonly side: "left" | "right";
      readonly factor: number;
      readonly version: number;
    }
  | { readonly kind: "scales"; readonly group: number; readonly version: number }
  | {
      readonly kind: "loop";
      readonly trips: number;
      readonly isDynamic: boolean;
      readonly body: readonly Statement[];
    }
  | { readonly kind: "when"; readonly holds: boolean; readonly body: readonly Statement[] };

export type StatementOf<K extends Statement["kind"]> = Extract<Statement, { kind: K }>;

/** What each kind of statement does, with something of where it stands. */
export type StatementRules<C> = {
  readonly [K in Statement["kind"]]: (statement: StatementOf<K>, here: C) => void;
};

export function applyRule<C>(rules: StatementRules<C>, statement: Statement, here: C): void {
  const rule = rules[statement.kind] as (statement: Statement, here: C) => void;
  rule(statement, here);
}

export interface Output {
  readonly group: number;
  readonly turns: number;
  readonly width: number;
}

export interface Plan {
  readonly warps: number;
  readonly groups: readonly Group[];
  readonly statements: readonly Statement[];
  readonly outputs: readonly Output[];
  /** Whether everything is small whole numbers, whose sums are exact. */
  readonly isWhole: boolean;
}

/** Contents of factors that there are to choose from. */
export const versions = 2;

export interface Named {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** A left factor as it lies in memory. */
export function leftShape({ rows, depth, lefts }: Group, at: number): readonly [number, number] {
  return lefts[at]?.place === "across" ? [depth, rows] : [rows, depth];
}

export function rightShape({ depth, rights }: Group, at: number): readonly [number, number] {
  const { columns = 0, along = false } = rights[at] ?? {};
  return along ? [columns, depth] : [depth, columns];
}

/** Atoms of scales, [rows / 128, blocks / 4, 32, 16], of either factor. */
export function atomShape(group: Group, side: "left" | "right"): readonly number[] {
  const rows =
    side === "left" ? group.rows : Math.max(...group.rights.map(({ columns }) => columns));
  return [Math.ceil(rows / 128), Math.ceil(group.depth / 128), 32, 16];
}
