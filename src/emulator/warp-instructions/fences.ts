/**
 * Fences. Accesses here take effect at once, so a fence only tells the checks: what a warp publishes behind
 * it, or on which of its accesses asynchronous operations may rely.
 */
import { mapOrderOf } from "../checks/tensor-map-order.ts";
import { scopeOf } from "../../happens-before/memory-scopes.ts";
import type { WarpState } from "../machine/warp.ts";
import { tensorMapBytes } from "../tensor-map-fields.ts";
import { eachLane } from "../program/lanes.ts";
import type { WarpInstruction, WarpRule, WarpRules, WarpRun } from "./rule.ts";

function proxyFence(instruction: WarpInstruction): (warp: WarpState) => void {
  const isGlobal = instruction.has("global");
  const isShared = instruction.has("shared::cta") || instruction.has("shared::cluster");
  return ({ timeline }) => {
    // Triton lets the issuer of a copy fence what others wrote before a barrier.
    if (isGlobal || !isShared) timeline?.fence("gmem");
    if (isShared || !isGlobal) timeline?.fence("smem");
  };
}

/** `fence.proxy.tensormap::generic`: of writes to tensor maps, or of the map at an address. */
function mapFence(instruction: WarpInstruction): WarpRun {
  const address = instruction.has("acquire") ? instruction.view(0) : undefined;
  const scope = scopeOf(instruction.lane.modifiers);
  return (warp, mask) => {
    warp.host.fence(warp, scope);
    const { host, timeline } = warp;
    const order = mapOrderOf(host);
    if (address === undefined) {
      if (timeline !== undefined) order.release(timeline);
      return mask;
    }
    const maps = new Set<number>();
    eachLane(mask, (lane) => {
      const at = address.address(warp, lane);
      maps.add(warp.locate(instruction.site, lane, "generic", at, tensorMapBytes).offset);
    });
    if (timeline !== undefined) for (const map of maps) order.acquire(timeline, map);
    return mask;
  };
}

const fence: WarpRule = (instruction) => {
  const { modifiers } = instruction.lane;
  if (modifiers.includes("tensormap::generic")) return mapFence(instruction);
  const isProxy = modifiers[0]?.startsWith("proxy") === true;
  const scope = scopeOf(modifiers);
  const run = isProxy
    ? proxyFence(instruction)
    : (warp: WarpState): void => warp.host.fence(warp, scope);
  return (warp, mask) => {
    run(warp);
    return mask;
  };
};

export const fenceRules: WarpRules = { membar: fence, fence };
