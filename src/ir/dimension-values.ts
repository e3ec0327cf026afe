/** Values for a kernel's named dimensions, as launches and costs are given them. */
import { TilewrightError } from "../support/diagnostics.ts";
import { isReadable, isRecord, optionText } from "../support/options.ts";
import type { KernelInterface } from "./node.ts";
import type { DimensionValues } from "./size.ts";

export function requireDeclared(kernel: KernelInterface, name: string): void {
  if (kernel.dimensions.some((dimension) => dimension.name === name)) return;
  throw new TilewrightError({
    code: "TW4006",
    message: `kernel ${kernel.name} has no dimension ${name}`,
    expected: kernel.dimensions.map((dimension) => dimension.name).join(", ") || "no dimensions",
    found: name,
  });
}

/** Refuses what is no value for the dimension; `source` says where it comes from. */
export function requireLegal(
  kernel: KernelInterface,
  name: string,
  value: number,
  source: string,
): void {
  const multiple = kernel.dimensions.find((dimension) => dimension.name === name)?.multipleOf ?? 1;
  const isSize = Number.isSafeInteger(value) && value >= 0 && value < 2 ** 31;
  if (isSize && value % multiple === 0) return;
  throw new TilewrightError({
    code: "TW4007",
    message: `${optionText(value)} is no value for dimension ${name} of kernel ${kernel.name} (${source})`,
    expected:
      multiple === 1
        ? "a whole number from 0 below 2^31"
        : `a whole multiple of ${multiple} below 2^31`,
    found: optionText(value),
    // The usual remedy is about multiples.
    ...(!isSize && { remedy: "give a whole number from 0 below 2^31" }),
  });
}

/** A value for every dimension of the kernel, from an object of them. */
export function allDimensions(kernel: KernelInterface, given: unknown): DimensionValues {
  if (!isRecord(given) || !isReadable(given, Object.keys(given)))
    throw new TilewrightError({
      code: "TW4016",
      message: `the dimensions of kernel ${kernel.name} cannot be ${optionText(given)}`,
      expected: "an object with a number for each name, such as { n: 1000 }",
      found: optionText(given),
    });
  for (const name of Object.keys(given)) requireDeclared(kernel, name);
  return new Map(
    kernel.dimensions.map(({ name }) => {
      const value = given[name];
      if (value === undefined)
        throw new TilewrightError({
          code: "TW4008",
          message: `nothing gives dimension ${name} of kernel ${kernel.name} a value`,
          expected: `{ ${name}: … }`,
          found: Object.keys(given).join(", ") || "no sizes",
          remedy: `give each dimension a size, such as { ${name}: 1000 }`,
        });
      requireLegal(kernel, name, value as number, "the given dimensions");
      return [name, value as number];
    }),
  );
}
