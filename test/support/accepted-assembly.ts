/** Whether PTX assembles, for tests: what was recorded to is not assembled again (`assembly-record.ts`). */
import { assembleNow } from "../ptxas.ts";
import { assemblyRecord } from "./assembly-record.ts";

/** What the assembler says of the text, and the text around its first complaint; empty where it is content. */
export function assemble(text: string, target: string): string {
  const record = assemblyRecord();
  const asked = `${target}\n${text}`;
  if (record.spilled(asked) !== undefined) return "";
  const said = assembleNow(text, target);
  if (said === "") record.note(asked, 0);
  return said;
}
