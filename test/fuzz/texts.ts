/**
 * Texts that are almost right: IR and PTX with a few letters, words or lines changed. Whatever reads or runs them
 * may refuse them with a code, and must not do anything else: no error without a code, no endless work.
 */
import { EmulatedMemory, emulate } from "../../src/emulator/index.ts";
import { parsePtx } from "../../src/ptx/parser/index.ts";
import { parseModule } from "../../src/ir/parser/parser.ts";
import { printKernel } from "../../src/ir/printer.ts";
import { verifyKernel } from "../../src/ir/verify/index.ts";
import { lower } from "../../src/lower/stages.ts";
import type { Executable } from "../../src/ptx/executable.ts";
import { printPtx } from "../../src/ptx/printer.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import type { Random } from "../../src/support/random.ts";
import { targets } from "../../src/targets/target.ts";
import type { Subject } from "./subjects.ts";

const limits = { stepLimit: 50_000, timeLimit: 5000 };

function changed(text: string, random: Random): string {
  const lines = text.split("\n");
  const line = random.below(lines.length);
  const at = random.below(text.length);
  const words = text.match(/[%\w.]+/g) ?? [""];
  const changes: readonly (() => string)[] = [
    () => [...lines.slice(0, line), ...lines.slice(line + 1)].join("\n"),
    () => [...lines.slice(0, line), lines[line] ?? "", ...lines.slice(line)].join("\n"),
    () => text.slice(0, at) + text.slice(at + 1),
    () => text.slice(0, at) + random.pick([..."%[]{}<>,;:.=-0919xfa \n"]) + text.slice(at),
    () => text.replace(random.pick(words), random.pick(words)),
    () =>
      text.replace(/\d+/g, (digits) =>
        random.below(20) === 0 ? String(random.below(70)) : digits,
      ),
    () =>
      text.replace(/\d+/, () =>
        random.pick(["0", "-1", "4294967296", "1e9", "99999999999999999999"]),
      ),
    () => text.slice(0, at),
  ];
  return random.pick(changes)();
}

export function mutated(text: string, random: Random): string {
  let result = text;
  for (let count = 1 + random.below(3); count > 0; count--) result = changed(result, random);
  return result;
}

/** Runs what may be refused; the error where it is refused without a code. */
function uncoded(work: () => void): string | undefined {
  try {
    work();
  } catch (error) {
    if (error instanceof TilewrightError) return undefined;
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
  return undefined;
}

/** Reads, checks and lowers changed IR. */
function tryIr(text: string, target: Subject["target"]): string | undefined {
  return uncoded(() => {
    for (const kernel of parseModule(text).kernels) {
      verifyKernel(kernel);
      lower(kernel, targets[target]);
    }
  });
}

/** Reads and runs changed PTX on memory of its own. */
function tryPtx(
  text: string,
  { entry, threadsPerBlock: lanes, cluster, sharedBytes, parameters }: Executable,
  target: Subject["target"],
): string | undefined {
  const memory = new EmulatedMemory();
  const address = memory.allocate(1 << 16, "everything");
  memory.write(address, new Uint8Array(1 << 16));
  const bytes = parameters.map(({ kind }) => {
    if (kind === "tensorMap") return new Uint8Array(128);
    return new Uint8Array(
      BigUint64Array.of(BigInt(kind === "scalar" || kind === "size" ? 4 : address)).buffer,
    );
  });
  return uncoded(() => {
    const module = parsePtx(text);
    const sized = bytes.map((value, at) => {
      const declared = module.declarations.find(
        (each) => each.kind === "function" && each.name === entry,
      );
      const type = declared?.kind === "function" ? declared.parameters[at]?.type : undefined;
      return type === "b32" || type === "f32" ? value.slice(0, 4) : value;
    });
    const launch = {
      entry,
      blocks: [cluster, 1, 1],
      threads: [lanes, 1, 1],
      cluster,
      sharedBytes,
      parameters: sized,
    } as const;
    emulate(module, launch, memory, { target: targets[target], limits });
  });
}

/** What goes wrong with texts like those of a subject; undefined where nothing does. */
export function tryTexts(
  subject: Subject,
  random: Random,
): { readonly text: string; readonly why: string } | undefined {
  const ir = mutated(printKernel(subject.kernel), random);
  const irProblem = tryIr(ir, subject.target);
  if (irProblem !== undefined) return { text: ir, why: irProblem };
  let executable: Executable;
  try {
    executable = lower(subject.kernel, targets[subject.target]);
  } catch (error) {
    if (error instanceof TilewrightError) return undefined;
    throw error;
  }
  const ptx = mutated(printPtx(executable.module), random);
  const ptxProblem = tryPtx(ptx, executable, subject.target);
  return ptxProblem === undefined ? undefined : { text: ptx, why: ptxProblem };
}
