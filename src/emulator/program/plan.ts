/**
 * Cuts a function into steps. Instructions that lanes run for themselves go together into one step, as long
 * as running a lane through all of them before the next lane starts cannot be told from running them one
 * by one: lanes see each other's stores, so a store shares its step with no other access to memory.
 */
import { accessKind } from "../lane/memory.ts";
import { laneRule } from "../lane/index.ts";
import { LaneInstruction } from "../lane/rule.ts";
import type { LaneRule } from "../lane/rule.ts";
import type { FlatBody, FlatInstruction } from "./flatten.ts";
import type { FlowBlock } from "./flow.ts";
import type { PlaceOf } from "../lane/memory.ts";

export interface PlannedInstruction {
  readonly flat: FlatInstruction;
  readonly lane: LaneInstruction;
}

export type PlannedStep =
  | {
      readonly kind: "lanes";
      readonly instructions: readonly (PlannedInstruction & { readonly rule: LaneRule })[];
      /** A `bra` behind them. */
      readonly jump: PlannedInstruction | undefined;
      readonly block: number;
    }
  | { readonly kind: "warp"; readonly instruction: PlannedInstruction; readonly block: number };

/** Longer functions are compiled less well by JavaScript engines. */
const mostInstructions = 96;

/** How an instruction shares a step with others. */
function sharing(lane: LaneInstruction): "free" | "load" | "store" {
  const { root } = lane;
  if (root !== "ld" && root !== "ldu" && root !== "st") return "free";
  const kind = accessKind(lane.modifiers);
  // Parameters and the lane's own memory are nobody else's business.
  if (kind === "param" || kind === "local" || kind === "const") return "free";
  return root === "st" ? "store" : "load";
}

class StepPlanner {
  readonly steps: PlannedStep[] = [];
  readonly #block: number;
  #open: (PlannedInstruction & { readonly rule: LaneRule })[] = [];
  #holds: "free" | "load" | "store" = "free";

  constructor(block: number) {
    this.#block = block;
  }

  add(planned: PlannedInstruction, rule: LaneRule): void {
    const kind = sharing(planned.lane);
    const clashes =
      kind !== "free" && this.#holds !== "free" && !(kind === "load" && this.#holds === "load");
    if (clashes || this.#open.length >= mostInstructions) this.close(undefined);
    if (kind !== "free") this.#holds = kind;
    this.#open.push({ ...planned, rule });
  }

  close(jump: PlannedInstruction | undefined): void {
    if (this.#open.length > 0 || jump !== undefined)
      this.steps.push({ kind: "lanes", instructions: this.#open, jump, block: this.#block });
    this.#open = [];
    this.#holds = "free";
  }

  addWarp(instruction: PlannedInstruction): void {
    this.close(undefined);
    this.steps.push({ kind: "warp", instruction, block: this.#block });
  }
}

export interface StepPlan {
  readonly steps: readonly PlannedStep[];
  /** The first step of each block; of an empty one, that of the next. */
  readonly starts: readonly number[];
}

export function planSteps(
  { instructions }: FlatBody,
  blocks: readonly FlowBlock[],
  placeOf: (flat: FlatInstruction) => PlaceOf,
): StepPlan {
  const steps: PlannedStep[] = [];
  const starts: number[] = [];
  blocks.forEach(({ start, end }, block) => {
    starts.push(steps.length);
    const planner = new StepPlanner(block);
    for (const flat of instructions.slice(start, end)) {
      const lane = new LaneInstruction(flat.instruction);
      const planned = { flat, lane };
      const rule = laneRule(lane, placeOf(flat));
      if (rule !== undefined) planner.add(planned, rule);
      else if (lane.root === "bra") planner.close(planned);
      else planner.addWarp(planned);
    }
    planner.close(undefined);
    steps.push(...planner.steps);
  });
  return { steps, starts };
}
