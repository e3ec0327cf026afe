/** Bar charts of the kernels measured on a GPU, beside their peers, from the figures in docs/benchmarks. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [width, barHeight, left] = [760, 20, 210];

/** Whether a peer's name, such as "gemm 2048 cuBLAS", is about a result, such as "gemm 2048". */
function peerOf(peer, result, others) {
  const shared = (name) => {
    const [own, given] = [name.split(" "), peer.split(" ")];
    let count = 0;
    while (count < own.length && own[count] === given[count]) count += 1;
    return count;
  };
  const best = Math.max(...others.map(shared));
  return best > 0 && shared(result) === best;
}

function rate(work, milliseconds, unit) {
  const scale = unit.startsWith("T") ? 1e12 : 1e9;
  return work / (milliseconds / 1000) / scale;
}

function escaped(text) {
  return text.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
}

function chart(unit, groups) {
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)));
  let y = 8;
  const parts = groups.map(({ name, bars }) => {
    const top = y;
    const rows = bars.map(({ label, value, isOurs }) => {
      const length = Math.max(2, ((width - left - 130) * value) / most);
      const row = `<rect class="${isOurs ? "ours" : "peer"}" x="${left}" y="${y}" width="${length.toFixed(1)}" height="${barHeight - 4}" rx="3"/><text x="${left + length + 6}" y="${y + 13}">${value.toPrecision(3)} ${escaped(label)}</text>`;
      y += barHeight;
      return row;
    });
    y += 12;
    return `<text x="0" y="${top + 13}">${escaped(name)}</text>${rows.join("")}`;
  });
  const words = groups.map(
    ({ name, bars }) =>
      `${name}: ${bars.map(({ label, value }) => `${label} ${value.toPrecision(3)}`).join(", ")}`,
  );
  return `<svg class="chart" viewBox="0 0 ${width} ${y}" role="img" aria-label="${escaped(`${unit}. ${words.join("; ")}`)}">${parts.join("")}</svg>`;
}

/** The page of charts, as Markdown. */
export function chartsPage(docs) {
  const folder = join(docs, "benchmarks");
  const sections = readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .flatMap((name) => {
      const {
        machine = name,
        date = "",
        results = [],
        peers = {},
      } = JSON.parse(readFileSync(join(folder, name), "utf8"));
      const names = results.map((result) => result.name);
      const units = [...new Set(results.map(({ unit }) => unit))].filter(
        (unit) => typeof unit === "string",
      );
      const charts = units.map((unit) => {
        const groups = results
          .filter((result) => result.unit === unit)
          .map(({ name: result, milliseconds, work }) => ({
            name: result,
            bars: [
              { label: "tilewright", value: rate(work, milliseconds, unit), isOurs: true },
              ...Object.entries(peers)
                .filter(([peer, time]) => typeof time === "number" && peerOf(peer, result, names))
                .map(([peer, time]) => ({
                  label: peer.split(" ").at(-1),
                  value: rate(work, time, unit),
                  isOurs: false,
                })),
            ],
          }));
        return `### ${unit}\n\n${chart(unit, groups)}\n`;
      });
      return charts.length === 0
        ? []
        : [`## ${machine}\n\nMeasured on ${date}; higher is better.\n\n${charts.join("\n")}`];
    });
  return `# Charts\n\nKernels of the project beside their peers, in the same run on the same GPU. [Benchmarks](benchmarks.md) says how they were\nmeasured.\n\n${sections.join("\n")}\n`;
}
