/**
 * Cuts a function into steps. Instructions that lanes run for themselves go together into one step, as long
 * as running a lane through all of them before the next lane starts cannot be told from running them one
 * by one: lanes see each other's stores, so a store shares its step with no other access to memory.
 */
import type { Register } from "../../ptx/module.ts";
import { visitRegisters } from "../../ptx/register-declarations.ts";
import { accessKind } from "../thread-instructions/memory.ts";
import { laneRule } from "../thread-instructions/index.ts";
import { LaneInstruction } from "../thread-instructions/rule.ts";
import type { LaneRule } from "../thread-instructions/rule.ts";
import type { FlatBody, FlatInstruction } from "./flatten.ts";
import type { FlowBlock } from "./flow.ts";
import type { PlaceOf } from "../thread-instructions/memory.ts";

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
  /** For steps of lanes, the registers that no other step mentions. */
  readonly temporaries: ReadonlyMap<PlannedStep, ReadonlySet<Register>>;
}

/** Registers by the one step that mentions them. What a jump asks is looked up where registers lie. */
function temporariesOf(steps: readonly PlannedStep[]): StepPlan["temporaries"] {
  const mentions = new Map<Register, PlannedStep | undefined>();
  const mention = (register: Register, step: PlannedStep | undefined): void => {
    const isOther = mentions.has(register) && mentions.get(register) !== step;
    mentions.set(register, isOther ? undefined : step);
  };
  const mentionAll = ({ flat }: PlannedInstruction, step: PlannedStep | undefined): void => {
    const { guard, operands } = flat.instruction;
    if (guard !== undefined) mention(guard.register, step);
    for (const operand of operands)
      visitRegisters(operand, (register) => {
        mention(register, step);
      });
  };
  for (const step of steps)
    if (step.kind === "warp") mentionAll(step.instruction, undefined);
    else {
      for (const planned of step.instructions) mentionAll(planned, step);
      if (step.jump !== undefined) mentionAll(step.jump, undefined);
    }
  const temporaries = new Map<PlannedStep, Set<Register>>();
  for (const [register, step] of mentions) {
    if (step === undefined) continue;
    const known = temporaries.get(step);
    if (known === undefined) temporaries.set(step, new Set([register]));
    else known.add(register);
  }
  return temporaries;
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
  return { steps, starts, temporaries: temporariesOf(steps) };
}
