/**
 * The compiler over a project of its own, for tests of what a user's types come to: what it reports,
 * one line each.
 *
 *   consumer.ts:5: Type '"f32"' is not assignable to type '"f64"'.
 */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./source-files.ts";

export const compilerPath = join(repositoryRoot, "node_modules/typescript/bin/tsc");

/** Checks the folder's files under this tsconfig.json, which it writes there. */
export function typeErrors(folder: string, config: object): Promise<readonly string[]> {
  const project = join(folder, "tsconfig.json");
  writeFileSync(project, JSON.stringify(config));
  const parameters = [compilerPath, "-p", project, "--noEmit", "--pretty", "false"];
  // Several checkers would find the same types anew, each for itself, while other tests want the cores.
  parameters.push("--checkers", "1");
  return new Promise((resolve, reject) => {
    execFile(process.execPath, parameters, { cwd: folder }, (error, stdout, stderr) => {
      if (error !== null && stdout === "") reject(new Error(stderr, { cause: error }));
      else resolve(reported(stdout));
    });
  });
}

function reported(text: string): readonly string[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => line.replace(/^(.*)\((\d+),\d+\): error TS\d+: /, "$1:$2: "));
}
