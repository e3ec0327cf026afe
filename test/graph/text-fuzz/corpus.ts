/**
 * Programs that changed texts begin from: the cases of every op, whole programs, and `seeds` for what those lack, each as it was written,
 * as we print it, and in generic form.
 */
import { printGraph } from "../../../src/graph/text/printer.ts";
import { cutPrograms, parsePiece } from "../../../src/graph/text/program.ts";
import { listFiles, readText } from "../../source-files.ts";
import { opCases } from "../every-op.ts";

const folders = ["test/graph/text-fuzz/seeds", "test/fixtures/programs"];

/** Longer programs take a run long, and have little that others lack. */
const longest = 2500;

function writtenPrograms(): readonly string[] {
  const files = folders.flatMap((folder) => listFiles(folder, /\.mlir$/).map(readText));
  const cases = Object.values(opCases).flatMap((each) => ("text" in each ? [each.text] : []));
  return [...cases, ...files.flatMap((text) => cutPrograms(text).map((piece) => piece.text))];
}

/** The texts of one program in every form that it has. */
function formsOf(text: string): readonly string[] {
  const modules = parsePiece({ text, line: 0 }, "seed.mlir");
  const printed = [{}, { generic: true }, { locations: true }].map((options) =>
    modules.map((module) => printGraph(module, options)).join("\n"),
  );
  return [...new Set([text, ...printed])];
}

let known: readonly string[] | undefined;

/** All texts; those of a program follow each other. */
export function corpus(): readonly string[] {
  return (known ??= writtenPrograms()
    .filter((text) => text.length <= longest)
    .flatMap(formsOf));
}
