/**
 * The command line, built into a folder and run in another, the user's: in a process of its own, or in one that it shares
 * with others.
 */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildPackage } from "../build-package.ts";
import { HostProcess } from "./host-process.ts";

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class BuiltCommand {
  readonly #installed: string;
  readonly #user: string;
  readonly #host: HostProcess;

  /** Makes both folders. */
  constructor(installed: string, user: string) {
    mkdirSync(installed);
    mkdirSync(user);
    this.#installed = installed;
    this.#user = user;
    this.#host = new HostProcess(user);
  }

  build(): Promise<void> {
    return buildPackage(this.#installed, ["src/cli/command-line.ts"]);
  }

  /** Runs `tilewright` with these parameters in a process of its own. */
  start(parameters: readonly string[]): Promise<Ended> {
    const main = join(this.#installed, "dist/cli/main.js");
    const settings = { cwd: this.#user };
    return new Promise((resolve) => {
      execFile(process.execPath, [main, ...parameters], settings, (error, stdout, stderr) => {
        const status = typeof error?.code === "number" ? error.code : error === null ? 0 : -1;
        resolve({ status, stdout, stderr });
      });
    });
  }

  /** Runs it in the process that all share, with this for the folder of the cache. */
  async run(parameters: readonly string[], cache = "off"): Promise<Ended> {
    const commandLine = pathToFileURL(join(this.#installed, "dist/cli/command-line.js")).href;
    const { value, stdout, stderr } = await this.#host.ask(`
      process.env.TILEWRIGHT_CACHE = ${JSON.stringify(cache)};
      const { runCommandLine } = await load(${JSON.stringify(commandLine)});
      return runCommandLine(${JSON.stringify(parameters)});`);
    return { status: Number(value), stdout, stderr };
  }

  end(): void {
    this.#host.end();
  }
}
