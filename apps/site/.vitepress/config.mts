/** The site: the pages of docs, the reference of the API, charts, and the playground beside them. */
import { defineConfig } from "vitepress";

const guide = [
  ["The language", "language"],
  ["Running kernels", "running"],
  ["Kernels", "kernels"],
  ["Pipelines", "pipelines"],
  ["The simulator", "simulator"],
  ["The emulator", "emulator"],
  ["Layouts", "layouts"],
  ["Tensor cores", "tensor-cores"],
  ["PTX", "ptx"],
  ["Arrays", "arrays"],
  ["StableHLO", "stablehlo"],
  ["Files", "files"],
  ["Command line", "command-line"],
  ["The playground", "playground"],
] as const;

const reference = [
  ["Operations", "operations"],
  ["StableHLO operations", "stablehlo-operations"],
  ["Diagnostics", "diagnostics"],
  ["Numbers", "numbers"],
  ["Arithmetic", "arithmetic"],
  ["API", "api/"],
] as const;

const project = [
  ["Architecture", "architecture"],
  ["Adding an op", "adding-an-op"],
  ["Adding a graph op", "adding-a-graph-op"],
  ["Adding a library operation", "adding-a-library-operation"],
  ["Adding a pass", "adding-a-pass"],
  ["Adding a target", "adding-a-target"],
  ["Adding a diagnostic", "adding-a-diagnostic"],
  ["Rewrites", "rewrites"],
  ["Reliability", "reliability"],
  ["Benchmarks", "benchmarks"],
  ["Charts", "charts"],
  ["Mutation", "mutation"],
] as const;

function section(text: string, pages: readonly (readonly [string, string])[]) {
  return { text, items: pages.map(([title, page]) => ({ text: title, link: `/${page}` })) };
}

export default defineConfig({
  title: "tilewright",
  description:
    "GPU kernels as TypeScript functions over tiles, with a simulator that finds races and deadlocks.",
  base: process.env["SITE_BASE"] ?? "/",
  srcDir: "../dist/pages",
  outDir: "../dist/site",
  cacheDir: "../dist/cache",
  head: [["link", { rel: "icon", href: `${process.env["SITE_BASE"] ?? "/"}icon.svg` }]],
  // Links to files of the repository lead out of the site.
  ignoreDeadLinks: true,
  // The usual colours of code are too faint for some eyes.
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  themeConfig: {
    logo: "/icon.svg",
    nav: [
      { text: "Guide", link: "/language" },
      { text: "API", link: "/api/" },
      { text: "Charts", link: "/charts" },
      { text: "Playground", link: "/playground/index.html", target: "_self" },
    ],
    sidebar: [
      section("Guide", guide),
      section("Reference", reference),
      section("Project", project),
    ],
    search: { provider: "local" },
    outline: [2, 3],
  },
});
