/** Whether code reads or writes blocks by lanes: then it has to be fenced before a copy overwrites them. */
import type { AnyOp } from "../../ir/node.ts";
import { accessesOf, windowedBy } from "../../ir/traits.ts";
import { regionList } from "../../ir/traverse.ts";
import type { Ref } from "../ref.ts";
import { origin } from "../traced.ts";

/** Whether lanes access the memory of `blocks` in `ops`, by any window on it. */
export function accessedByThreads(ops: readonly AnyOp[], blocks: readonly Ref[]): boolean {
  const windows = new Set(blocks.map((block) => block[origin].value));
  const visit = (list: readonly AnyOp[]): boolean =>
    list.some((op) => {
      const source = windowedBy(op);
      if (source !== undefined && windows.has(source))
        for (const result of op.results) windows.add(result);
      const accesses = accessesOf(op).some(
        ({ value, proxy }) => proxy === "generic" && windows.has(value),
      );
      return accesses || regionList(op).some(({ ops: inner }) => visit(inner));
    });
  return visit(ops);
}
