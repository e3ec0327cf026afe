/** A case of an operation of the library: its arrays, one set for each launch in flight, and what its results must be. */
import { tensor, bf16, toNumbers } from "tilewright";
import type { Device, DeviceArray, DTypeName, Operation } from "tilewright";
import { copy } from "tilewright/kernels";
import type { BenchCase, Task } from "../case.ts";
import { randomArray } from "../random.ts";
import { prepared } from "./memory.ts";
import type { Arrays } from "./memory.ts";

/** The numbers of an array, or of one row alone, since gigabytes take seconds. */
export type Numbers = (name: string, row?: number) => Promise<Float64Array>;

export interface LibraryWork {
  readonly name: string;
  readonly task: Task;
  /** Bytes that have to be read and written once. */
  readonly bytes: number;
  readonly operation: Operation;
  /** Inputs and results, by the operation's names. */
  readonly arrays: (device: Device, seed: number) => Arrays;
  /** Throws where numbers are wrong; results were made from these inputs. */
  readonly check: (numbers: Numbers) => Promise<void>;
}

export function libraryCase({
  name,
  task,
  bytes,
  operation,
  arrays,
  check,
}: LibraryWork): BenchCase {
  return {
    ...{ name, task, work: bytes, setBytes: bytes },
    unit: "TB/s",
    prepare: (device, sets) =>
      prepared(
        device,
        Array.from({ length: sets }, (_, seed) => arrays(device, seed)),
        (given) => device.bind(operation, given as never),
        (given) =>
          check(async (of, row) => {
            const whole = named(given, of);
            const wanted = row === undefined ? whole : whole.slice(row, row + 1);
            return toNumbers(await device.download(wanted));
          }),
      ),
  };
}

/** A case beside a copy of half as many bytes as it moves, which moves as many. */
export function besideCopy(work: LibraryWork): BenchCase {
  const one = libraryCase(work);
  const elements = Math.floor(work.bytes / 4);
  const plain = copy({ x: tensor(bf16, [elements]) });
  return {
    ...one,
    prepare: async (device, sets) => {
      const made = await one.prepare(device, sets);
      const copied = Array.from({ length: sets }, (_, seed) => ({
        x: randomArray(device, bf16, [elements], seed),
        out: device.allocate(bf16, [elements]),
      }));
      const [first] = copied;
      if (first === undefined) throw new RangeError("a case has one set at least");
      return {
        ...made,
        measures: { "a copy": (set) => device.bind(plain, copied[set % sets] ?? first) },
        dispose: () => {
          made.dispose();
          for (const { x, out } of copied) for (const each of [x, out]) each.dispose();
        },
      };
    },
  };
}

function named(arrays: Arrays, name: string): DeviceArray<DTypeName> {
  const found = arrays[name];
  if (found === undefined) throw new Error(`the case has no array ${name}`);
  return found;
}

export function requireNear(
  name: string,
  found: number | undefined,
  expected: number,
  bound: number,
): void {
  if (!(Math.abs((found ?? NaN) - expected) <= bound))
    throw new Error(`${name} is ${found}, not ${expected}`);
}
