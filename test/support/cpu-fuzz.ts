/** Random kernels of the fuzzer on the CPU's compiler and on the simulator, with the same data. */
import { allocateElements, packedBytes } from "../../src/formats/dtype.ts";
import type { Elements, HostValue } from "../../src/formats/dtype.ts";
import { elementCount } from "../../src/formats/shape.ts";
import { simulate } from "../../src/sim/index.ts";
import { simplify } from "../../src/lower/simplify.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { Random } from "../../src/support/random.ts";
import { dataFor, difference, elementsText, scalarFor } from "../fuzz/data.ts";
import { memoryOf } from "../fuzz/run.ts";
import type { Subject } from "../fuzz/subjects.ts";
import { hostArray } from "../../src/formats/hostarray.ts";
import { runOnCpu } from "./cpu-runs.ts";

interface Prepared {
  readonly arrays: ReadonlyMap<string, Elements>;
  readonly scalars: ReadonlyMap<string, HostValue>;
  readonly dimensions: ReadonlyMap<string, number>;
  /** What the arrays that are written hold, as text. */
  texts(): string;
}

/** Fresh arrays of a subject; the same each time. */
function prepare(subject: Subject): Prepared {
  const { kernel, seed, data, dimensions: given } = subject;
  const random = new Random(seed);
  const dimensions = new Map(Object.entries(given));
  const arrays = new Map<string, Elements>();
  const scalars = new Map<string, HostValue>();
  const written: (() => string)[] = [];
  for (const parameter of kernel.parameters) {
    const { name, role, value } = parameter;
    if (value.type.kind !== "ref") {
      scalars.set(name, scalarFor(parameter, subject, random));
      continue;
    }
    const { dtype } = value.type;
    const shape = memoryOf(parameter, value.type.shape, dimensions);
    const count = elementCount(shape);
    const drawn = data?.[name] ?? dataFor(dtype, count, random);
    const own =
      role === "output"
        ? dtype.bits === 4
          ? new Uint8Array(packedBytes(dtype, count))
          : allocateElements(dtype, count)
        : drawn.data.slice();
    arrays.set(name, own);
    if (role !== "input")
      written.push(() => `${name}: ${elementsText(hostArray(dtype, shape, own as never))}`);
  }
  return { arrays, scalars, dimensions, texts: () => written.map((text) => text()).join("\n") };
}

/** What is different; "same", or why it says nothing. */
export async function compareOnCpu(subject: Subject): Promise<string> {
  const kernel = simplify(subject.kernel);
  const expected = prepare(subject);
  const found = prepare(subject);
  try {
    const { status, overrun } = runOnCpu(subject.kernel, found);
    if (status !== 0) return `status ${status}`;
    if (overrun.length > 0) return `written beside ${overrun.join(", ")}`;
  } catch (error) {
    if (error instanceof TilewrightError) return `refused: ${error.code} ${error.summary}`;
    throw error;
  }
  await simulate(
    kernel,
    {
      arrays: new Map(
        [...expected.arrays].map(([name, data]) => {
          const { type } = kernel.parameters.find((one) => one.name === name)?.value ?? {};
          if (type?.kind !== "ref") throw new Error(`no array ${name}`);
          return [name, { dtype: type.dtype, data, initialised: true }];
        }),
      ),
      scalars: expected.scalars,
      dimensions: expected.dimensions,
    },
    { checks: false },
  );
  const [own, wanted] = [found.texts(), expected.texts()];
  return own === wanted ? "same" : difference(own, wanted);
}
