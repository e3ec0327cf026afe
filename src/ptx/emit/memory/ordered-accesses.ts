/**
 * Loads and stores of elements that others access meanwhile: one instruction for each, by one of the lanes that hold it.
 *
 *   | order   | load                      | store                     |
 *   |---------|---------------------------|---------------------------|
 *   | relaxed | ld.relaxed.gpu.global.b32 | st.relaxed.gpu.global.b32 |
 *   | acquire | ld.acquire.gpu.global.b32 |                           |
 *   | release |                           | st.release.gpu.global.b32 |
 */
import type { DType } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import type { EmitContext } from "../context.ts";
import { elementClass } from "../values.ts";
import { onlyAccess } from "./access.ts";
import { accessElements, heldElements } from "./element-accesses.ts";
import { meetBefore, strongOrderOf } from "./memory-order.ts";
import { underGuard } from "./stores.ts";

/** Lone narrow integers are extended as they are loaded. */
function loadedType({ bits, kind }: DType): string {
  return bits === 8 ? (kind === "signed" ? "s8" : "u8") : `b${bits}`;
}

export function atomicLoad(op: Op<"atomic_load">, context: EmitContext): void {
  const { code } = context;
  const { ref, fill } = op.operands;
  const { dtype } = context.ref(ref);
  const access = onlyAccess(context, op);
  const opcode = `ld${strongOrderOf(op).opcode}.${access.space}.${loadedType(dtype)}`;
  accessElements(
    op,
    context,
    access,
    [],
    ({ address, guard }, _, old) => {
      underGuard(code, guard, () => {
        code.emit(opcode, [old ?? code.register(elementClass(dtype)), address]);
      });
    },
    fill,
  );
}

export function atomicStore(op: Op<"atomic_store">, context: EmitContext): void {
  const { code } = context;
  const { ref, value } = op.operands;
  const { bits } = context.ref(ref).dtype;
  const access = onlyAccess(context, op);
  const order = strongOrderOf(op);
  const elements = heldElements(context, value);
  const opcode = `st${order.opcode}.${access.space}.${bits === 8 ? "u8" : `b${bits}`}`;
  meetBefore(context, order);
  for (const { registers, address, guard } of access.units()) {
    const [register = 0] = registers;
    const element = elements[register];
    if (element === undefined) throw new Error("a store without its value");
    underGuard(code, guard, () => {
      code.emit(opcode, [address, element]);
    });
  }
}
