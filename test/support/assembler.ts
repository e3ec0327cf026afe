/** Which tools of the CUDA toolkit are installed. */
import { spawnSync } from "node:child_process";

/** What a tool says of its version; undefined where it is not installed. */
function versionOf(tool: string): string | undefined {
  const { status, stdout } = spawnSync(tool, ["--version"], { encoding: "utf8" });
  return status === 0 ? (/V\d+(?:\.\d+)*/.exec(stdout)?.[0] ?? stdout.trim()) : undefined;
}

export const assemblerVersion = versionOf("ptxas");
export const hasPtxas = assemblerVersion !== undefined;
/** Whether machine code can be read, too. */
export const hasDisassembler = hasPtxas && versionOf("nvdisasm") !== undefined;
