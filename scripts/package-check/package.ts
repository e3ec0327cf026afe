/**
 * The package as its users get it: npm packs a copy of the repository, and installs what it has packed into a project that is otherwise empty.
 *
 *   TEMP/repository               the copy; `npm pack` there runs what it runs here
 *   TEMP/tilewright-0.1.0.tgz
 *   TEMP/project/node_modules     the package and what it depends on
 *   TEMP/tools/publint, …         tools, when a check first asks for them
 */
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../test/source-files.ts";
import { copyRepository } from "../copy-repository.ts";
import { NotTried, Wrong } from "./check.ts";
import type { Subject } from "./check.ts";
import { run, tail } from "./processes.ts";
import type { Ended } from "./processes.ts";

const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];

export async function pack(folder: string): Promise<{ readonly archive: string; note: string }> {
  const copy = join(folder, "repository");
  mkdirSync(copy);
  copyRepository(repositoryRoot, copy, "all");
  const ended = await run("npm", ["pack", "--json", "--pack-destination", folder], copy, 10);
  const name = /"filename": "([^"]+\.tgz)"/.exec(ended.stdout)?.[1];
  if (ended.status !== 0 || name === undefined) throw new Wrong(`npm pack: ${tail(ended)}`);
  const archive = join(folder, name);
  return { archive, note: `${(statSync(archive).size / 1e6).toFixed(2)} MB` };
}

/** Why npm could install nothing, in a line. */
function reasonOf(ended: Ended): string {
  const said = ended.stderr.split("\n").filter((line) => /npm error|ended after/.test(line));
  const line = said.find((each) => !/^npm error (code|errno|syscall)/.test(each)) ?? said[0];
  return line?.replace(/^npm error /, "") ?? tail(ended, 1);
}

function newProject(folder: string, more: object = {}): void {
  mkdirSync(folder, { recursive: true });
  const manifest = { private: true, type: "module", ...more };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
}

export async function install(folder: string, archive: string): Promise<Subject> {
  const project = join(folder, "project");
  newProject(project);
  // The package and what it depends on have no install scripts; test/package.test.ts holds them to it.
  const ended = await run("npm", ["install", "--ignore-scripts", ...quiet, archive], project);
  if (ended.status !== 0) throw new NotTried(`npm could not install it: ${reasonOf(ended)}`);
  const tools = new Map<string, Promise<string>>();
  return {
    archive,
    project,
    folder: (name) => {
      const path = join(folder, name);
      mkdirSync(path, { recursive: true });
      return path;
    },
    tool: (specifier) => {
      const known = tools.get(specifier) ?? installTool(join(folder, "tools"), specifier);
      tools.set(specifier, known);
      return known;
    },
  };
}

async function installTool(tools: string, specifier: string): Promise<string> {
  const folder = join(tools, specifier.replaceAll("/", "+"));
  const name = specifier.replace(/(?<=.)@.*/, "");
  // Runtimes put their program in its place by such a script, which npm may run for those alone that are named.
  newProject(folder, { allowScripts: { [name]: true } });
  const ended = await run("npm", ["install", ...quiet, specifier], folder);
  if (ended.status !== 0)
    throw new NotTried(`npm could not install ${specifier}: ${reasonOf(ended)}`);
  return join(folder, "node_modules", name);
}
