/** `alloca`, `stacksave` and `stackrestore`: memory on lanes' stacks whose size is known when the kernel runs. */
import { TilewrightError } from "../../support/diagnostics.ts";
import { eachLane } from "./rule.ts";
import type { WarpInstruction, WarpRule, WarpRules } from "./rule.ts";

const defaultAlignment = 16;

function alignmentOf(instruction: WarpInstruction): number {
  const given = instruction.operands[2]?.operand;
  return given?.kind === "integer" ? Math.max(1, Number(given.value)) : defaultAlignment;
}

const allocate: WarpRule = (instruction) => {
  const [target, size] = [instruction.view(0), instruction.view(1)];
  const alignment = alignmentOf(instruction);
  return (warp, mask) => {
    let bytes = 0;
    eachLane(mask, (lane) => {
      bytes = Math.max(bytes, size.address(warp, lane));
    });
    const start = warp.reserveStack(bytes, alignment);
    if (start === undefined)
      throw new TilewrightError({
        code: "TW8010",
        message: `${instruction.lane.instruction.opcode} of ${warp.title} goes past the end of the stack`,
        location: warp.host.site(instruction.site).location,
        found: `${bytes} bytes`,
      });
    eachLane(mask, (lane) => target.setWide(warp, lane, BigInt(start)));
    return mask;
  };
};

/** Memory of the stack is not used again, so that there is nothing to come back to. */
const save: WarpRule = (instruction) => (warp, mask) => {
  eachLane(mask, (lane) => instruction.view(0).setWide(warp, lane, 0n));
  return mask;
};

const restore: WarpRule = () => (_warp, mask) => mask;

export const stackRules: WarpRules = {
  alloca: allocate,
  stacksave: save,
  stackrestore: restore,
};
