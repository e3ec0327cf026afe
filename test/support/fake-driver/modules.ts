/**
 * Modules of the fake driver. Its assembler looks for entries and little else: text with `bad instruction` is
 * refused, and a comment with `(C7` comes back as a line of the log. As the driver does, it keeps what it
 * assembled, and has no log for what it finds there. Its cubins are text too.
 */
import { readAddress } from "../../../src/cuda/driver.ts";
import type { DriverCalls } from "../../../src/cuda/functions.ts";
import { success } from "../../../src/cuda/results.ts";
import type { FakeDriver } from "./driver.ts";

type ModuleFunctions = Pick<
  DriverCalls,
  | "cuModuleLoadDataEx"
  | "cuModuleUnload"
  | "cuModuleGetFunction"
  | "cuFuncGetAttribute"
  | "cuFuncSetAttribute"
>;

type Give = (driver: FakeDriver, address: number, value: number) => number;

const invalidImage = 200;
const invalidPtx = 218;
const notFound = 500;
const infoLog = 3;
const errorLog = 5;
const prefix = "fake cubin ";
const sharedLimit = 227 * 1024;
/** Their numbers among the attributes of a function. */
const dynamicSharedBytes = 8;
const nonPortableClusters = 14;

function textAt(driver: FakeDriver, address: number): string {
  const bytes = driver.memory.rest(address);
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(bytes.slice(0, end < 0 ? bytes.byteLength : end));
}

/** Unlike an image, a name says by itself where it ends. */
function nameAt(driver: FakeDriver, address: number): string {
  if (!driver.memory.rest(address).includes(0)) throw new Error("a name without an end");
  return textAt(driver, address);
}

function numbersAt(driver: FakeDriver, address: number, count: number, size: 4 | 8): number[] {
  const bytes = driver.memory.view("host", address, count * size);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return Array.from({ length: count }, (_, index) =>
    size === 4 ? view.getUint32(4 * index, true) : readAddress(view, 8 * index),
  );
}

/** What the assembler says of PTX: what it takes, and the comments that look like its own lines. */
function logOf(ptx: string): string {
  const lines = ptx.split("\n").filter((line) => line.includes("(C7"));
  return ["ptxas info    : Used 40 registers, used 1 barriers", ...lines].join("\n");
}

export function moduleFunctions(driver: FakeDriver, give: Give): ModuleFunctions {
  const optionsAt = (count: number, names: number, values: number): Map<number, number> => {
    const numbers = numbersAt(driver, values, count, 8);
    return new Map(numbersAt(driver, names, count, 4).map((key, at) => [key, numbers[at] ?? 0]));
  };
  return {
    cuModuleLoadDataEx: (address, image, count, names, values) => {
      const options = optionsAt(count, names, values);
      const writeLog = (option: number, text: string): void => {
        const at = options.get(option);
        if (at !== undefined) driver.memory.rest(at).set(new TextEncoder().encode(text));
      };
      const text = textAt(driver, image);
      if (text.startsWith(prefix))
        return give(driver, address, driver.add("module", text.slice(prefix.length).split(",")));
      const entries = [...text.matchAll(/\.entry\s+(\w+)/g)].map(([, entry]) => entry);
      if (entries.length === 0) return invalidImage;
      if (text.includes("bad instruction")) {
        writeLog(errorLog, "ptxas fatal : line 7: bad instruction");
        return invalidPtx;
      }
      if (!driver.assembled.has(text)) {
        driver.assembled.add(text);
        driver.assemblies += 1;
        writeLog(infoLog, logOf(text));
      }
      return give(driver, address, driver.add("module", entries));
    },
    cuModuleUnload: (module) => {
      driver.remove("module", module);
      return success;
    },
    cuModuleGetFunction: (address, module, name) => {
      const entries = driver.find<readonly string[]>("module", module) ?? [];
      const position = entries.indexOf(nameAt(driver, name));
      // A function's handle names its module and its place there.
      return position < 0 ? notFound : give(driver, address, module * 2 ** 16 + position);
    },
    cuFuncGetAttribute: (address, attribute) => {
      const bytes = driver.memory.view("host", address, 4);
      new DataView(bytes.buffer, bytes.byteOffset).setInt32(0, attribute === 4 ? 40 : 0, true);
      return success;
    },
    cuFuncSetAttribute: (handle, attribute, value) => {
      if (attribute === nonPortableClusters) {
        driver.nonPortable.add(handle);
        return success;
      }
      return attribute !== dynamicSharedBytes || value > sharedLimit ? 1 : success;
    },
  };
}
