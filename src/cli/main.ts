#!/usr/bin/env node
/** The `tilewright` command: this process's parameters, streams and exit status, for `command-line.ts`. */
import { endWithReader } from "./closed-pipe.ts";
import { runCommandLine } from "./command-line.ts";
import { failureText } from "./failure.ts";
import { cannotWrite } from "./files.ts";

const { stdout, stderr } = process;
const exit = (): never => process.exit();
endWithReader(stdout, exit, (error) => {
  stderr.write(`${failureText(cannotWrite("standard output", error))}\n`, () => process.exit(1));
});
endWithReader(stderr, exit, () => process.exit(1));

// What a program throws after it was begun, and nobody catches, is told as everything else is; unless the program listens itself.
process.on("uncaughtException", (error: unknown) => {
  if (process.listenerCount("uncaughtException") > 1) return;
  stderr.write(`${failureText(error)}\n`, () => process.exit(1));
});

const status = await runCommandLine(process.argv.slice(2));
// A program that went well may still have set an exit status of its own.
if (status !== 0) process.exitCode = status;
