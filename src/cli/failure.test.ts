import { describe, expect, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import { locationAt } from "../support/location.ts";
import { failureDocument, failureText } from "./failure.ts";

const known = new TilewrightError({
  code: "TW5003",
  message: "there is no file a.ts",
  location: locationAt("b.ts", 3, 4),
  expected: "a file",
  found: "none",
});

describe("a failure that tilewright knows", () => {
  test("is its report, without a stack", () => {
    expect(failureText(known)).toBe(known.message);
  });

  test("is its fields in JSON", () => {
    expect(JSON.parse(JSON.stringify(failureDocument(known)))).toEqual({
      error: {
        code: "TW5003",
        summary: "there is no file a.ts",
        position: { file: "b.ts", line: 3, column: 4 },
        expected: "a file",
        found: "none",
        remedy: "check the path; it is relative to the working directory",
        notes: [],
      },
    });
  });
});

/** An error as the user's program throws it below frames of Node and of a package. */
function userError(cause?: unknown): Error {
  const error = cause === undefined ? new TypeError("boom") : new TypeError("boom", { cause });
  error.stack = [
    "TypeError: boom",
    "    at helper (file:///user/helper.ts:2:7)",
    "    at parse (/user/node_modules/commander/lib/command.js:10:1)",
    "    at async main (file:///user/main.ts:9:3)",
    "    at node:internal/modules/run_main:1:1",
  ].join("\n");
  return error;
}

describe("a failure of the user's program", () => {
  const frames = [
    "at helper (file:///user/helper.ts:2:7)",
    "at async main (file:///user/main.ts:9:3)",
  ];

  test("keeps the program's own frames", () => {
    expect(failureText(userError())).toBe(
      ["TypeError: boom", ...frames.map((frame) => `    ${frame}`)].join("\n"),
    );
  });

  test("tells its cause", () => {
    expect(failureText(userError("no disk"))).toMatch(
      /main\.ts:9:3\)\ncaused by a thrown 'no disk'$/,
    );
  });

  test("is its name, message and frames in JSON", () => {
    expect(failureDocument(userError())).toEqual({
      error: { name: "TypeError", summary: "boom", frames },
    });
  });

  test("keeps the place that a syntax error names above its frames", () => {
    const error = new SyntaxError("Unexpected token");
    error.stack =
      "file:///user/a.js:3\nlet = ;\n    ^\n\nSyntaxError: Unexpected token\n    at node:x:1:1";
    expect(failureText(error)).toBe(
      "file:///user/a.js:3\nlet = ;\n    ^\n\nSyntaxError: Unexpected token",
    );
  });

  test("may be anything", () => {
    expect(failureText({ a: 1 })).toBe("a thrown { a: 1 }");
    expect(failureDocument(7)).toEqual({ error: { summary: "7" } });
  });
});
