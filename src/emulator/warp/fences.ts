/**
 * Fences. Accesses here take effect at once, so a fence only tells the checks: what a warp publishes behind
 * it, or on which of its accesses asynchronous operations may rely.
 */
import type { WarpState } from "../machine/warp.ts";
import type { WarpInstruction, WarpRule, WarpRules } from "./rule.ts";

function proxyFence(instruction: WarpInstruction): (warp: WarpState) => void {
  const isGlobal = instruction.has("global");
  const isShared = instruction.has("shared::cta") || instruction.has("shared::cluster");
  return ({ timeline }) => {
    if (isGlobal || !isShared) timeline?.fence("gmem");
    if (isShared || !isGlobal) timeline?.fence("smem");
  };
}

const fence: WarpRule = (instruction) => {
  const { modifiers } = instruction.lane;
  const isProxy = modifiers[0]?.startsWith("proxy") === true;
  const run = isProxy ? proxyFence(instruction) : (warp: WarpState): void => warp.host.fence(warp);
  return (warp, mask) => {
    run(warp);
    return mask;
  };
};

export const fenceRules: WarpRules = { membar: fence, fence };
