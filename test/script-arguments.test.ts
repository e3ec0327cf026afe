/** Scripts of the repository tell what they take, and refuse what they do not understand before any work is done. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  headerComment,
  namedOption,
  numberOption,
  scriptArguments,
  scriptOptions,
} from "../scripts/arguments.ts";

const file = new URL("../bench/gpu/index.ts", import.meta.url);
const options = { rounds: { type: "string", default: "15" } } as const;
const { argv } = process;

class Ended extends Error {}

let printed = "";
let status: number | undefined;

function given(...words: string[]): void {
  process.argv = ["node", "script.ts", ...words];
}

beforeEach(() => {
  printed = "";
  status = undefined;
  const print = (text: string | Uint8Array): boolean => {
    printed += String(text);
    return true;
  };
  vi.spyOn(process.stdout, "write").mockImplementation(print);
  vi.spyOn(process.stderr, "write").mockImplementation(print);
  vi.spyOn(process, "exit").mockImplementation((code) => {
    status = Number(code);
    throw new Ended();
  });
});

afterEach(() => {
  process.argv = argv;
  vi.restoreAllMocks();
});

describe("arguments of scripts", () => {
  test("options, their defaults, and the rest", () => {
    given("--", "1x2x3", "--rounds", "7");
    const { values, positionals } = scriptArguments(file.href, options);
    expect([values.rounds, positionals]).toEqual(["7", ["1x2x3"]]);
    given();
    expect(scriptOptions(file.href, options).rounds).toBe("15");
  });

  test("--help prints the comment at the top of the script", () => {
    given("--help");
    expect(() => scriptOptions(file.href, options)).toThrow(Ended);
    expect(status).toBe(0);
    expect(printed).toContain("npm run bench:gpu -- --list                     the parts\n");
    expect(printed).not.toMatch(/^ ?\*/mu);
    expect(printed).toBe(`${headerComment(readFileSync(file, "utf8"))}\n`);
  });

  test.each([
    [
      "an unknown option",
      () => (given("--round", "7"), scriptOptions(file.href, options)),
      "--round",
    ],
    ["a word too many", () => (given("7"), scriptOptions(file.href, options)), '"7" is no option'],
    ["no number", () => numberOption("rounds", "many"), 'a whole number from 1, not "many"'],
    ["an empty number", () => numberOption("rounds", ""), "a whole number from 1"],
    ["half a round", () => numberOption("rounds", "1.5"), "a whole number from 1"],
    [
      "less than nothing",
      () => numberOption("minutes", "-1", { from: 0, whole: false }),
      "a number from 0",
    ],
    [
      "another name",
      () => namedOption("peer", "torch", ["PyTorch", "JAX"]),
      'PyTorch, JAX, not "torch"',
    ],
  ])("%s ends the script with status 2 and the reason", (_, run, reason) => {
    expect(run).toThrow(Ended);
    expect([status, printed]).toEqual([2, expect.stringContaining(reason)]);
    expect(printed).toContain("--help tells the options\n");
  });

  test("numbers without end and fractions where they make sense", () => {
    expect(numberOption("count", "Infinity")).toBe(Infinity);
    expect(numberOption("minutes", "0.5", { from: 0, whole: false })).toBe(0.5);
    expect(namedOption("peer", "JAX", ["PyTorch", "JAX"])).toBe("JAX");
  });
});
