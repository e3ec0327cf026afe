/** Tools of the toolkit, played by scripts where it matters what they answer. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TilewrightError } from "../support/diagnostics.ts";
import { disassemble, findAssembler, findTool, requireAssembler } from "./cuda-toolkit.ts";

let folder = "";
const saved = new Map<string, string | undefined>();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tilewright-tools-"));
  for (const name of ["PATH", "CUDA_HOME", "CUDA_PATH"]) {
    saved.set(name, process.env[name]);
    delete process.env[name];
  }
  process.env["PATH"] = [folder, "/bin", "/usr/bin"].join(delimiter);
});

afterEach(() => {
  for (const [name, value] of saved)
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  rmSync(folder, { recursive: true });
});

function writeTool(name: string, ...lines: readonly string[]): void {
  writeFileSync(join(folder, name), ["#!/bin/sh", ...lines, ""].join("\n"), { mode: 0o755 });
}

/** Such scripts are programs where there is that shell. */
const testOfScripts = test.skipIf(process.platform === "win32");

const source = { name: "axpy", target: "sm_90a", ptx: ".version 8.0\n" };

describe("finding a tool", () => {
  const exists = (path: string): boolean =>
    ["/cuda/bin/ptxas", "/own/ptxas", "C:\\own\\ptxas.exe", "C:\\cuda\\bin\\ptxas.exe"].includes(
      path,
    );

  test.each([
    [{ PATH: "/other:/own" }, "linux", "/own/ptxas"],
    [{ PATH: "/other:/own" }, "darwin", "/own/ptxas"],
    [{ PATH: "/usr/bin", CUDA_HOME: "/cuda" }, "linux", "/cuda/bin/ptxas"],
    [{ CUDA_PATH: "/cuda" }, "linux", "/cuda/bin/ptxas"],
    [{ PATH: "C:\\other;C:\\own" }, "win32", "C:\\own\\ptxas.exe"],
    [{ PATH: "C:\\other", CUDA_PATH: "C:\\cuda" }, "win32", "C:\\cuda\\bin\\ptxas.exe"],
    [{ PATH: "/usr/bin" }, "linux", undefined],
    [{}, "linux", undefined],
  ])("in %j on %s gives %s", (environment, platform, expected) => {
    expect(findTool("ptxas", { environment, platform, exists })).toBe(expected);
  });
});

describe("the assembler", () => {
  test("is missed with a way out, as TW5009", () => {
    process.env["PATH"] = folder;
    expect(findAssembler()).toBeUndefined();
    let refusal: unknown;
    try {
      requireAssembler();
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toMatchObject({
      code: "TW5009",
      remedy: expect.stringContaining("--emit ptx") as string,
    });
  });

  testOfScripts("is stopped when its time is over, as TW5012", async () => {
    writeTool("ptxas", "exec sleep 600");
    await expect(findAssembler(0.1)?.(source)).rejects.toMatchObject({
      code: "TW5012",
      expected: "at most 0.1 seconds",
      remedy: expect.stringContaining("--timeout") as string,
    });
  });

  testOfScripts("gives machine code, its log and what the kernel takes", async () => {
    writeTool(
      "ptxas",
      'while [ "$1" != "-o" ]; do echo "option $1"; shift; done',
      'printf code > "$2"',
      'echo "info: $3: Used 40 registers, used 2 barriers" >&2',
    );
    const { cubin, log, usage } = await requireAssembler()(source);
    expect(new TextDecoder().decode(cubin)).toBe("code");
    expect(log).toContain("option -arch=sm_90a");
    expect(log).toContain("info: axpy.ptx: Used 40 registers");
    expect(usage).toMatchObject({ registers: 40, barriers: 2, spillStores: 0, warnings: [] });
  });

  testOfScripts("that refuses a kernel is quoted, as TW5010", async () => {
    writeTool("ptxas", 'echo "ptxas fatal: line 7: no such instruction" >&2', "exit 255");
    const refused = requireAssembler()(source);
    await expect(refused).rejects.toMatchObject({
      code: "TW5010",
      summary: "ptxas refused kernel axpy for sm_90a",
      found: "ptxas fatal: line 7: no such instruction",
    } satisfies Partial<TilewrightError>);
  });
});

describe("disassembly", () => {
  const cubin = new Uint8Array([1, 2, 3]);

  testOfScripts("comes from the first tool that can", async () => {
    writeTool("nvdisasm", "exit 1");
    writeTool("cuobjdump", 'echo "MOV R1, R2"');
    expect(await disassemble(cubin)).toBe("MOV R1, R2\n");
  });

  test("is left out where there is none", async () => {
    expect(await disassemble(cubin)).toBeUndefined();
  });
});
