/** The assembler of the CUDA toolkit, where it is installed: one module, or many kernels in one call, or machine code as text. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PtxFunction, PtxModule, Statement } from "../src/ptx/module.ts";
import { printPtx } from "../src/ptx/printer.ts";

export { hasDisassembler, hasPtxas } from "./support/assembler.ts";

/** What the assembler says of the text, and the text around its first complaint; empty where it is content. */
export function assembleNow(text: string, target: string): string {
  // The lowest level of optimisation: whether it assembles does not depend on it.
  const said = runPtxas(text, target, "-O0");
  return said === "" ? "" : `${said}\n${lineOf(text, said)}`;
}

/** What the assembler tells about one module, optimised. */
export function describeAssembly(text: string, target: string): string {
  return runPtxas(text, target, "-v");
}

export interface Assembly {
  /** What the assembler tells about the module. */
  readonly said: string;
  /** The machine code that it makes of it, as text. */
  readonly code: string;
}

/** One module, optimised. */
export function disassemble(text: string, target: string): Assembly {
  return inFolder((folder) => {
    const said = assembleIn(folder, text, target, "-v");
    const output = { encoding: "utf8", maxBuffer: 2 ** 28 } as const;
    const { status, stdout } = spawnSync("nvdisasm", ["-c", join(folder, "module.cubin")], output);
    if (status !== 0) throw new Error(`there is no machine code: ${said}`);
    return { said, code: stdout };
  });
}

function runPtxas(text: string, target: string, option: string): string {
  return inFolder((folder) => assembleIn(folder, text, target, option));
}

function assembleIn(folder: string, text: string, target: string, option: string): string {
  const file = join(folder, "module.ptx");
  writeFileSync(file, text);
  const options = [`-arch=${target}`, option, "-o", join(folder, "module.cubin"), file];
  const { stderr, stdout } = spawnSync("ptxas", options, { encoding: "utf8" });
  return `${stdout}${stderr}`.replaceAll(file, "module.ptx").trim();
}

function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "ptxas-"));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** All kernels as one module, each entry under the name it is given here, without source lines. */
export function combineModules(modules: readonly (readonly [name: string, PtxModule])[]): string {
  const [first] = modules;
  if (first === undefined) throw new Error("there is nothing to assemble");
  const version = modules
    .map(([, module]) => module.version)
    .reduce((newest, each) => (Number(each) > Number(newest) ? each : newest));
  const variables = new Map<string, PtxModule["declarations"][number]>();
  const functions: PtxFunction[] = [];
  for (const [name, { declarations }] of modules)
    for (const declaration of declarations)
      if (declaration.kind === "variable") variables.set(declaration.name, declaration);
      else {
        const body = declaration.body && withoutPositions(declaration.body);
        functions.push({ ...declaration, name, body });
      }
  const declarations = [...variables.values(), ...functions];
  return printPtx({ version, target: first[1].target, files: [], declarations });
}

/** A module's text without the lines of source that it was made from. */
export function textWithoutLines({ declarations, ...module }: PtxModule): string {
  return printPtx({
    ...module,
    files: [],
    declarations: declarations.map((each) =>
      each.kind === "variable" ? each : { ...each, body: each.body && withoutPositions(each.body) },
    ),
  });
}

function withoutPositions(statements: readonly Statement[]): readonly Statement[] {
  return statements.map((statement) => {
    if (statement.kind === "block") return { ...statement, body: withoutPositions(statement.body) };
    return statement.kind === "instruction" ? { ...statement, position: undefined } : statement;
  });
}

function lineOf(text: string, said: string): string {
  const line = Number(/line (\d+)/.exec(said)?.[1] ?? 0);
  return text
    .split("\n")
    .slice(Math.max(0, line - 3), line + 1)
    .join("\n");
}
