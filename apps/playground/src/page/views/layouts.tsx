/** Where the tiles of a kernel lie: choose one of them, a conversion or a buffer, and touch its elements. */
import { useState } from "preact/hooks";
import type { ElementMap, LayoutReport, LayoutSubject } from "../../protocol.ts";
import { Answered, Choice, Empty, LineButton } from "../parts.tsx";
import type { Marking } from "../parts.tsx";
import type { Runner } from "../runner.ts";
import { useAnswer } from "../use-answer.ts";
import { ElementGrid, elementText } from "./element-grid.tsx";
import type { Colouring } from "./element-grid.tsx";

interface LayoutProps {
  readonly runner: Runner;
  readonly run: number;
  readonly kernel: number;
  readonly marking: Marking;
}

export function LayoutsView(props: LayoutProps) {
  const { runner, run, kernel, marking } = props;
  const answer = useAnswer(runner, "layouts", { kernel }, `${run} ${kernel}`);
  return (
    <Answered answer={answer} what="Placing" marking={marking}>
      {(report) => <Layouts {...props} report={report} />}
    </Answered>
  );
}

/** Everything that can be looked at, with its line and words for it. */
interface Subject {
  readonly key: string;
  readonly title: string;
  readonly detail: string;
  readonly line: number | undefined;
  readonly looks: readonly LayoutSubject[];
}

function subjectsOf({
  tiles,
  conversions,
  shared,
}: LayoutReport): readonly (readonly [string, readonly Subject[]])[] {
  const seen = new Set<string>();
  return [
    [
      "Tiles in registers",
      tiles.flatMap((tile, number) => {
        const text = `${tile.dtype} ${tile.shape.join(" × ")} in ${tile.name ?? tile.layout}`;
        // Tiles that lie the same way are shown once a line.
        if (seen.has(`${text} ${tile.line}`)) return [];
        seen.add(`${text} ${tile.line}`);
        const detail = `${text}, ${tile.registers} registers a thread`;
        return [
          {
            key: `tile ${number}`,
            title: tile.op,
            detail,
            line: tile.line,
            looks: [{ kind: "tile", number } as const],
          },
        ];
      }),
    ],
    [
      "Conversions",
      conversions.map(({ op, shape, way, cost, line }, number) => ({
        key: `conversion ${number}`,
        title: `for ${op}`,
        detail: `${shape.join(" × ")}, ${way}, cost ${Math.round(cost)}`,
        line,
        looks: [{ kind: "before", number } as const, { kind: "after", number } as const],
      })),
    ],
    [
      "Buffers in shared memory",
      shared.map(({ name, dtype, shape, layout, line }, number) => ({
        key: `shared ${number}`,
        title: name,
        detail: `${dtype} ${shape.join(" × ")}, ${layout === "" ? "row by row" : layout}`,
        line,
        looks: [{ kind: "shared", number } as const],
      })),
    ],
  ];
}

function Layouts({ report, ...props }: LayoutProps & { readonly report: LayoutReport }) {
  const groups = subjectsOf(report);
  const all = groups.flatMap(([, subjects]) => subjects);
  const [chosen, setChosen] = useState("");
  const [colouring, setColouring] = useState<Colouring>("warp");
  const { marking } = props;
  const ofLine = all.find(({ line }) => line !== undefined && line === marking.marked);
  const subject = all.find(({ key }) => key === chosen) ?? ofLine ?? all[0];
  if (subject === undefined) return <Empty>The kernel has no tiles.</Empty>;
  return (
    <div class="layouts">
      <nav aria-label="Tiles and buffers">
        {groups
          .filter(([, subjects]) => subjects.length > 0)
          .map(([title, subjects]) => (
            <section key={title}>
              <h3>{title}</h3>
              <ul>
                {subjects.map((each) => (
                  <li key={each.key}>
                    <button
                      type="button"
                      class={each === subject ? "chosen" : undefined}
                      aria-current={each === subject}
                      data-line={each.line}
                      onClick={() => {
                        setChosen(each.key);
                        marking.mark(each.line);
                      }}
                    >
                      <strong
                        class={
                          each.line !== undefined && each.line === marking.marked
                            ? "marked"
                            : undefined
                        }
                      >
                        {each.title}
                      </strong>{" "}
                      {each.line !== undefined && <small>line {each.line}</small>}
                      <br />
                      <small>{each.detail}</small>
                    </button>
                  </li>
                ))}
              </ul>
            </section>
          ))}
      </nav>
      <div class="looked-at">
        <h3>
          {subject.title} <LineButton line={subject.line} marking={marking} />
        </h3>
        {subject.looks[0]?.kind !== "shared" && (
          <Choice
            label="Colour"
            value={colouring}
            options={[
              ["warp", "by warp"],
              ["lane", "by lane"],
              ["register", "by register"],
            ]}
            choose={setColouring}
          />
        )}
        <Looks {...props} key={subject.key} subject={subject} colouring={colouring} />
        <Banks report={report} marking={marking} />
      </div>
    </div>
  );
}

