import { describe, expect, test } from "vitest";
import { opKinds, opTable } from "./ops.ts";
import { renderOperationReference } from "./reference.ts";

describe("the reference of operations", () => {
  const text = renderOperationReference();

  test("has one row for each operation, with its summary", () => {
    const rows = [...text.matchAll(/^\| `(\w+)` \| (.*?) \| /gm)].map((row) => [row[1], row[2]]);
    expect(rows).toEqual(opKinds.map((kind) => [kind, opTable[kind].summary]));
  });

  test("names operands, attributes, regions and traits", () => {
    expect(text).toContain(
      "| `lower`, `upper`, `step`, `initial…` | `depth?`: integer; `breaks?`: flag | `body` | hands on `initial`; runs: repeat; rolled; may: as its regions |",
    );
    expect(text).toContain("| `fn`: argmin, argmax; `axis`: integer |  | scratch; may: anything |");
    expect(text).toContain(
      "| `ref`, `indices…`, `where?`, `fill?` | `indexed?`: integers; `evict?`: text;",
    );
    expect(text).toContain(
      "synchronizes the warp before; releases to the block; with `peer` releases to the cluster; rolled; may: nothing |",
    );
  });
});
