/** Programs of other runtimes and tools, each a process of its own, without the settings that an enclosing npm leaves in the environment. */
import { execFile } from "node:child_process";
import process from "node:process";

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a machine reaches its registry is npm's to know; where it was called, and for which package, is not. */
const kept = /^npm_config_(registry|cache|userconfig|cafile|noproxy|(https?_)?proxy)$/i;

function environment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^npm_/i.test(name) || kept.test(name),
  );
  return { ...Object.fromEntries(inherited), NO_COLOR: "1", CI: "1" };
}

/** Resolves whatever the exit status; what runs for longer than `minutes` is ended. */
export function run(
  program: string,
  parameters: readonly string[],
  cwd: string,
  minutes = 5,
): Promise<Ended> {
  // npm is a script of the shell on Windows.
  const shell = program === "npm" && process.platform === "win32";
  const settings = {
    cwd,
    shell,
    env: environment(),
    timeout: minutes * 60_000,
    maxBuffer: 2 ** 26,
  };
  return new Promise((resolve) => {
    execFile(program, parameters, settings, (error, stdout, stderr) => {
      const late = error?.killed === true ? `\nended after ${minutes} minutes` : "";
      const unstarted =
        error !== null && typeof error.code === "string" ? `\n${error.message}` : "";
      const status = error === null ? 0 : typeof error.code === "number" ? error.code : 1;
      resolve({ status, stdout, stderr: stderr + late + unstarted });
    });
  });
}

/** The last lines of what a process said, for a report. */
export function tail({ status, stdout, stderr }: Ended, lines = 20): string {
  const said = `${stdout}\n${stderr}`.trim().split("\n").slice(-lines);
  return [`status ${status}`, ...said].join("\n");
}
