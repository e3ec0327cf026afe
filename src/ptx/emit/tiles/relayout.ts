/**
 * Runs a relayout plan: each of its steps (`src/layout/relayout/steps.ts`) makes a new file of words from
 * the one before.
 *
 *   | step     | instructions                                                                       |
 *   |----------|------------------------------------------------------------------------------------|
 *   | pack     | none where whole words get new names, else `prmt`                                  |
 *   | select   | `selp` by a bit of the thread index                                                |
 *   | shuffle  | `shfl.sync.bfly`, or `.idx` where lanes do not read each other; two for 64 bits       |
 *   | exchange | for each chunk: barrier, `st.shared`, barrier, `ld.shared`                           |
 *
 * Words of a file that nobody looks at are undefined here.
 */
import type { AnyOp } from "../../../ir/node.ts";
import { registersPerLane } from "../../../layout/algebra/register-layout.ts";
import { butterfly, nothing, slotsPerWord } from "../../../layout/relayout/steps.ts";
import type {
  LaneMap,
  PackStep,
  RelayoutPlan,
  RelayoutStep,
  SelectStep,
  ShuffleStep,
} from "../../../layout/relayout/steps.ts";
import type { Register } from "../../module.ts";
import { braces, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { runExchange } from "./exchange.ts";
import { combineParts } from "./thread-parts.ts";
import { gatherWord } from "./repack.ts";
import type { WordPart } from "./repack.ts";

/** A lane's words between two steps. */
export type File = readonly (Register | undefined)[];

/** The words in the target layout. */
export function runRelayout(
  context: EmitContext,
  op: AnyOp,
  plan: RelayoutPlan,
  words: readonly Register[],
): readonly Register[] {
  let file: File = words;
  for (const step of plan.steps) file = runStep(context, op, plan, step, file);
  const some = file.find((word) => word !== undefined) ?? words[0];
  if (some === undefined) throw new Error("a tile without words");
  const count = Math.ceil(registersPerLane(plan.target, plan.shape) / slotsPerWord(plan.bits));
  return Array.from({ length: count }, (_, index) => file[index] ?? some);
}

function runStep(
  context: EmitContext,
  op: AnyOp,
  plan: RelayoutPlan,
  step: RelayoutStep,
  file: File,
): File {
  switch (step.kind) {
    case "pack":
      return pack(context, plan.bits, step, file);
    case "select":
      return select(context, step, file);
    case "shuffle":
      return shuffle(context, step, file);
    case "exchange":
      return runExchange(context, op, plan, step, file);
  }
}

function pack({ code }: EmitContext, bits: number, { words }: PackStep, file: File): File {
  const width = slotsPerWord(bits);
  const made = new Map<string, Register | undefined>();
  return words.map((slots) => {
    const key = slots.join();
    if (made.has(key)) return made.get(key);
    const parts = slots.map((slot): WordPart | undefined => {
      const word = slot === nothing ? undefined : file[Math.floor(slot / width)];
      return word && { word, part: slot % width };
    });
    const word = gatherWord(code, bits, parts);
    made.set(key, word);
    return word;
  });
}

function select({ code, numbers }: EmitContext, step: SelectStep, file: File): File {
  return step.zeros.map((zeroWord, index) => {
    const zero = file[zeroWord];
    const one = file[step.ones[index] ?? nothing];
    if (zero === undefined || one === undefined || zero === one) return zero ?? one;
    const type = zero.type === "b64" ? "b64" : "b32";
    return code.make(type, `selp.${type}`, one, zero, numbers.bit(step.bit));
  });
}

function shuffle(context: EmitContext, { words }: ShuffleStep, file: File): File {
  const sources = new Map<string, Register>();
  return words.map(({ word, lanes }) => {
    const source = file[word];
    if (source === undefined || lanes === undefined) return source;
    const mask = butterfly(lanes);
    if (mask === 0) return source;
    if (mask !== undefined) return shuffleWord(context, source, "bfly", integer(mask));
    const key = JSON.stringify(lanes);
    const lane = sources.get(key) ?? sourceLane(context, lanes);
    sources.set(key, lane);
    return shuffleWord(context, source, "idx", lane);
  });
}

/** The word of another lane of the warp. */
export function shuffleWord(
  { code }: EmitContext,
  word: Register,
  mode: "bfly" | "idx" | "up" | "down",
  lane: Register | ReturnType<typeof integer>,
): Register {
  const move = (half: Register): Register =>
    code.make("b32", `shfl.sync.${mode}.b32`, half, lane, integer(31), integer(-1));
  if (word.type !== "b64") return move(word);
  const [low, high] = splitWide({ code }, word);
  return joinWide({ code }, move(low), move(high));
}

/** The halves of a 64-bit register. */
export function splitWide(
  { code }: Pick<EmitContext, "code">,
  wide: Register,
): readonly [Register, Register] {
  const [low, high] = [code.register("b32"), code.register("b32")];
  code.emit("mov.b64", [braces([low, high]), wide]);
  return [low, high];
}

export function joinWide(
  { code }: Pick<EmitContext, "code">,
  low: Register,
  high: Register,
): Register {
  return code.make("b64", "mov.b64", braces([low, high]));
}

/** b32: the lane that this one reads. */
function sourceLane({ code, numbers }: EmitContext, lanes: LaneMap): Register {
  const parts: number[] = [];
  let flips = 0;
  lanes.forEach(({ from, flip }, position) => {
    if (from !== undefined) parts[from] = (parts[from] ?? 0) | (1 << position);
    if (flip) flips |= 1 << position;
  });
  const filled = Array.from(parts, (part) => part ?? 0);
  const read = combineParts(code, numbers.index, filled, "xor");
  if (read === undefined) return code.constant("b32", flips);
  return flips === 0 ? read : code.make("b32", "xor.b32", read, integer(flips));
}
