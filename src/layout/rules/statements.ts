/**
 * What rules state: the vocabulary between ops and the solver. A *variable* is a place whose layout is to be
 * found: where a value is made, where an op needs it, or an allocation of shared memory. Statements are
 * made before anybody knows the candidates; those are gathered from the statements (see
 * `../plan/propagate-candidates.ts`), and only then does a system of constraints exist.
 *
 *   %3 = load …          variable "load", cost by bytes and sectors
 *   %4 = exp %3          variable "exp"; convert load -> exp, which costs nothing if both are the same
 *   %5 = reduce %4       variable "operand", convert exp -> operand; variable "sum"; image reduce(operand) = sum
 */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Value } from "../../ir/node.ts";
import type { SpreadType } from "../../ir/types.ts";
import type { Location } from "../../support/location.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import type { TileFunction } from "../model/layout-functions.ts";
import type { Candidate } from "../solver/system.ts";

interface Place {
  readonly index: number;
  /** What lies there, for reports. */
  readonly label: string;
  readonly location: Location;
  readonly shape: readonly number[];
  readonly dtype: DType;
}

export interface RegisterVariable extends Place {
  readonly kind: "register";
  /** Warps that hold the value together; one that works alone holds all of it. */
  readonly warps: number;
  /** Whether one number may stand for the whole tile, or always does. */
  readonly splat: "never" | "maybe" | "always";
}

export interface SharedVariable extends Place {
  readonly kind: "shared";
  readonly root: Value;
}

export type LayoutVariable = RegisterVariable | SharedVariable;
export type LayoutOf<S extends LayoutVariable> = S extends RegisterVariable
  ? RegisterLayout
  : SharedLayout;

/** Where a value is needed: in a variable, in what a function makes of a variable, or in a fixed layout. */
export type Need =
  | { readonly kind: "variable"; readonly variable: RegisterVariable }
  | { readonly kind: "image"; readonly function: TileFunction; readonly variable: RegisterVariable }
  | { readonly kind: "fixed"; readonly layout: RegisterLayout };

/** Who states something and why, and what the user could do to make it go away. */
export interface Reason {
  readonly op: AnyOp;
  readonly message: string;
  /** The user asked for it by name. */
  readonly pinned?: boolean;
  /** An instruction to the user; the statement no longer holds once it is followed. */
  readonly relax?: string;
}

/** How welcome proposed layouts are: later classes get the room that earlier ones leave. */
export const classes = ["pin", "instruction", "memory", "fallback"] as const;
export type ProposalClass = (typeof classes)[number];

export type Statement = { readonly reason: Reason } & (
  | {
      readonly kind: "convert";
      readonly source: RegisterVariable;
      readonly need: Need;
      /** How often the op runs. */
      readonly weight: number;
      /** The value that is converted; it may be wider than others that lie in the same variable. */
      readonly value: Value<SpreadType>;
    }
  | {
      readonly kind: "image";
      readonly source: RegisterVariable;
      readonly function: TileFunction;
      readonly result: RegisterVariable;
    }
  | {
      readonly kind: "pin";
      readonly variable: LayoutVariable;
      readonly layout: RegisterLayout | SharedLayout;
    }
  | {
      readonly kind: "require";
      readonly variables: readonly LayoutVariable[];
      readonly answer: (...layouts: readonly Candidate[]) => true | string;
    }
  | {
      readonly kind: "cost";
      readonly variables: readonly LayoutVariable[];
      readonly answer: (...layouts: readonly Candidate[]) => number;
    }
);

export interface Proposal {
  readonly variable: LayoutVariable;
  readonly layout: RegisterLayout | SharedLayout;
  readonly class: ProposalClass;
}
