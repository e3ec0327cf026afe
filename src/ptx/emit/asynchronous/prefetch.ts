/**
 * Prefetching a window into the L2 cache: one lane asks for each line of 128 bytes. Lanes share the window
 * out as for a load of 16 bytes each, of which every eighth asks. Tensor maps are asked for by one lane of all who run it.
 */
import type { Op } from "../../../ir/node.ts";
import type { Register } from "../../module.ts";
import { tensorMaps } from "../../../layout/model/tensor-maps.ts";
import { address, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { onlyAccess } from "../memory/access.ts";
import type { Unit } from "../memory/units.ts";
import { firstLane } from "../synchronization.ts";
import { mapParameter } from "./tensor-copies.ts";

const lineBytes = 128;

export function prefetch(op: Op<"prefetch">, context: EmitContext): void {
  const { code } = context;
  const access = onlyAccess(context, op);
  const ask = (units: readonly Unit[]): void => {
    for (const { address, guard, registers } of units) {
      const asking = oneOfLine(context, (registers.length * access.format.bits) / 8);
      const both =
        guard === undefined || asking === undefined
          ? (guard ?? asking)
          : code.make("pred", "and.pred", guard, asking);
      const emit = (): void => {
        code.emit("prefetch.global.L2", [address]);
      };
      if (both === undefined) emit();
      else code.guarded(both, emit);
    }
  };
  // Narrow units at an overhanging end reach the same lines.
  ask(access.units());
}

/** Whether the lane's unit begins a line, where neighbouring lanes have neighbouring units. */
function oneOfLine({ code, numbers }: EmitContext, bytes: number): Register | undefined {
  const lanes = Math.min(32, Math.floor(lineBytes / bytes));
  if (lanes <= 1) return undefined;
  const place = code.make("b32", "and.b32", numbers.lane, integer(lanes - 1));
  return code.make("pred", "setp.eq.u32", place, integer(0));
}

export function prefetchMaps(op: Op<"prefetch_maps">, context: EmitContext): void {
  const { maps = [] } = op.attributes;
  if (maps.length === 0) return;
  const known = tensorMaps(context.kernel, context.windows);
  const ofArray = known.get(context.windows.of(op.operands.ref).root);
  const registers = maps.map((text) => {
    const map = ofArray?.get(text);
    if (map === undefined) throw new Error(`no copy goes by the map ${text}`);
    return mapParameter(context, map);
  });
  context.code.guarded(firstLane(context), () => {
    for (const register of registers) context.code.emit("prefetch.tensormap", [address(register)]);
  });
}