/** One grid, or two with the same element chosen in both. */
function Looks({
  runner,
  run,
  kernel,
  marking,
  subject,
  colouring,
}: LayoutProps & { readonly subject: Subject; readonly colouring: Colouring }) {
  const [element, setElement] = useState(0);
  const [said, setSaid] = useState<readonly string[]>([]);
  const choose = (chosen: number, maps: readonly ElementMap[]): void => {
    setElement(chosen);
    setSaid(maps.map((map) => elementText(map, chosen)));
  };
  return (
    <>
      <p class="element-text" role="status" data-testid="element">
        {said.length === 0
          ? "Point at an element, or choose one with the arrow keys."
          : said.join(" → ")}
      </p>
      <div class={subject.looks.length > 1 ? "before-after" : undefined}>
        {subject.looks.map((look) => (
          <Look
            key={`${look.kind} ${look.number}`}
            {...{ runner, run, kernel, marking, look, colouring, element }}
            choose={choose}
            partner={subject.looks.length > 1 ? subject.looks : undefined}
          />
        ))}
      </div>
    </>
  );
}

function Look({
  runner,
  run,
  kernel,
  marking,
  look,
  colouring,
  element,
  choose,
  partner,
}: LayoutProps & {
  readonly look: LayoutSubject;
  readonly colouring: Colouring;
  readonly element: number;
  readonly choose: (element: number, maps: readonly ElementMap[]) => void;
  readonly partner: readonly LayoutSubject[] | undefined;
}) {
  const [first = look, second = look] = partner ?? [];
  const one = useAnswer(
    runner,
    "elements",
    { kernel, subject: first },
    `${run} ${kernel} ${JSON.stringify(first)}`,
  );
  const two = useAnswer(
    runner,
    "elements",
    { kernel, subject: second },
    `${run} ${kernel} ${JSON.stringify(second)}`,
  );
  const own = look === second ? two : one;
  const titles = { tile: "Tile", before: "Before", after: "After", shared: "Buffer" } as const;
  return (
    <div>
      {partner !== undefined && <h4>{titles[look.kind]}</h4>}
      <Answered answer={own} what="Placing" marking={marking}>
        {(map) => (
          <ElementGrid
            map={map}
            colouring={colouring}
            label={titles[look.kind]}
            chosen={Math.min(element, map.rows * map.columns - 1)}
            choose={(chosen) => {
              const maps = partner === undefined ? [own] : [one, two];
              choose(
                chosen,
                maps.flatMap((each) => (each.kind === "given" ? [each.value] : [])),
              );
            }}
          />
        )}
      </Answered>
    </div>
  );
}

function Banks({ report, marking }: { readonly report: LayoutReport; readonly marking: Marking }) {
  if (report.banks.length === 0) return null;
  return (
    <section>
      <h3>Banks of shared memory</h3>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Access</th>
            <th scope="col">Line</th>
            <th scope="col">Wavefronts</th>
            <th scope="col">At best</th>
          </tr>
        </thead>
        <tbody>
          {report.banks.map(({ op, line, wavefronts, ideal }, index) => (
            <tr key={index} class={wavefronts > ideal ? "conflict" : undefined}>
              <td>{op}</td>
              <td>
                <LineButton line={line} marking={marking} />
              </td>
              <td>{wavefronts}</td>
              <td>{ideal}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
