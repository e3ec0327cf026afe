/** Products whose factor a loop holds in registers: it is copied for each of them in every round (`../factors/renew.ts`). */
import { codes } from "../../support/diagnostic-codes/index.ts";
import { renewal } from "../wgmma-register-operands/renew.ts";
import type { PtxModule, SourcePosition } from "../module.ts";
import type { PerformanceNote } from "./note.ts";

export function renewedFactorNotes({ declarations, files }: PtxModule): readonly PerformanceNote[] {
  const counts = new Map<
    string,
    { readonly position: SourcePosition | undefined; count: number }
  >();
  for (const each of declarations)
    for (const statement of each.kind === "function" ? (each.body ?? []) : []) {
      if (statement.kind !== "instruction" || statement.comment !== renewal) continue;
      const { position } = statement;
      const key = JSON.stringify(position ?? "nowhere");
      const known = counts.get(key) ?? { position, count: 0 };
      counts.set(key, known);
      known.count += 1;
    }
  return [...counts.values()].map(({ position, count }) => {
    const file = position === undefined ? undefined : files[position.file - 1];
    return {
      code: "TW7511",
      message: "the left factor of a wgmma stays in registers over the rounds of a loop",
      because: `its ${count} registers are copied in every round: assemblers have given registers away that a loop reads and does not write`,
      remedy: codes.TW7511.remedy,
      position:
        position === undefined || file === undefined
          ? undefined
          : { file, line: position.line, column: position.column },
    };
  });
}
