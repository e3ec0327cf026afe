/** Every name of JAX's modules is here, has another name here, or a reason: docs/array-names.md. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as arrays from "tilewright/arrays";
import { markdownTable } from "../../../src/support/markdown.ts";
import { expectGolden } from "../../golden.ts";
import { absent, renamed } from "./mapping.ts";

const file = new URL("../../fixtures/jax-names.json", import.meta.url);
const modules = JSON.parse(readFileSync(file, "utf8")) as {
  readonly [module: string]: readonly string[];
};

/** Modules whose names have all been gone through. */
const complete = ["jax.numpy"];
/** Where a module's names are looked for first. */
const namespaces: { readonly [module: string]: object } = {
  "jax.nn": arrays.nn,
  "jax.random": arrays.random,
};

const camel = (name: string): string =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

function placeOf(module: string, name: string): string | undefined {
  const own = namespaces[module];
  const spelled = camel(name);
  if (own !== undefined && Object.hasOwn(own, spelled))
    return `${module.split(".").at(-1)}.${spelled}`;
  return Object.hasOwn(arrays, spelled) ? spelled : undefined;
}

const reasons = new Map(
  Object.entries(absent).flatMap(([reason, names]) => names.map((name) => [name, reason] as const)),
);

test("every name has a place or a reason", () => {
  const open = complete.flatMap((module) =>
    (modules[module] ?? []).filter((name) => {
      const full = `${module}.${name}`;
      return placeOf(module, name) === undefined && !(full in renamed) && !reasons.has(full);
    }),
  );
  expect(open).toEqual([]);
});

test("names and reasons are of what is there, and of nothing that has a place", () => {
  const all = new Set(
    Object.entries(modules).flatMap(([module, names]) => names.map((name) => `${module}.${name}`)),
  );
  const given = [...Object.keys(renamed), ...reasons.keys()];
  expect(given.filter((name) => !all.has(name))).toEqual([]);
  const placed = given.filter((full) => {
    const [module, name] = [full.slice(0, full.lastIndexOf(".")), full.split(".").at(-1) ?? ""];
    return placeOf(module, name) !== undefined;
  });
  expect(placed).toEqual([]);
  const single = Object.values(renamed).filter((name) => /^\w+$/.test(name) && name !== "x");
  expect(single.filter((name) => !Object.hasOwn(arrays, name))).toEqual([]);
});

test("docs/array-names.md", () => {
  const pages = complete.map((module) => {
    const rows = (modules[module] ?? []).map((name) => {
      const full = `${module}.${name}`;
      const place = placeOf(module, name) ?? renamed[full];
      return [`\`${name}\``, place === undefined ? "" : `\`${place}\``, reasons.get(full) ?? ""];
    });
    const here = rows.filter(([, place]) => place !== "").length;
    const header = [`\`${module}\``, "here", "why not"];
    return `## ${module}\n\n${here} of ${rows.length}.\n\n${markdownTable(header, rows)}\n`;
  });
  expectGolden(
    "docs/array-names.md",
    `# Names of JAX and NumPy

What each function of JAX is called in \`tilewright/arrays\`, for whoever has a program of JAX or NumPy at hand. Axes and flags are options: \`sum(x, { axis: 0 })\`.

${pages.join("\n")}`,
  );
});
