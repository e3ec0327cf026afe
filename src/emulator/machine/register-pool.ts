/**
 * The registers that the warps of a block share. Each warp begins with what the entry's directives say;
 * `setmaxnreg.dec` gives some back to the block, and `setmaxnreg.inc` takes some, waiting for them where they
 * have yet to come back:
 *
 *   256 lanes, 128 registers each     warps 0 … 3: dec 40     warps 4 … 7: inc 216
 *   free registers a lane             4 · 88                   0
 */
import type { FunctionDirective } from "../../ptx/module.ts";

/** Registers of a processor. */
const processorRegisters = 65536;
const step = 8;
const least = 24;
const most = 256;

/** Registers that each lane has at the start; undefined where the directives leave that to the assembler. */
export function entryRegisters(directives: readonly FunctionDirective[]): number | undefined {
  const value = (name: string): readonly number[] | undefined =>
    directives.find((directive) => directive.name === name)?.values;
  const given = value("maxnreg")?.[0];
  if (given !== undefined) return given;
  const lanes = (value("reqntid") ?? value("maxntid"))?.reduce(
    (product, each) => product * each,
    1,
  );
  const blocks = value("minnctapersm")?.[0];
  if (lanes === undefined || blocks === undefined) return undefined;
  const share = processorRegisters / (blocks * 32 * Math.ceil(lanes / 32));
  return Math.min(most - 1, step * Math.floor(share / step));
}

export type BudgetAnswer =
  | { readonly kind: "granted" }
  | { readonly kind: "wait" }
  | { readonly kind: "illegal"; readonly expected: string };

export class RegisterBudget {
  readonly #held: (number | undefined)[];
  #free = 0;

  constructor(warps: number, directives: readonly FunctionDirective[]) {
    this.#held = new Array<number | undefined>(warps).fill(entryRegisters(directives));
  }

  /** A warp asks for another number of registers for each of its lanes. */
  set(warp: number, registers: number, increases: boolean): BudgetAnswer {
    if (registers < least || registers > most || registers % step !== 0)
      return { kind: "illegal", expected: `a multiple of ${step} from ${least} to ${most}` };
    const held = this.#held[warp];
    if (held === undefined) return { kind: "granted" };
    if (increases && registers < held)
      return { kind: "illegal", expected: `at least the ${held} registers that the warp has` };
    if (!increases && registers > held)
      return { kind: "illegal", expected: `at most the ${held} registers that the warp has` };
    if (registers - held > this.#free) return { kind: "wait" };
    this.#free -= registers - held;
    this.#held[warp] = registers;
    return { kind: "granted" };
  }
}
