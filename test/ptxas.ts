/** The assembler of the CUDA toolkit, where it is installed. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const hasPtxas = spawnSync("ptxas", ["--version"]).status === 0;

/** What the assembler says of the text, and the text around its first complaint; empty where it is content. */
export function assemble(text: string, target: string): string {
  const folder = mkdtempSync(join(tmpdir(), "ptxas-"));
  try {
    const file = join(folder, "module.ptx");
    writeFileSync(file, text);
    // The lowest level of optimisation: whether it assembles does not depend on it.
    const options = [`-arch=${target}`, "-O0", "-o", join(folder, "module.cubin"), file];
    const { stderr, stdout } = spawnSync("ptxas", options, { encoding: "utf8" });
    const said = `${stdout}${stderr}`.replaceAll(file, "module.ptx").trim();
    return said === "" ? "" : `${said}\n${lineOf(text, said)}`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function lineOf(text: string, said: string): string {
  const line = Number(/line (\d+)/.exec(said)?.[1] ?? 0);
  return text
    .split("\n")
    .slice(Math.max(0, line - 3), line + 1)
    .join("\n");
}
