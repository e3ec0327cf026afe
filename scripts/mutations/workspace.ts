/**
 * A copy of the repository to plant faults in, so that the tree people work in is never touched.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyRepository } from "../copy-repository.ts";
import { applyFault } from "./faults.ts";
import type { Fault } from "./faults.ts";

/** How a run of tests ended; `detail` names the first failing test or says what went wrong. */
export interface TestOutcome {
  readonly status: "passed" | "failed" | "timeout";
  readonly detail: string;
}

/** How a process ended: its exit status, whether it was stopped for being late, what it complained of. */
interface Ending {
  readonly status: number | null;
  readonly late: boolean;
  readonly errors: string;
}

export class Workspace {
  readonly #folder: string;

  constructor(root: string) {
    this.#folder = mkdtempSync(join(tmpdir(), "tilewright-mutation-"));
    copyRepository(root, this.#folder, "packages");
  }

  /** Runs `work` with the fault planted. */
  async withFault<T>(fault: Fault, work: () => Promise<T>): Promise<T> {
    const path = join(this.#folder, fault.file);
    const source = readFileSync(path, "utf8");
    writeFileSync(path, applyFault(source, fault));
    try {
      return await work();
    } finally {
      writeFileSync(path, source);
    }
  }

  /** Runs test files or folders until the first failure. */
  async runTests(paths: readonly string[], seconds: number): Promise<TestOutcome> {
    const report = join(this.#folder, "report.json");
    rmSync(report, { force: true });
    const { status, late, errors } = await this.#vitest(
      [`--outputFile=${report}`, ...paths],
      seconds,
    );
    if (late) return { status: "timeout", detail: `no end within ${seconds} s` };
    if (status === 0) return { status: "passed", detail: "" };
    return { status: "failed", detail: firstFailure(report, errors, this.#folder) };
  }

  #vitest(options: readonly string[], seconds: number): Promise<Ending> {
    const fixed = ["run", "--bail=1", "--no-file-parallelism", "--reporter=json"];
    const child = spawn(
      process.execPath,
      ["node_modules/vitest/vitest.mjs", ...fixed, ...options],
      { cwd: this.#folder, stdio: ["ignore", "ignore", "pipe"] },
    );
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
    return new Promise((resolve, reject) => {
      let late = false;
      // A fault may loop without end, so the process gets no chance to clean up.
      const timer = setTimeout(() => (late = child.kill("SIGKILL")), seconds * 1000);
      child.on("error", reject);
      child.on("close", (status) => {
        clearTimeout(timer);
        resolve({ status, late, errors });
      });
    });
  }

  dispose(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The part of vitest's JSON report that is read here. */
interface TestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function firstFailure(path: string, errors: string, folder: string): string {
  if (!existsSync(path)) return `the test runner failed: ${errors.trim().split("\n")[0] ?? ""}`;
  const { testResults } = JSON.parse(readFileSync(path, "utf8")) as TestReport;
  if (testResults.length === 0) throw new Error("the tests to run hold no test");
  for (const { name, status, message, assertionResults } of testResults) {
    const test = assertionResults.find((assertion) => assertion.status === "failed");
    const file = name.replace(`${folder}/`, "");
    if (test !== undefined) return `${file}: ${test.fullName}`;
    if (status === "failed") return `${file} does not load: ${message.split("\n")[0] ?? ""}`;
  }
  return "an error outside any test";
}
