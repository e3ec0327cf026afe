/**
 * Instructions that a warp runs as a whole. A rule looks at the instruction once and gives what runs it:
 * the lanes that are done. Lanes that are not done try again later; 0 means all of them wait.
 */
import type { OperandView } from "../collective.ts";
import { OperandError } from "../thread-instructions/writer.ts";
import type { LaneInstruction } from "../thread-instructions/rule.ts";
import type { WarpState } from "../machine/warp.ts";

export type WarpRun = (warp: WarpState, mask: number) => number;

export class WarpInstruction {
  readonly lane: LaneInstruction;
  readonly site: number;
  readonly operands: readonly OperandView[];

  constructor(lane: LaneInstruction, site: number, operands: readonly OperandView[]) {
    this.lane = lane;
    this.site = site;
    this.operands = operands;
  }

  has(modifier: string): boolean {
    return this.lane.has(modifier);
  }

  view(position: number): OperandView {
    const view = this.operands[position];
    if (view === undefined) throw new OperandError(`no operand ${position + 1}`);
    return view;
  }

  /** The first operand's parts: `d|p` gives both, `d` only the first. */
  results(): readonly [OperandView | undefined, OperandView | undefined] {
    const target = this.view(0);
    const parts = target.operand.kind === "pair" ? target.elements : [target];
    for (const { operand } of parts)
      if (operand.kind !== "register" && operand.kind !== "discard")
        throw new OperandError(`${operand.kind} operand as a result`);
    return [parts[0], parts[1]];
  }
}

export type WarpRule = (instruction: WarpInstruction) => WarpRun;
export type WarpRules = { readonly [root: string]: WarpRule };
