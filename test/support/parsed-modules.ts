/**
 * PTX that tests run again and again, with other data, seeds or checks: one text is one module, which the emulator compiles
 * once. Nothing changes a module that was parsed.
 */
import type { PtxModule } from "../../src/ptx/module.ts";
import { parsePtx } from "../../src/ptx/parser/index.ts";
import { Memo } from "../../src/support/memo.ts";

/** As many as the emulator keeps the programs of. */
const modules = new Memo<PtxModule>(128);

export function parsedModule(text: string): PtxModule {
  return modules.get(text, () => parsePtx(text));
}
