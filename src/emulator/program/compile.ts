/** Turns the planned steps of a function into functions that run them. */
import type { Operand, PtxFunction, PtxModule, Register, Variable } from "../../ptx/module.ts";
import type { Collective, CollectiveRules, MachineView, OperandView } from "../collective.ts";
import { isPoll, memoryForm } from "../thread-instructions/memory.ts";
import { LaneWriter, OperandError } from "../thread-instructions/writer.ts";
import type { WarpState } from "../machine/warp.ts";
import { atomicRules } from "../warp-instructions/atomics.ts";
import { exchangeRules } from "../warp-instructions/exchange.ts";
import { WarpInstruction } from "../warp-instructions/rule.ts";
import type { WarpRules, WarpRun } from "../warp-instructions/rule.ts";
import { isWhole, synchronisationRules } from "../warp-instructions/synchronisation.ts";
import { fenceRules } from "../warp-instructions/fences.ts";
import {
  callForm,
  callStep,
  exitStep,
  functionAt,
  indexedJump,
  returnStep,
  trapStep,
} from "./control.ts";
import { locationOf, unknownInstruction, unknownName } from "./errors.ts";
import { requireKnownModifiers } from "./modifiers.ts";
import type { FlatInstruction } from "./flatten.ts";
import type { FlowBlock } from "./flow.ts";
import { viewOf } from "./operands.ts";
import { isOutsideFunction, outsideStep } from "./driver-functions.ts";
import type { StackPlace } from "./driver-functions.ts";
import type { PlannedInstruction, PlannedStep, StepPlan } from "./plan.ts";
import { blocked } from "./function.ts";
import type { Site, Step, StepFunction } from "./program.ts";
import type { ProgramFunction } from "./function.ts";
import type { Provenance } from "./provenance.ts";
import type { Resolver } from "./resolver.ts";
import { variableBytes } from "./symbols.ts";

const warpRules: WarpRules = {
  ...exchangeRules,
  ...atomicRules,
  ...synchronisationRules,
  ...fenceRules,
};

const none: ReadonlySet<Register> = new Set();

/** Of a warp's turn, in instructions. */
const pollCost = 128;

/** The roots of all opcodes that a warp runs as a whole, and of those that move lanes elsewhere. */
export const warpRoots: readonly string[] = [
  ...Object.keys(warpRules),
  ...["bra", "brx", "call", "ret", "exit", "trap", "brkpt"],
];

export interface CompileOptions {
  readonly checks: boolean;
  /** Whether accesses to the heap leave marks, for launches on threads. */
  readonly marks?: boolean | undefined;
  readonly collectives: CollectiveRules;
}

/** A step of lanes as text; the text of all is compiled at once. */
export interface StepText {
  readonly text: string;
  readonly weight: number;
  readonly cost: number;
  readonly site: number;
}

export class FunctionCompiler {
  readonly #module: PtxModule;
  readonly #function: ProgramFunction;
  readonly #functions: readonly ProgramFunction[];
  readonly #resolver: Resolver;
  readonly #blocks: readonly FlowBlock[];
  readonly #plan: StepPlan;
  readonly #sites: Site[];
  readonly #options: CompileOptions;
  readonly #provenance: Provenance;

  constructor(parts: {
    readonly module: PtxModule;
    readonly function: ProgramFunction;
    readonly functions: readonly ProgramFunction[];
    readonly resolver: Resolver;
    readonly blocks: readonly FlowBlock[];
    readonly plan: StepPlan;
    readonly sites: Site[];
    readonly options: CompileOptions;
    readonly provenance: Provenance;
  }) {
    this.#module = parts.module;
    this.#function = parts.function;
    this.#functions = parts.functions;
    this.#resolver = parts.resolver;
    this.#blocks = parts.blocks;
    this.#plan = parts.plan;
    this.#sites = parts.sites;
    this.#options = parts.options;
    this.#provenance = parts.provenance;
  }

