/** Steps that move lanes elsewhere: exit, return, calls, indexed jumps, traps. */
import type { Operand } from "../../ptx/module.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { OperandView } from "../collective.ts";
import { OperandError } from "../thread-instructions/writer.ts";
import type { WarpState } from "../machine/warp.ts";
import { eachLane, lowestLane } from "./lanes.ts";
import { rearranged } from "./function.ts";
import type { Site, StepFunction } from "./program.ts";
import type { ProgramFunction } from "./function.ts";
import { functionAddress } from "./resolver.ts";
import { variableBytes } from "./symbols.ts";

function leave(warp: WarpState, mask: number): number {
  warp.groups.exit(mask);
  if (warp.block.warps.every(({ live }) => live === 0)) warp.host.blockEnded(warp.block);
  warp.block.barriers.completeAll(warp.block.warps);
  warp.host.changed();
  return rearranged;
}

export const exitStep: StepFunction = leave;

/** Copies bytes between two places of every lane's stack. */
function copyOnStack(warp: WarpState, mask: number, from: number, to: number, bytes: number): void {
  const { stack, stackBytes } = warp;
  eachLane(mask, (lane) => {
    const start = lane * stackBytes;
    stack.bytes.copyWithin(start + to, start + from, start + from + bytes);
    stack.states.copyWithin(start + to, start + from, start + from + bytes);
  });
}

export const returnStep: StepFunction = (warp, mask) => {
  const { frame } = warp.groups.current;
  const { parent } = frame;
  if (parent === undefined) return leave(warp, mask);
  frame.resultPlaces.forEach((to, position) => {
    const variable = frame.function.declaration.results[position];
    const from = frame.function.results[position];
    if (variable === undefined || from === undefined) return;
    copyOnStack(warp, mask, frame.localBase + from, parent.localBase + to, variableBytes(variable));
  });
  warp.closeFrame(frame, mask);
  warp.groups.enter(parent, frame.returnStep);
  return rearranged;
};

export interface CallForm {
  readonly results: readonly Operand[];
  readonly callee: Operand;
  readonly arguments: readonly Operand[];
}

/** `call (r), f, (a, b)`, with results and arguments left out where there are none. */
export function callForm(operands: readonly Operand[]): CallForm {
  const [first] = operands;
  const hasResults = first?.kind === "list";
  const callee = operands[hasResults ? 1 : 0];
  const given = operands[hasResults ? 2 : 1];
  if (callee === undefined) throw new OperandError("call of nothing");
  return {
    results: hasResults ? first.elements : [],
    callee,
    arguments: given?.kind === "list" ? given.elements : [],
  };
}

/** Runs a call whose callee every lane of the mask agrees on. */
export function callStep(
  next: number,
  callee: (warp: WarpState, lane: number) => ProgramFunction,
  argumentPlaces: readonly number[],
  resultPlaces: readonly number[],
  self: number,
): StepFunction {
  return (warp, mask) => {
    const target = callee(warp, lowestLane(mask));
    let same = 0;
    eachLane(mask, (lane) => {
      if (callee(warp, lane) === target) same |= 1 << lane;
    });
    if (same !== mask) return warp.split(same, self, self, next);
    const { frame: caller } = warp.groups.current;
    const frame = warp.openFrame(target, caller, next, resultPlaces, mask);
    target.declaration.parameters.forEach((variable, position) => {
      const from = argumentPlaces[position];
      const to = target.parameters[position];
      if (from === undefined || to === undefined) return;
      copyOnStack(
        warp,
        mask,
        caller.localBase + from,
        frame.localBase + to,
        variableBytes(variable),
      );
    });
    warp.groups.enter(frame, target.firstStep);
    return rearranged;
  };
}

/** The function that an address stands for. */
export function functionAt(
  address: number,
  functions: readonly ProgramFunction[],
): ProgramFunction {
  const found = functions[address - functionAddress(0)];
  if (found === undefined) throw new RangeError(`no function at address ${address}`);
  return found;
}

/** `brx.idx index, table`. */
export function indexedJump(
  index: OperandView,
  targets: readonly number[],
  self: number,
  reconvergence: number,
): StepFunction {
  return (warp, mask) => {
    const chosen = index.word(warp, lowestLane(mask));
    let same = 0;
    eachLane(mask, (lane) => {
      if (index.word(warp, lane) === chosen) same |= 1 << lane;
    });
    const target = targets[chosen];
    if (target === undefined) throw new RangeError(`jump ${chosen} of ${targets.length}`);
    return same === mask ? target : warp.split(same, target, self, reconvergence);
  };
}

export function trapStep({ location }: Site): StepFunction {
  return (warp, mask) => {
    throw new TilewrightError({
      code: "TW8016",
      message: `lane ${lowestLane(mask)} of ${warp.title} executed trap`,
      location,
      expected: "a way past the trap",
      found: "lanes that reach it",
    });
  };
}
