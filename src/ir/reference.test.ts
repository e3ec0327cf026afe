import { describe, expect, test } from "vitest";
import { opKinds, opTable } from "./ops.ts";
import { renderOperationReference } from "./reference.ts";

describe("the reference of operations", () => {
  const text = renderOperationReference();

  test("has one row for each operation, with its summary", () => {
    const rows = [...text.matchAll(/^\| `(\w+)` \| (.*?) \| /gm)].map((row) => [row[1], row[2]]);
    expect(rows).toEqual(opKinds.map((kind) => [kind, opTable[kind].summary]));
  });

  test("names operands, attributes, regions and effect", () => {
    expect(text).toContain(
      "| `loop` | Counts from `lower` below `upper` by `step`; the body takes the index and the carried values and yields the next ones. | `lower`, `upper`, `step`, `initial…` |  | `body` | regions |",
    );
    expect(text).toContain("| `fn`: argmin, argmax; `axis`: integer |  | none |");
    expect(text).toContain("`ref`, `fill?`");
  });
});
