/**
 * Rows of matrices in shared memory, each at the address that a lane gives, aligned to 16 bytes.
 *
 *   ldmatrix….m8n8.x2…     lanes 0 … 7 give the rows of the first matrix, 8 … 15 those of the second
 */
import { recordOrdinary } from "../asynchronous.ts";
import { addressKind } from "../barriers/rules.ts";
import type { CollectiveCall, CollectiveInstruction, OperandView, Place } from "../collective.ts";
import { checkWritten } from "../reports.ts";

const rowBytes = 16;

/** The places of `count` rows, of which the first `bytes` are read or written. */
export function rowPlaces(
  instruction: CollectiveInstruction,
  { machine, warp }: CollectiveCall,
  address: OperandView,
  count: number,
  mode: "read" | "write",
  bytes = rowBytes,
): readonly Place[] {
  const kind = addressKind(instruction.modifiers);
  return Array.from({ length: count }, (_, lane) => {
    const request = { warp, instruction, lane, kind, bytes, alignment: rowBytes };
    const place = machine.resolve({ ...request, address: address.address(warp, lane) });
    recordOrdinary({ machine, warp, lane, instruction }, place, bytes, mode);
    if (mode === "read") checkWritten(machine, warp, instruction, place, bytes);
    return place;
  });
}
