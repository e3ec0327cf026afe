/** Memory fences. Accesses here take effect at once, so a fence only tells the checks. */
import type { WarpRule, WarpRules } from "./rule.ts";

const fence: WarpRule = () => (warp, mask) => {
  warp.host.fence(warp);
  return mask;
};

export const fenceRules: WarpRules = { membar: fence, fence };
