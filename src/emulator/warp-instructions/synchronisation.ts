/** Barriers of a block and of a warp, and instructions that only order memory. */
import { OperandError } from "../thread-instructions/writer.ts";
import type { Barrier } from "../machine/named-barriers.ts";
import type { WarpState } from "../machine/warp.ts";
import { eachLane, lowestLane } from "../program/lanes.ts";
import type { WarpInstruction, WarpRule, WarpRules, WarpRun } from "./rule.ts";

/**
 * Whether all lanes of the warp that still run are here. Lanes that have yet to come are waited for; those
 * that have gone past, behind a branch that only the others took, will not come.
 */
export function isWhole(warp: WarpState, mask: number): boolean {
  const missing = warp.live & ~mask;
  if (missing === 0) return true;
  const skipped = missing & warp.groups.skipped();
  if (skipped !== 0) throw warp.host.divergence(warp, mask, skipped);
  return false;
}

interface BarrierForm {
  readonly waits: boolean;
  readonly aligned: boolean;
  readonly reduces: "popc" | "and" | "or" | undefined;
  /** Positions of the operands. */
  readonly id: number;
  readonly count: number | undefined;
  readonly predicate: number | undefined;
}

function barrierForm(instruction: WarpInstruction): BarrierForm {
  const { lane, operands } = instruction;
  const mode = lane.oneOf(["sync", "arrive", "red"]);
  if (mode === undefined) throw new OperandError("barrier mode");
  const aligned = lane.root === "bar" || lane.has("aligned");
  const id = mode === "red" ? 1 : 0;
  const last = operands.length - 1;
  const reduces = mode === "red" ? lane.oneOf(["popc", "and", "or"]) : undefined;
  const lastOfPlain = mode === "red" ? last - 1 : last;
  if (lastOfPlain < id) throw new OperandError("barrier without a number");
  return {
    waits: mode !== "arrive",
    aligned,
    reduces,
    id,
    count: lastOfPlain > id ? id + 1 : undefined,
    predicate: mode === "red" ? last : undefined,
  };
}

/** A warp's arrival; lanes that wait keep the generation that must end. */
function arrive(
  instruction: WarpInstruction,
  form: BarrierForm,
  warp: WarpState,
  mask: number,
  barrier: Barrier,
): void {
  const first = lowestLane(mask);
  let predicate = 0;
  if (form.predicate !== undefined) {
    const source = instruction.view(form.predicate);
    eachLane(mask, (lane) => {
      if (source.word(warp, lane) !== 0) predicate |= 1 << lane;
    });
  }
  barrier.arrive({
    warp,
    mask,
    count: form.count === undefined ? undefined : instruction.view(form.count).word(warp, first),
    aligned: form.aligned,
    predicate,
    knowledge: warp.timeline?.publish(),
    handed: warp.learning?.handed,
  });
  if (barrier.complete(warp.block.warps)) warp.host.changed();
}

function takeResult(
  instruction: WarpInstruction,
  form: BarrierForm,
  warp: WarpState,
  mask: number,
  barrier: Barrier,
): void {
  const { lanes, holding, knowledge, handed } = barrier.last;
  warp.timeline?.acquire(knowledge);
  warp.learning?.meet(handed);
  if (form.reduces === undefined) return;
  const results = { popc: holding, and: holding === lanes ? 1 : 0, or: holding > 0 ? 1 : 0 };
  const value = results[form.reduces];
  eachLane(mask, (lane) => instruction.view(0).setWord(warp, lane, value));
}

const blockBarrier: WarpRule = (instruction) => {
  const form = barrierForm(instruction);
  return (warp, mask) => {
    if (form.aligned && !isWhole(warp, mask)) return 0;
    const number = instruction.view(form.id).word(warp, lowestLane(mask));
    const barrier = warp.block.barriers.all[number];
    if (barrier === undefined) throw new RangeError(`barrier ${number}`);
    const group = warp.groups.current;
    if (group.attendance === undefined) {
      const { generation } = barrier;
      warp.decide();
      arrive(instruction, form, warp, mask, barrier);
      if (!form.waits) return mask;
      group.attendance = { barrier, generation };
    }
    if (barrier.generation === group.attendance.generation) return 0;
    group.attendance = undefined;
    takeResult(instruction, form, warp, mask, barrier);
    return mask;
  };
};

/** Lanes meet by the mask they name, wherever in the program they stand. */
function warpBarrier(instruction: WarpInstruction): WarpRun {
  const members = instruction.view(0);
  return (warp, mask) => {
    const { warpSync } = warp;
    const waiting = mask & ~warpSync.released;
    eachLane(waiting, (lane) => {
      const named = members.word(warp, lane);
      const arrived = warpSync.arrived.get(named) ?? 0;
      warpSync.arrived.set(named, arrived | (1 << lane));
    });
    for (const [named, arrived] of warpSync.arrived)
      if ((named & warp.live & ~arrived) === 0) {
        warpSync.arrived.delete(named);
        warpSync.released |= arrived;
        warp.timeline?.meet();
        // Lanes that all come together let nobody go but themselves: a loop that polls with a meeting in it changes nothing.
        if ((arrived & ~mask) !== 0) warp.host.changed();
      }
    const done = mask & warpSync.released;
    warpSync.released &= ~done;
    return done;
  };
}

const bar: WarpRule = (instruction) =>
  instruction.has("warp") ? warpBarrier(instruction) : blockBarrier(instruction);

const nothing: WarpRule = () => (_warp, mask) => mask;

/** `setmaxnreg` changes no values; it may wait for registers of other warps. */
const registerBudget: WarpRule = (instruction) => {
  const amount = instruction.view(0);
  const increases = instruction.has("inc");
  return (warp, mask) => {
    if (!isWhole(warp, mask)) return 0;
    const registers = amount.word(warp, lowestLane(mask));
    const answer = warp.block.budget.set(warp.index, registers, increases);
    if (answer.kind === "wait") return 0;
    if (answer.kind === "illegal")
      throw warp.host.illegalBudget(warp, instruction.site, registers, answer.expected);
    warp.host.changed();
    return mask;
  };
};

export const synchronisationRules: WarpRules = {
  bar,
  barrier: blockBarrier,
  nanosleep: nothing,
  griddepcontrol: nothing,
  setmaxnreg: registerBudget,
};
