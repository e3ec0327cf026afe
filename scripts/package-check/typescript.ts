/**
 * Types of the package under several versions of TypeScript, with `skipLibCheck: false` and no types but the compiler's own: a module that uses
 * every entry, and the programs of the documentation that need nothing of Node. Modules are resolved as Node does it, and as bundlers do.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { programs } from "../../test/support/snippets.ts";
import { Wrong } from "./check.ts";
import type { Check, Subject } from "./check.ts";
import { run, tail } from "./processes.ts";

const resolutions = [
  { module: "node16", moduleResolution: "node16" },
  { module: "nodenext", moduleResolution: "nodenext" },
  { module: "esnext", moduleResolution: "bundler" },
];

const options = {
  target: "es2022",
  lib: ["es2023", "dom"],
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
  noEmit: true,
};

interface Manifest {
  readonly version: string;
  readonly exports: { readonly [path: string]: unknown };
}

/** Names every entry of the package, and one thing that is in all of its programs. */
function everyEntry(project: string): string {
  const path = join(project, "node_modules/tilewright/package.json");
  const { exports } = JSON.parse(readFileSync(path, "utf8")) as Manifest;
  const entries = Object.keys(exports).filter((each) => each !== "./package.json");
  const lines = entries.map((entry, index) => {
    const specifier = entry.replace(/^\./, "tilewright");
    return `import * as part${index} from "${specifier}"; export const keys${index}: string[] = Object.keys(part${index});`;
  });
  return [...lines, 'import { f32 } from "tilewright"; export const name: "f32" = f32.name;'].join(
    "\n",
  );
}

async function tryVersion(specifier: string, subject: Subject): Promise<string> {
  const tool = await subject.tool(specifier);
  const { version } = JSON.parse(readFileSync(join(tool, "package.json"), "utf8")) as Manifest;
  const { project } = subject;
  const files = ["every-entry.ts"];
  writeFileSync(join(project, "every-entry.ts"), everyEntry(project));
  const plain = programs.filter(({ code }) => !/from "(node:|vitest)/.test(code));
  for (const { file, code } of plain) {
    writeFileSync(join(project, file), code);
    files.push(file);
  }
  for (const resolution of resolutions) {
    const config = join(project, "tsconfig.json");
    const compilerOptions = { ...options, ...resolution };
    writeFileSync(config, JSON.stringify({ compilerOptions, files }));
    const given = [join(tool, "bin/tsc"), "-p", config, "--pretty", "false"];
    const ended = await run(process.execPath, given, project);
    if (ended.status !== 0) throw new Wrong(`${resolution.moduleResolution}: ${tail(ended)}`);
  }
  const ways = resolutions.map(({ moduleResolution }) => moduleResolution).join(", ");
  return `${version}: every entry and ${plain.length} programs; ${ways}`;
}

export const typescriptChecks: readonly Check[] = ["5.7", "5.8", "5.9", "6.0", "7"].map(
  (version) => ({
    name: `typescript@${version}`,
    about: "every entry and the documentation's programs, skipLibCheck false",
    run: (subject) => tryVersion(`typescript@${version}`, subject),
  }),
);
