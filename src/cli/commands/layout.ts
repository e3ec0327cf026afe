/** `tilewright layout --register …`: layouts drawn, as text on the terminal and as SVG in a file. */
import { dtypes } from "../../formats/dtype.ts";
import { bankConflicts } from "../../layout/algebra/bank-conflicts.ts";
import { layoutName, layoutOfText } from "../../layout/algebra/named-layouts.ts";
import { registersPerLane, replication } from "../../layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../layout/algebra/register-layout.ts";
import { parseSharedLayout } from "../../layout/algebra/shared-layout.ts";
import { wholeView } from "../../layout/algebra/shared-view.ts";
import type { SharedView } from "../../layout/algebra/shared-view.ts";
import {
  changedElements,
  drawRegisterLayout,
  drawRelayout,
} from "../../layout/drawing/register-drawing.ts";
import { drawSharedLayout } from "../../layout/drawing/shared-drawing.ts";
import type { SharedAccess } from "../../layout/drawing/shared-drawing.ts";
import {
  drawLayoutText,
  drawRelayoutText,
  drawSharedText,
} from "../../layout/drawing/text-drawing.ts";
import { relayoutCost } from "../../layout/relayout/cost.ts";
import { planRelayout } from "../../layout/relayout/relayout.ts";
import type { RelayoutKind } from "../../layout/relayout/steps.ts";
import { writeFile } from "../files.ts";
import type { DrawRequest } from "../layout-request.ts";
import type { Output } from "../output.ts";

/** A request's answer in its three forms. */
interface Drawing {
  readonly text: string;
  readonly svg: () => string;
  readonly document: { readonly [field: string]: unknown };
}

type Drawers = {
  readonly [K in DrawRequest["kind"]]: (request: DrawRequest & { readonly kind: K }) => Drawing;
};

export function layoutCommand(
  request: DrawRequest,
  svg: string | undefined,
  output: Output,
): Promise<number> {
  const draw = drawers[request.kind] as (request: DrawRequest) => Drawing;
  const drawing = draw(request);
  output.line(drawing.text.trimEnd());
  if (svg !== undefined) {
    writeFile(svg, drawing.svg());
    output.line(`wrote ${svg}`);
  }
  output.document({ ...drawing.document, svg });
  return Promise.resolve(0);
}

const drawers: Drawers = {
  register: ({ register, shape }) => {
    const layout = layoutOfText(register);
    return {
      text: drawLayoutText(layout, shape),
      svg: () => drawRegisterLayout(layout, shape),
      document: {
        register: layoutDocument(layout),
        shape,
        registers: registersPerLane(layout, shape),
        replication: replication(layout),
      },
    };
  },

  relayout: ({ register, to, shape, dtype }) => {
    const [before, after] = [layoutOfText(register), layoutOfText(to)];
    const plan = planRelayout(before, after, shape, dtypes[dtype]);
    const cost = plan === undefined ? undefined : relayoutCost(plan);
    const way = plan === undefined ? "there is no way" : `${ways[plan.kind]}, cost ${cost}`;
    return {
      text: `${drawRelayoutText(before, after, shape).trimEnd()}\n${dtype}: ${way}`,
      svg: () => drawRelayout(before, after, shape),
      document: {
        register: layoutDocument(before),
        to: layoutDocument(after),
        shape,
        dtype,
        changed: changedElements(before, after, shape).size,
        kind: plan?.kind,
        cost,
      },
    };
  },

  shared: ({ shared, shape, dtype, register, vectorBytes }) => {
    const view = wholeView(parseSharedLayout(shared), shape, dtypes[dtype].bits);
    const access =
      register === undefined ? undefined : accessOf(layoutOfText(register), view, vectorBytes);
    return {
      text: drawSharedText(view, access),
      svg: () => drawSharedLayout(view, access),
      document: {
        shared: view.layout.text,
        shape,
        dtype,
        access: access === undefined ? undefined : accessDocument(access, view),
      },
    };
  },
};

const ways: { readonly [K in RelayoutKind]: string } = {
  none: "nothing to do",
  registers: "within each thread",
  shuffle: "by shuffles within each warp",
  shared: "through shared memory",
};

function layoutDocument(layout: RegisterLayout): { readonly [field: string]: unknown } {
  return { text: layout.text, name: layoutName(layout) };
}

/** The access of the given width, or else of the widest that the lanes can make. */
function accessOf(
  registers: RegisterLayout,
  view: SharedView,
  vectorBytes: number | undefined,
): SharedAccess {
  const widest = [16, 8, 4, 2].find((bytes) => bankConflicts(registers, view, bytes) !== undefined);
  return { registers, vectorBytes: vectorBytes ?? widest ?? 1 };
}

function accessDocument({ registers, vectorBytes }: SharedAccess, view: SharedView): unknown {
  const use = bankConflicts(registers, view, vectorBytes);
  return { register: layoutDocument(registers), vectorBytes, possible: use !== undefined, ...use };
}
