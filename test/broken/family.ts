/**
 * Families of broken kernels. A family is one kernel as a user would write it, with a switch for each
 * mistake it can be given; the lines that the report of a mistake has to name are marked with its name,
 * or with one that several mistakes share:
 *
 *   load(() => {
 *     if (mistake !== "no empty wait") empty.wait();
 *     copyAsync(x, buffer, { barrier: full }); // <- no empty wait
 *   });
 *   compute(() => {
 *     full.wait();
 *     out.store(buffer.load()); // <- no empty wait
 *     empty.arrive();
 *   });
 *
 * A line may carry several marks, divided by semicolons. A mark on a line of its own is for the next line.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { open, TilewrightError } from "tilewright";
import type { DiagnosticCode, KernelDefinition, RunArguments, Target } from "tilewright";
import type { Turn } from "../../src/testing/check-kernel.ts";

export interface Expectation {
  readonly code: DiagnosticCode;
  /** What the lines are marked with; the mistake's name unless given. */
  readonly at?: string;
  /** What the report says besides. */
  readonly says?: RegExp;
  /** What is reported instead where a schedule meets another consequence of the mistake first. */
  readonly or?: readonly Expectation[];
}

export interface Family<M extends string = string> {
  readonly name: string;
  /** `import.meta.url` of the file that the kernel stands in. */
  readonly url: string;
  /** The kernel with the mistake, or the right one without. */
  make(this: void, mistake?: M): KernelDefinition;
  readonly inputs: RunArguments<KernelDefinition>;
  readonly mistakes: { readonly [N in M]: Expectation };
  readonly target?: Target;
}

/** A family whose mistakes have names only the family itself has to know. */
export interface AnyFamily extends Omit<Family, "make"> {
  make(this: void, mistake?: string): KernelDefinition;
}

export function family<M extends string>(description: Family<M>): AnyFamily {
  const { make, mistakes } = description;
  const isMistake = (name: string): name is M => Object.hasOwn(mistakes, name);
  const made = new Map<string | undefined, KernelDefinition>();
  const makeOnce = (name?: string): KernelDefinition => {
    if (name !== undefined && !isMistake(name)) throw new Error(`there is no mistake ${name}`);
    const definition = made.get(name) ?? make(name);
    made.set(name, definition);
    return definition;
  };
  return { ...description, make: makeOnce };
}

const marker = "// <- ";

/** The lines with each mark, in order. */
export function markedLines({ url }: AnyFamily): ReadonlyMap<string, readonly number[]> {
  const marked = new Map<string, number[]>();
  for (const [index, text] of readFileSync(fileURLToPath(url), "utf8").split("\n").entries()) {
    const start = text.indexOf(marker);
    if (start < 0) continue;
    const line = text.slice(0, start).trim() === "" ? index + 2 : index + 1;
    for (const name of text.slice(start + marker.length).split("; "))
      marked.set(name, [...(marked.get(name) ?? []), line]);
  }
  return marked;
}

/** Everything that is found in the kernel, while it is traced or when it runs. */
export async function findingsOf(
  { make, inputs, target }: AnyFamily,
  mistake: string | undefined,
  turn: Turn,
): Promise<readonly TilewrightError[]> {
  const findings: TilewrightError[] = [];
  const device = await open("simulator", {
    ...turn,
    ...(target !== undefined && { target }),
    onFindings: (found) => findings.push(...found),
  });
  try {
    await device.run(make(mistake), inputs);
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    if (findings.length === 0) findings.push(error);
  } finally {
    device.dispose();
  }
  return findings;
}

/**
 * The lines a report is about. A deadlock is about all who wait; everything else about two places, of
 * which those of a race may be one line twice.
 */
export function namedLines(
  { code, position, notes }: TilewrightError,
  { url }: AnyFamily,
): readonly number[] {
  const file = fileURLToPath(url);
  const lines = [position, ...notes.map((note) => note.position)]
    .filter((place) => place !== undefined)
    .map((place) => (place.file === file ? place.line : 0));
  const leading = code === "TW3001" ? lines.slice(0, 2) : [...new Set(lines)];
  const about = code === "TW3011" ? leading : leading.slice(0, 2);
  return [...new Set(about)].sort((left, right) => left - right);
}
