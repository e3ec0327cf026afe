/**
 * A command line from its parameters to its exit status: parse, run the chosen command, tell how it went.
 *
 *   exit status   0  fine
 *                 1  something was found, or failed
 *                 2  the command line is wrong
 */
import { readFileSync } from "node:fs";
import { CommanderError } from "commander";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import { failureDocument, failureText } from "./failure.ts";
import { Output } from "./output.ts";
import { buildProgram } from "./program.ts";
import type { ChosenCommand } from "./program.ts";

function readVersion(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return (manifest as { readonly version: string }).version;
}

/** Whether the command itself, not the program after `--`, is asked for JSON. */
function asksForJson(parameters: readonly string[]): boolean {
  const end = parameters.indexOf("--");
  return parameters.slice(0, end === -1 ? undefined : end).includes("--json");
}

/** The command asked for, or the exit status where there is none to run. */
function parse(parameters: readonly string[], output: Output): ChosenCommand | number {
  let chosen: ChosenCommand | undefined;
  const program = buildProgram(readVersion(), (command) => {
    chosen = command;
  });
  if (output.json)
    program.commands.concat(program).forEach((command) => {
      command.configureOutput({ writeErr: () => undefined });
    });
  try {
    program.parse(parameters, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return 0;
    output.document(failureDocument(usageError(error, parameters)));
    return 2;
  }
  return chosen ?? 2;
}

function usageError({ message }: CommanderError, given: readonly string[]): TilewrightError {
  return new TilewrightError({
    code: "TW5007",
    message: message.replace(/^error: /, ""),
    location: unknownLocation,
    expected: "a command, its arguments and options as --help lists them",
    found: given.join(" ") || "nothing",
  });
}

/** Runs what these parameters ask for; gives the exit status. */
export async function runCommandLine(parameters: readonly string[]): Promise<number> {
  const { stdout, stderr, env: environment } = process;
  const output = new Output({ stdout, stderr, json: asksForJson(parameters), environment });
  const command = parse(parameters, output);
  if (typeof command === "number") return command;
  try {
    return await command(output);
  } catch (error) {
    output.clearProgress();
    if (output.json) output.document(failureDocument(error));
    else output.report(failureText(error));
    return 1;
  }
}
