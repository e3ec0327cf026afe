#!/usr/bin/env node
/** The `tilewright` command: this process's parameters, streams and exit status, for `command-line.ts`. */
import { endWithReader } from "./closed-pipe.ts";
import { runCommandLine } from "./command-line.ts";

for (const stream of [process.stdout, process.stderr]) endWithReader(stream, () => process.exit());

const status = await runCommandLine(process.argv.slice(2));
// A program that went well may still have set an exit status of its own.
if (status !== 0) process.exitCode = status;
