/**
 * The stages of a kernel as text: as it was traced, after each pass that changed it, placed, ordered, and its PTX. Each line
 * knows the line of the program that it comes from and whether the stage before had it.
 */
import { printKernel } from "../../../../../src/ir/printer.ts";
import type { Kernel } from "../../../../../src/ir/node.ts";
import { lower } from "../../../../../src/lower/stages.ts";
import { printPtx } from "../../../../../src/ptx/printer.ts";
import type { Target } from "../../../../../src/targets/target.ts";
import type { Line, Stage, StageLine } from "../../protocol.ts";
import type { SourceLines } from "../source-lines.ts";
import { newLines } from "./line-difference.ts";

interface PlainLine {
  readonly text: string;
  readonly line: Line;
}

export function kernelStages(kernel: Kernel, target: Target, lines: SourceLines): readonly Stage[] {
  const stages: { readonly name: string; readonly lines: readonly PlainLine[] }[] = [];
  const keep = (name: string, stage: Kernel): void => {
    stages.push({ name, lines: kernelLines(stage, lines) });
  };
  keep("traced", kernel);
  const { module } = lower(kernel, target, { observe: keep });
  const compared = stages.map((stage, position) => compareStages(stages[position - 1], stage));
  const ptx = ptxLines(printPtx(module), lines);
  return [...compared, { name: "PTX", lines: ptx, removed: 0 }];
}

function compareStages(
  before: { readonly lines: readonly PlainLine[] } | undefined,
  { name, lines }: { readonly name: string; readonly lines: readonly PlainLine[] },
): Stage {
  if (before === undefined) return { name, lines: lines.map(unchanged), removed: 0 };
  const changes = newLines(before.lines.map(comparable), lines.map(comparable));
  const added = changes.filter(Boolean).length;
  return {
    name,
    lines: lines.map((each, position) => ({
      ...each,
      change: changes[position] === true ? "new" : "same",
    })),
    removed: before.lines.length - (lines.length - added),
  };
}

function unchanged(line: PlainLine): StageLine {
  return { ...line, change: "same" };
}

/** Values are numbered anew by every stage, so their numbers say nothing. */
function comparable({ text }: PlainLine): string {
  return text.replace(/%\d+/g, "%");
}

const placed = /^(?<text>.*) @ "(?<file>(?:[^"\\]|\\.)*)":(?<line>\d+):\d+(?<rest> \{)?$/;

/**
 * The printed kernel with the places taken off its lines. Of an op with a region the place stands at the closing
 * brace, and belongs to the line that opens it too.
 */
function kernelLines(kernel: Kernel, lines: SourceLines): readonly PlainLine[] {
  const result: PlainLine[] = [];
  const open: number[] = [];
  for (const printed of printKernel(kernel, { locations: true }).split("\n")) {
    const groups = placed.exec(printed)?.groups;
    const text = groups === undefined ? printed : `${groups["text"]}${groups["rest"] ?? ""}`;
    const position = groups && {
      file: String(JSON.parse(`"${groups["file"] ?? ""}"`)),
      line: Number(groups["line"]),
      column: 1,
    };
    const line = lines.lineOf(position);
    const closes = /^\s*\}/.test(text) ? open.pop() : undefined;
    const opener = closes === undefined ? undefined : result[closes];
    if (closes !== undefined && opener !== undefined && opener.line === undefined)
      result[closes] = { ...opener, line };
    if (text.endsWith("{")) open.push(result.length);
    result.push({ text, line });
  }
  return result;
}

/** PTX without its `.loc` directives, which say where the instructions after them come from. */
function ptxLines(ptx: string, lines: SourceLines): readonly StageLine[] {
  const files: string[] = [];
  const result: StageLine[] = [];
  let line: Line;
  for (const text of ptx.trimEnd().split("\n")) {
    const file = /^\.file (\d+) "(.*)"$/.exec(text);
    if (file !== null) files[Number(file[1])] = file[2] ?? "";
    const place = /^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)/.exec(text);
    if (place !== null) {
      const [, number, row] = place;
      line = lines.lineOf({ file: files[Number(number)] ?? "", line: Number(row), column: 1 });
      continue;
    }
    const isInstruction = /^\s+[^.\s]/.test(text) || /^\s+\.reg/.test(text);
    result.push({
      text: lines.clean(text),
      line: isInstruction && !/^\s+\.reg/.test(text) ? line : undefined,
      change: "same",
    });
  }
  return result;
}
