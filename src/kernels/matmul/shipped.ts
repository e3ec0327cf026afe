/** What was measured of products and comes with the package, as lines of a tuning file. */
import { TuningTable } from "../../device/tuning/table.ts";
import { measuredLines } from "./measured.ts";

let table: TuningTable | undefined;

export function shippedTable(): TuningTable {
  table ??= TuningTable.parse(measuredLines, "what comes with the package");
  return table;
}
