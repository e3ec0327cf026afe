import { describe, expect, test } from "vitest";
import { formatTable, formatTime, Output } from "./output.ts";
import type { OutputSettings } from "./output.ts";

/** An output whose streams are kept as text. */
function capture(settings: Partial<OutputSettings> & { readonly terminal?: boolean } = {}) {
  const written = { stdout: "", stderr: "" };
  const stream = (name: "stdout" | "stderr") => ({
    isTTY: settings.terminal ?? false,
    write: (text: string) => {
      written[name] += text;
    },
  });
  const output = new Output({
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    json: false,
    environment: {},
    ...settings,
  });
  return { output, written };
}

describe("Output", () => {
  test("people get lines and no document", () => {
    const { output, written } = capture();
    output.line("one");
    output.document({ two: 2 });
    output.report("three");
    expect(written).toEqual({ stdout: "one\n", stderr: "three\n" });
  });

  test("with --json standard output carries the document alone", () => {
    const { output, written } = capture({ json: true });
    output.line("one");
    output.text("printed by the program\n");
    output.document({ two: 2 });
    expect(JSON.parse(written.stdout)).toEqual({ two: 2 });
    expect(written.stderr).toBe("printed by the program\n");
  });

  test("the document has a form for what JSON lacks", () => {
    const { output, written } = capture({ json: true });
    output.document({
      wide: 2n ** 63n,
      numbers: Float32Array.of(1.5, NaN, -Infinity),
      exact: BigInt64Array.of(-1n),
    });
    expect(JSON.parse(written.stdout)).toEqual({
      wide: "9223372036854775808",
      numbers: [1.5, "NaN", "-Infinity"],
      exact: ["-1"],
    });
  });

  test("progress replaces its line on a terminal and is gone afterwards", () => {
    const { output, written } = capture({ terminal: true });
    output.progress("1 of 2");
    output.progress("2 of 2");
    output.clearProgress();
    output.clearProgress();
    expect(written.stderr).toBe("\r\u001B[2K1 of 2\r\u001B[2K2 of 2\r\u001B[2K");
  });

  test("no progress where there is no terminal", () => {
    const { output, written } = capture();
    output.progress("1 of 2");
    output.clearProgress();
    expect(written.stderr).toBe("");
  });

  test.each([
    ["a terminal", true, {}, "\u001B[1mtitle\u001B[22m"],
    ["a terminal with NO_COLOR", true, { NO_COLOR: "1" }, "title"],
    ["a file", false, {}, "title"],
  ])("bold text on %s", (_name, terminal, environment, expected) => {
    expect(capture({ terminal, environment }).output.bold("title")).toBe(expected);
  });
});

test("a table's columns are as wide as their widest cells", () => {
  const rows = [
    ["kernel", "findings"],
    ["a_long_name", "1"],
    ["b", ""],
  ];
  expect(formatTable(rows)).toEqual(["kernel       findings", "a_long_name  1", "b"]);
});

test.each([
  [0.4, "0 ms"],
  [999.4, "999 ms"],
  [1234, "1.2 s"],
])("%f milliseconds read %s", (milliseconds, text) => {
  expect(formatTime(milliseconds)).toBe(text);
});
