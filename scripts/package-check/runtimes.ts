/**
 * The package in Node, Bun and Deno: the README's programs print what it says, every entry is imported and used (`scripts/smoke.mjs`), the command
 * line runs a file, and CommonJS can require the package.
 */
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { repositoryRoot } from "../../test/source-files.ts";
import { Wrong } from "./check.ts";
import type { Check, Subject } from "./check.ts";
import { run, tail } from "./processes.ts";
import type { Ended } from "./processes.ts";
import { firstProgram, isRight, readmePrograms } from "./readme.ts";
import type { Places } from "./readme.ts";

interface Runtime {
  readonly name: string;
  /** The executable, and what comes before the file that it runs. */
  readonly command: (
    subject: Subject,
  ) => Promise<readonly [executable: string, ...parameters: string[]]>;
  /** Node erases types by itself from 22.18 on; before, the command line does. */
  readonly readsTypes: boolean;
  readonly places?: Places;
}

const ending = process.platform === "win32" ? ".exe" : "";
const command = "node_modules/tilewright/dist/cli/main.js";

function node(version: number): Runtime {
  return {
    name: `node@${version}`,
    command: async ({ tool }) => [join(await tool(`node@${version}`), `bin/node${ending}`)],
    readsTypes: version >= 22,
  };
}

const runtimes: readonly Runtime[] = [
  {
    name: "node",
    command: () => Promise.resolve([process.execPath]),
    readsTypes: Number(process.versions.node.split(".")[0]) >= 22,
  },
  ...[20, 22, 24, 26].map(node),
  {
    name: "bun",
    // A program for every system, under this name.
    command: async ({ tool }) => [join(await tool("bun"), "bin/bun.exe")],
    readsTypes: true,
    places: "lines",
  },
  {
    name: "deno",
    command: async ({ tool }) => [join(await tool("deno"), `deno${ending}`), "run", "-A"],
    readsTypes: true,
  },
];

/** Each of these runs in the project's folder, where the package is installed. */
async function tryRuntime(runtime: Runtime, subject: Subject): Promise<string> {
  const [executable, ...before] = await runtime.command(subject);
  const { project } = subject;
  const start = async (...given: string[]): Promise<Ended> => {
    const ended = await run(executable, [...before, ...given], project);
    // The README's reports name a file without its folder.
    const stdout = ended.stdout.replaceAll(`${project.replaceAll("\\", "/")}/`, "");
    return { ...ended, stdout };
  };
  const require = (what: string, isAsExpected: boolean, ended: Ended): void => {
    if (!isAsExpected) throw new Wrong(`${what}: ${tail(ended)}`);
  };
  const programs = readmePrograms();
  for (const program of programs) {
    writeFileSync(join(project, program.file), program.code);
    const ended = await start(
      ...(runtime.readsTypes ? [program.file] : [command, "run", program.file]),
    );
    require(program.title, ended.status === 0 &&
      isRight(program, ended.stdout, runtime.places), ended);
  }
  const first = firstProgram();
  const ran = await start(command, "run", first.file);
  require("tilewright run", ran.status === 0 && isRight(first, ran.stdout, runtime.places), ran);
  copyFileSync(join(repositoryRoot, "scripts/smoke.mjs"), join(project, "smoke.mjs"));
  const smoke = await start("smoke.mjs");
  const works = /^tilewright works with (.*) on \w+$/m.exec(smoke.stdout)?.[1];
  require("smoke.mjs", smoke.status === 0 && works !== undefined, smoke);
  writeFileSync(join(project, "required.cjs"), 'console.log(require("tilewright").f32.name);\n');
  const required = await start("required.cjs");
  require('require("tilewright")', required.stdout.trim() === "f32", required);
  return `${works ?? ""}: ${programs.length} programs, every entry, command line, require`;
}

export const runtimeChecks: readonly Check[] = runtimes.map((runtime) => ({
  name: runtime.name,
  about: `the README's programs, every entry, the command line and require()${
    runtime.name === "node" ? ", on the Node that runs this" : ""
  }`,
  run: (subject) => tryRuntime(runtime, subject),
}));
