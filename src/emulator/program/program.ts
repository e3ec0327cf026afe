/**
 * A module made ready to run from one entry: functions as steps, variables with their places.
 *
 *   step 0   add, mul, ld.global, setp      one JavaScript function for all of them; gives the next step
 *   step 1   shfl.sync                      lanes together
 *   step 2   st.shared, @p bra $loop        a jump ends a step, and gives where to go on
 *
 * Every function of the program has its steps in one list, so that a step's number is an address of code.
 */
import type { Instruction, Variable } from "../../ptx/module.ts";
import type { Location } from "../../support/location.ts";
import type { OperandView } from "../collective.ts";
import type { MemoryForm } from "../thread-instructions/memory.ts";
import type { WarpState } from "../machine/warp.ts";
import type { Provenance } from "./provenance.ts";
import type { ProgramFunction } from "./function.ts";
import type { VariablePlace } from "./symbols.ts";
import type { PlacedConstant } from "./variables.ts";

/** Runs lanes of a warp; gives the next step, `blocked` or `rearranged`. */
export type StepFunction = (warp: WarpState, mask: number) => number;

export interface Step {
  readonly run: StepFunction;
  /** Instructions in it. */
  readonly weight: number;
  /** What it takes of a warp's turn: more for polls, so that whoever is waited for runs soon. */
  readonly cost: number;
  /** The first instruction. */
  readonly site: number;
}

/** An instruction as reports name it. */
export interface Site {
  readonly instruction: Instruction;
  readonly functionName: string;
  readonly location: Location;
  /** Of a load, store or atomic. */
  readonly memory: (MemoryForm & { readonly mode: "read" | "write" | "atomic" }) | undefined;
  /** Where in shared memory the mbarrier of an operation on one lies. */
  barrier?: OperandView | undefined;
}

export interface Program {
  readonly entry: ProgramFunction;
  readonly functions: readonly ProgramFunction[];
  readonly steps: readonly Step[];
  readonly sites: readonly Site[];
  /** Whether blocks of different clusters may tell each other something. */
  readonly communicates: boolean;
  /** Variables in global memory, in the order of the launch's table of addresses. */
  readonly globals: readonly Variable[];
  readonly constants: readonly PlacedConstant[];
  readonly constantBytes: number;
  readonly places: ReadonlyMap<Variable, VariablePlace>;
  /** Shared memory of declared variables; dynamic shared memory begins behind it. */
  readonly staticSharedBytes: number;
  /** Which parameters the addresses of accesses came from. */
  readonly provenance: Provenance;
  /** Bytes of the entry's parameters, and where each begins. */
  readonly parameterBytes: number;
  readonly parameterOffsets: readonly number[];
}