  compile(): readonly (Step | StepText)[] {
    return this.#plan.steps.map((step, position) =>
      step.kind === "lanes" ? this.#lanes(step, position) : this.#warp(step, position),
    );
  }

  #number(position: number): number {
    return this.#function.firstStep + position;
  }

  #startOf(block: number): number {
    return this.#number(this.#plan.starts[block] ?? this.#plan.steps.length);
  }

  /**
   * Where lanes that part in a block meet; -1 for where the function returns to. Lanes that only come to the
   * end of the entry do not wait there: they are over, and the others' barriers go on without them.
   */
  #reconvergence(block: number): number {
    const reconvergence = this.#blocks[block]?.reconvergence;
    return reconvergence === undefined || this.#isEnd(reconvergence)
      ? -1
      : this.#startOf(reconvergence);
  }

  #isEnd(block: number): boolean {
    const step = this.#plan.steps[this.#plan.starts[block] ?? this.#plan.steps.length];
    if (!this.#function.declaration.entry || step?.kind !== "warp") return false;
    const { lane, flat } = step.instruction;
    const ends = lane.root === "ret" || lane.root === "exit";
    return ends && flat.instruction.guard === undefined;
  }

  #blockOf(name: string, { instruction, scope }: FlatInstruction): number {
    const label = scope.label(name);
    const location = locationOf(this.#module, instruction);
    if (label === undefined) throw unknownName(name, location);
    return this.#blocks.findIndex(({ start }) => start === label);
  }

  /** Runs `make`; what it cannot do is reported for the instruction. */
  #about<T>({ flat, lane }: PlannedInstruction, make: (site: number) => T): T {
    const { instruction, scope } = flat;
    this.#resolver.at(instruction, scope);
    const site = this.#sites.length;
    const location = locationOf(this.#module, instruction);
    try {
      requireKnownModifiers(lane);
      const isMemory = /^(?:ldu?|st|atom|red)$/.test(lane.root) && lane.types.length > 0;
      const mode = lane.root.startsWith("ld") ? "read" : lane.root === "st" ? "write" : "atomic";
      const memory = isMemory ? ({ ...memoryForm(lane), mode } as const) : undefined;
      const functionName = this.#function.declaration.name;
      this.#sites.push({ instruction, functionName, location, memory });
      return make(site);
    } catch (error) {
      if (error instanceof OperandError)
        throw unknownInstruction(instruction, location, error.message);
      throw error;
    }
  }

  #lanes(step: PlannedStep & { readonly kind: "lanes" }, position: number): StepText {
    const { places } = this.#function.layout;
    const temporaries = this.#plan.temporaries.get(step) ?? none;
    const writer = new LaneWriter(places, this.#resolver, this.#options, temporaries);
    const first = this.#sites.length;
    for (const planned of step.instructions)
      this.#about(planned, (site) => {
        writer.sources = this.#provenance.accesses.get(planned.flat.instruction);
        writer.instruction(site, planned.flat.instruction.guard, () =>
          planned.rule(planned.lane, writer),
        );
      });
    const next = this.#number(position + 1);
    const { jump } = step;
    const last =
      jump === undefined
        ? `return ${next};`
        : this.#about(jump, (site) => this.#jumpText(jump, next, step.block, site));
    const weight = step.instructions.length + (jump === undefined ? 0 : 1);
    const polls = step.instructions.filter(({ lane }) => isPoll(lane)).length;
    return { text: writer.finish(last), weight, cost: weight + polls * pollCost, site: first };
  }

  #jumpText({ flat }: PlannedInstruction, next: number, block: number, site: number): string {
    const { guard, operands } = flat.instruction;
    const [target] = operands;
    if (target?.kind !== "symbol") throw new OperandError("jump to no label");
    const goal = this.#startOf(this.#blockOf(target.name, flat));
    if (guard === undefined) return `return ${goal};`;
    const { offset, number } = this.#resolver.place(guard.register);
    const check = this.#options.checks
      ? `if ((I[base + ${number}] & mask) !== mask) w.undefined(${site}, ${number}, mask & ~I[base + ${number}]); w.decide();`
      : "";
    const taken = `${guard.negated ? "~" : ""}I[base + ${offset}] & mask`;
    return [
      check,
      `const taken = ${taken};`,
      `if (taken === mask) return ${goal};`,
      `if (taken === 0) return ${next};`,
      `return w.split(taken, ${goal}, ${next}, ${this.#reconvergence(block)});`,
    ].join("\n");
  }

  #warp({ instruction, block }: PlannedStep & { readonly kind: "warp" }, position: number): Step {
    const self = this.#number(position);
    const next = self + 1;
    const site = this.#sites.length;
    const run = this.#about(instruction, () => this.#warpRun(instruction, site, self, next, block));
    const cost = isPoll(instruction.lane) ? pollCost : 1;
    return { run: this.#guarded(instruction, run, site, self, next), weight: 1, cost, site };
  }

  /** Lanes whose guard says no go on at once; the others do so when they are done. */
  #guarded(
    { flat }: PlannedInstruction,
    run: StepFunction,
    site: number,
    self: number,
    next: number,
  ): StepFunction {
    const { guard } = flat.instruction;
    if (guard === undefined) return run;
    const { offset, number } = this.#resolver.place(guard.register);
    const { checks } = this.#options;
    const flip = guard.negated ? -1 : 0;
    return (warp, mask) => {
      const { words, base } = warp;
      if (checks && (mask & ~(words[base + number] as number)) !== 0)
        warp.undefined(site, number, mask & ~(words[base + number] as number));
      const active = mask & ((words[base + offset] as number) ^ flip);
      warp.decide();
      if (active === 0) return next;
      return active === mask ? run(warp, mask) : warp.split(active, self, next, next);
    };
  }

  #warpRun(
    { flat, lane }: PlannedInstruction,
    site: number,
    self: number,
    next: number,
    block: number,
  ): StepFunction {
    const { operands } = flat.instruction;
    switch (lane.root) {
      case "exit":
        return exitStep;
      case "ret":
        return returnStep;
      case "trap":
      case "brkpt":
        return trapStep(this.#sites[site] as Site);
      case "call":
        return this.#call(operands, site, self, next);
      case "brx":
        return this.#indexed(flat, self, block);
      default:
        return this.#rule(flat, lane, site, self, next);
    }
  }

  #call(operands: readonly Operand[], site: number, self: number, next: number): StepFunction {
    const form = callForm(operands);
    const placesOf = (list: readonly Operand[]): readonly number[] =>
      list.map((operand) => {
        const place = operand.kind === "symbol" ? this.#resolver.variable(operand.name) : undefined;
        if (place === undefined) throw new OperandError("argument that is no .param variable");
        return place.offset;
      });
    const outside = this.#outside(form.callee);
    if (outside !== undefined) {
      const { location } = this.#sites[site] as Site;
      const places = (list: readonly Operand[], declared: readonly Variable[]): StackPlace[] =>
        placesOf(list).map((offset, position) => {
          const variable = declared[position];
          return { offset, bytes: variable === undefined ? 4 : variableBytes(variable) };
        });
      return outsideStep(
        outside.name,
        places(form.arguments, outside.parameters),
        places(form.results, outside.results),
        { site, location, next },
      );
    }
    const callee = viewOf(form.callee, this.#resolver);
    return callStep(
      next,
      (warp, lane) => functionAt(callee.address(warp, lane), this.#functions),
      placesOf(form.arguments),
      placesOf(form.results),
      self,
    );
  }

  /** The declaration of a function that the driver has, where that is what is called. */
  #outside(callee: Operand): PtxFunction | undefined {
    if (callee.kind !== "symbol" || !isOutsideFunction(callee.name)) return undefined;
    const declared = this.#module.declarations.find(
      (each) => each.kind === "function" && each.name === callee.name,
    );
    return declared?.kind === "function" && declared.body === undefined ? declared : undefined;
  }

  #indexed(flat: FlatInstruction, self: number, block: number): StepFunction {
    const [index, table] = flat.instruction.operands;
    const list = table?.kind === "symbol" ? flat.scope.targetList(table.name) : undefined;
    if (index === undefined || list === undefined) throw new OperandError("jump without targets");
    const targets = list.labels.map((label) => this.#startOf(this.#blockOf(label, flat)));
    return indexedJump(viewOf(index, this.#resolver), targets, self, this.#reconvergence(block));
  }

  #rule(
    flat: FlatInstruction,
    lane: PlannedInstruction["lane"],
    site: number,
    self: number,
    next: number,
  ): StepFunction {
    const { instruction } = flat;
    const views = instruction.operands.map((operand) => viewOf(operand, this.#resolver));
    const location = locationOf(this.#module, instruction);
    const { collectives } = this.#options;
    const ruleOfWarps = Object.hasOwn(collectives, lane.root) ? collectives[lane.root] : undefined;
    const collective = ruleOfWarps?.({
      instruction,
      modifiers: lane.modifiers,
      operands: views,
      location,
    });
    const place = this.#sites[site];
    if (lane.root === "mbarrier" && place !== undefined)
      place.barrier = views.find(({ operand }) => operand.kind === "address");
    const rule = Object.hasOwn(warpRules, lane.root) ? warpRules[lane.root] : undefined;
    if (collective !== undefined) return partial(collectiveRun(collective), self, next);
    if (rule === undefined) throw unknownInstruction(instruction, location);
    const run = rule(new WarpInstruction(lane, site, views));
    const checked = this.#options.checks ? withDefined(run, site, sourcesOf(lane, views)) : run;
    return partial(checked, self, next);
  }
}

/** Instructions whose first operand is no result. */
const withoutResult = new Set(["red", "bar", "barrier", "setmaxnreg", "nanosleep"]);

function sourcesOf(
  { root, modifiers }: PlannedInstruction["lane"],
  views: readonly OperandView[],
): readonly OperandView[] {
  const hasResult = !withoutResult.has(root) || modifiers.includes("red");
  // A shuffle hands on what lanes have, defined or not.
  const first = root === "shfl" ? 2 : hasResult ? 1 : 0;
  return views.slice(first).flatMap(registersOf);
}

/** Runs a rule after a look at whether its operands are defined. */
function withDefined(run: WarpRun, site: number, required: readonly OperandView[]): WarpRun {
  return (warp, mask) => {
    for (const view of required) {
      const index = view.defined(warp);
      const missing = mask & ~(warp.words[index] as number);
      if (missing !== 0) warp.undefined(site, index - warp.base, missing);
    }
    return run(warp, mask);
  };
}

/** The registers that a view reads. */
function registersOf(view: OperandView): readonly OperandView[] {
  const { operand } = view;
  const isRegister =
    operand.kind === "register" ||
    operand.kind === "not" ||
    (operand.kind === "address" && operand.base.kind === "register");
  if (isRegister) return [view, ...view.elements.flatMap(registersOf)];
  return view.elements.flatMap(registersOf);
}

/** Some lanes may be done before others. */
function partial(run: WarpRun, self: number, next: number): StepFunction {
  return (warp, mask) => {
    const done = run(warp, mask);
    if (done === mask) return next;
    return done === 0 ? blocked : warp.split(done, next, self, next);
  };
}

function collectiveRun(collective: Collective): WarpRun {
  return (warp: WarpState, mask: number) => {
    if (collective.aligned && !isWhole(warp, mask)) return 0;
    const machine = warp.host as unknown as MachineView;
    return collective.run({ machine, warp, mask }) === "done" ? mask : 0;
  };
}
