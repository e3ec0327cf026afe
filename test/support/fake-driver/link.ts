/**
 * The fake assembler. It looks for entries and little else: text with `bad instruction` is refused, and a
 * comment with `(C7` comes back as a line of the information log. Its cubins are text too.
 */
import { readAddress } from "../../../src/cuda/driver.ts";
import type { DriverCalls } from "../../../src/cuda/functions.ts";
import { success } from "../../../src/cuda/results.ts";
import type { FakeDriver } from "./driver.ts";

type LinkFunctions = Pick<
  DriverCalls,
  | "cuLinkCreate"
  | "cuLinkAddData"
  | "cuLinkComplete"
  | "cuLinkDestroy"
  | "cuModuleLoadData"
  | "cuModuleUnload"
  | "cuModuleGetFunction"
  | "cuFuncGetAttribute"
  | "cuFuncSetAttribute"
>;

type Give = (driver: FakeDriver, address: number, value: number) => number;

interface Link {
  readonly options: ReadonlyMap<number, number>;
  cubin: Uint8Array;
  image: number;
}

const invalidImage = 200;
const invalidPtx = 218;
const notFound = 500;
const infoLog = 3;
const errorLog = 5;
const prefix = "fake cubin ";
const sharedLimit = 227 * 1024;
/** Its number among the attributes of a function. */
const dynamicSharedBytes = 8;

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

export function linkFunctions(driver: FakeDriver, give: Give): LinkFunctions {
  const writeLog = (link: Link, option: number, text: string): void => {
    const address = link.options.get(option);
    if (address !== undefined) driver.memory.rest(address).set(new TextEncoder().encode(text));
  };
  return {
    cuLinkCreate: (count, names, values, address) => {
      const keys = numbersAt(driver, names, count, 4);
      const numbers = numbersAt(driver, values, count, 8);
      const options = new Map(keys.map((key, index) => [key, numbers[index] ?? 0]));
      const link: Link = { options, cubin: new Uint8Array(0), image: 0 };
      return give(driver, address, driver.add("link", link));
    },
    cuLinkAddData: (state, _type, data) => {
      const link = driver.find<Link>("link", state);
      if (link === undefined) return invalidImage;
      const ptx = textAt(driver, data);
      if (ptx.includes("bad instruction")) {
        writeLog(link, errorLog, "ptxas fatal : line 7: bad instruction");
        return invalidPtx;
      }
      writeLog(
        link,
        infoLog,
        ptx
          .split("\n")
          .filter((line) => line.includes("(C7"))
          .join("\n"),
      );
      const entries = [...ptx.matchAll(/\.entry\s+(\w+)/g)].map(([, entry]) => entry);
      link.cubin = new TextEncoder().encode(`${prefix}${entries.join(",")}\0`);
      return success;
    },
    cuLinkComplete: (state, imageAddress, sizeAddress) => {
      const link = driver.find<Link>("link", state);
      if (link === undefined) return invalidImage;
      link.image = driver.memory.allocate("host", link.cubin.byteLength);
      driver.memory.rest(link.image).set(link.cubin);
      give(driver, imageAddress, link.image);
      return give(driver, sizeAddress, link.cubin.byteLength);
    },
    cuLinkDestroy: (state) => {
      const link = driver.find<Link>("link", state);
      if (link !== undefined && link.image !== 0) driver.memory.free("host", link.image);
      driver.remove("link", state);
      return success;
    },
    cuModuleLoadData: (address, image) => {
      const text = textAt(driver, image);
      if (!text.startsWith(prefix)) return invalidImage;
      const entries = text.slice(prefix.length).split(",");
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
    cuFuncSetAttribute: (_function, attribute, value) =>
      attribute !== dynamicSharedBytes || value > sharedLimit ? 1 : success,
  };
}
