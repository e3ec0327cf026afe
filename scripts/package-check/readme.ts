/**
 * The README's programs, and what it says that they print: the first block of text between a program and the next one.
 *
 *   ```ts                    { file: "program-76.ts", code, printed: "[ 1.0800000429153442, … ]" }
 *   import { … } …
 *   ```
 *   ```text
 *   [ 1.0800000429153442, … ]
 *   ```
 */
import { readText } from "../../test/source-files.ts";
import { programs } from "../../test/support/snippets.ts";

export interface Program {
  /** "README.md:76" */
  readonly title: string;
  /** Where the text names a file, such as in a stack, that; so that lines agree. */
  readonly file: string;
  readonly code: string;
  /** Undefined where the README says nothing of it, such as a time. */
  readonly printed: string | undefined;
}

export function readmePrograms(): readonly Program[] {
  const lines = readText("README.md").split("\n");
  const own = programs.filter(({ title }) => title.startsWith("README.md:"));
  const starts = own.map(({ title }) => Number(title.replace(/.*:/, "")) - 1);
  return own.map(({ title, code }, index) => {
    const [start = 0, end = lines.length] = starts.slice(index, index + 2);
    const text = lines.slice(start, end).join("\n");
    const printed = /^```text\n([\s\S]*?)^```$/m.exec(text)?.[1]?.trimEnd();
    const named = /\b(\w+\.ts):\d+/.exec(printed ?? "")?.[1];
    return {
      title,
      file: named ?? `program-${start + 1}.ts`,
      code: `${code.trim()}\n`,
      printed,
    };
  });
}

/** The first program: a kernel, on whatever `open()` finds. */
export function firstProgram(): Program {
  const [first] = readmePrograms();
  if (first === undefined) throw new Error("the README has no program");
  return first;
}

/** What of places in a text is compared: in Bun a call that ends a function has the column of what called that, and a bundle of everything has no places of the program's. */
export type Places = "columns" | "lines" | "none";

/** Whether this is what the README says. */
export function isRight({ printed }: Program, output: string, places: Places = "columns"): boolean {
  const found = output.replaceAll("\r\n", "\n").trimEnd();
  if (printed === undefined) return found !== "";
  return compared(found, places) === compared(printed, places);
}

/** A text as it is compared. Browsers print lists in their own way: with "none" only the numbers of one are. */
export function compared(text: string, places: Places): string {
  if (places === "columns") return text;
  if (places === "lines") return text.replaceAll(/(\.ts:\d+):\d+/g, "$1");
  return text
    .replaceAll(/(?:Float64Array\(\d+\) )?\[ (.*?) \]/g, (_, list: string) =>
      list.replaceAll(",", ""),
    )
    .replaceAll(/\n\s+at \S+:\d+:\d+(?=\n|$)| \(\S+:\d+:\d+\)/g, "");
}
