/** x */
import { readFileSync } from "node:fs";
import { judge } from "/work/wt/text-fuzz/test/graph/text-fuzz/judge.ts";
import { outlineOf } from "/work/wt/text-fuzz/test/graph/text-fuzz/outline.ts";
import { parseGraph, printGraph } from "/work/wt/text-fuzz/src/graph/text/index.ts";
for (const f of process.argv.slice(2).filter((a) => a !== "--")) {
  const t = readFileSync(f, "utf8");
  const v = await judge(t); console.log(f, JSON.stringify(v).slice(0, 600));
  if (v.problem?.includes("another program")) for (const m of parseGraph(t)) { const a = outlineOf(m), b = outlineOf(parseGraph(printGraph(m))[0]!); let i = 0; while (a[i] === b[i]) i++; console.log(a.slice(i - 200, i + 60), "\nB ", b.slice(i - 200, i + 60)); }
}
