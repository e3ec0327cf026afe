/** Every form of tcgen05 that an assembler takes is one that the emulator runs: it is loaded, which looks at each instruction. */
import { describe, expect, test } from "vitest";
import { collectiveRules } from "../src/emulator/collective-rules.ts";
import { loadProgram } from "../src/emulator/program/load.ts";
import { parsePtx } from "../src/ptx/parser/index.ts";
import { readText } from "./source-files.ts";

/** Columns of the fixture's answers. */
const targets = { sm_100a: 0, sm_103a: 1, sm_110a: 2 } as const;

const rows = readText("test/fixtures/ptx-forms.txt").trimEnd().split("\n");

function formsOf(target: keyof typeof targets, group: 1 | 2): readonly string[] {
  const other = `cta_group::${3 - group}`;
  return rows
    .filter(
      (row) => row[targets[target]] === "Y" && row.includes("tcgen05.") && !row.includes(other),
    )
    .map((row) =>
      row
        .slice(9)
        .replace(/%r(\d+)…%r(\d+)/g, (_, first: string, last: string) =>
          Array.from(
            { length: Number(last) - Number(first) + 1 },
            (__, at) => `%r${Number(first) + at}`,
          ).join(", "),
        ),
    );
}

describe.each(Object.keys(targets) as (keyof typeof targets)[])("forms of %s", (target) => {
  test.each([1, 2] as const)("in groups of %i", (group) => {
    const forms = formsOf(target, group);
    expect(forms.length).toBeGreaterThan(group === 1 ? 100 : 50);
    const body = forms.map((form) => `{ ${form} }`).join("\n");
    const text = `.version 9.0\n.target ${target}\n.address_size 64\n.visible .entry k(.param .u64 gp)\n{
.reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<300>; .reg .b64 %rd<64>; .reg .b128 %q<4>; .reg .f32 %f<40>;
${body}\nret;\n}`;
    const program = loadProgram(parsePtx(text, "forms.ptx"), "k", {
      checks: true,
      collectives: collectiveRules,
    });
    const loaded = program.sites.filter(({ instruction }) =>
      instruction.opcode.startsWith("tcgen05."),
    );
    expect(loaded.length).toBeGreaterThanOrEqual(forms.length);
  });
});
