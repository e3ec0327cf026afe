/** `tilewright tune`, on the simulator: what it prints, what it keeps, what it refuses. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { Output } from "../output.ts";
import { tuneCommand } from "./tune.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tune-command-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const program = `
import { tensor, cdiv, dim, f32, kernel, slice } from "tilewright";
import { tunable } from "tilewright/tune";
const n = dim("n");
export const doubled = tunable({
  name: "doubled",
  choices: { span: [128, 256] },
  make: ({ span }) =>
    kernel(
      { name: "doubled", grid: { i: cdiv(n, span) }, inputs: { x: tensor(f32, [n]) }, outputs: { out: tensor(f32, [n]) } },
      ({ i, x, out }) => {
        const here = slice(i.mul(span), span);
        out.at(here).store(x.at(here).load().mul(2));
      },
    ),
});
`;

async function run(source: string, operation?: string, json = false) {
  const file = join(folder, "mine.ts");
  const results = join(folder, "tuning.jsonl");
  writeFileSync(file, source);
  const written = { stdout: "", stderr: "" };
  const stream = (name: "stdout" | "stderr") => ({
    write: (text: string) => (written[name] += text),
  });
  const output = new Output({
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    json,
    environment: {},
  });
  const settings = { file, operation, cases: [{ n: 1000 }], results, device: "simulator" } as const;
  const others = { seconds: undefined, rounds: undefined, workers: undefined };
  const status = await tuneCommand({ ...settings, ...others }, output);
  return { ...written, status, results };
}

test("ranks by the model where there is no GPU, says so, and keeps a sorted file", async () => {
  const { stdout, status, results } = await run(program);
  expect(status).toBe(0);
  expect(stdout).toContain("doubled\nn=1000 no GPU: estimates of a model of");
  expect(stdout).toContain(`kept in ${results}`);
  const lines = readFileSync(results, "utf8").trim().split("\n");
  expect(lines).toHaveLength(3);
  expect(lines.slice(1)).toEqual(lines.slice(1).toSorted());
  expect(lines[1]).toContain('"source":"model"');
});

test("as one document", async () => {
  const { stdout } = await run(program, "doubled", true);
  const document = JSON.parse(stdout) as { operations: { name: string; cases: unknown[] }[] };
  expect(document.operations[0]).toMatchObject({ name: "doubled", cases: [{ modelled: true }] });
});

test("refuses files without choices, and names that are not there", async () => {
  const codeOf = async (source: string, operation?: string) => {
    try {
      await run(source, operation);
    } catch (error) {
      return error instanceof TilewrightError ? error.code : String(error);
    }
    return "nothing was thrown";
  };
  expect(await codeOf("export const one = 1;")).toBe("TW5014");
  expect(await codeOf(program, "tripled")).toBe("TW5014");
});
