/** The page: an editor on the left, views on the last run on the right. */
import type { RefObject } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { gallery, galleryItemNamed } from "../../gallery/index.ts";
import type { GalleryItem } from "../../gallery/index.ts";
import { defaultSettings } from "../protocol.ts";
import type { Finding, Settings } from "../protocol.ts";
import type { Editor, EditorOptions } from "./editor.ts";
import { GalleryDialog } from "./gallery-dialog.tsx";
import { LanguageClient } from "./language-client.ts";
import type { LanguageState } from "./language-client.ts";
import { galleryItem, readFragment, shareFragment } from "./links.ts";
import { Panel } from "./panel.tsx";
import type { Marking } from "./parts.tsx";
import { Runner } from "./runner.ts";
import type { RunState, Session, ViewName } from "./state.ts";
import { Toolbar } from "./toolbar.tsx";
import { useRun } from "./use-run.ts";
import type { Theme } from "./toolbar.tsx";

/** Seconds that a program may run by default. */
const usualLimit = 30;

/** A kernel that begins before this line is seen without scrolling. */
const linesInSight = 20;

/** Milliseconds after the first result before the rest of the worker is fetched. */
const restPause = 300;

/** Milliseconds without a key before an edited program runs. */
const editPause = 50;

function sessionOf(
  item: GalleryItem,
  settings: Settings = defaultSettings,
  seconds = usualLimit,
): Session {
  const { name, language, source, guide } = item;
  const program = { name, language, source };
  return { program, settings, seconds, trusted: true, guide, edited: false };
}

/** What the address asks for; the first example where it asks for nothing. */
export async function firstSession(fragment: string): Promise<Session> {
  const [axpy] = gallery;
  if (axpy === undefined) throw new Error("the gallery is empty");
  const shared = await readFragment(fragment);
  if (shared !== undefined) {
    const { program, settings } = shared;
    return {
      program,
      settings,
      seconds: usualLimit,
      trusted: false,
      guide: undefined,
      edited: false,
    };
  }
  return sessionOf(galleryItemNamed(galleryItem(fragment) ?? "") ?? axpy);
}

interface AppProps {
  readonly first: Session;
  readonly frame: HTMLIFrameElement;
}

export function App({ first, frame }: AppProps) {
  const [session, setSession] = useState(first);
  const [marked, setMarked] = useState<number>();
  const [view, setView] = useState<ViewName>("results");
  const [auto, setAuto] = useState(true);
  const [isGalleryOpen, setGalleryOpen] = useState(false);
  const [theme, setTheme] = useTheme();
  const [types, setTypes] = useState<LanguageState>("not loaded");
  const runner = useMemo(() => new Runner(frame), []);
  const { started, run, printed, refused, isDue, start, startLater, cancelLater, forget } =
    useRun(runner);
  const client = useMemo(() => new LanguageClient(setTypes), []);
  const editor = useRef<Editor>(undefined);
  const latest = useRef(session);
  latest.current = session;

  const runNow = useCallback((): void => {
    const trusted = { ...latest.current, trusted: true };
    setSession(trusted);
    void start(trusted);
  }, []);

  /** Runs what was changed, where that is wanted. */
  const rerun = (changed: Session, delay: number): void => {
    setSession(changed);
    if (changed.trusted && auto) startLater(changed, delay);
    else cancelLater();
  };
  const rerunLatest = useRef(rerun);
  rerunLatest.current = rerun;

  const mark = useCallback((line: number | undefined): void => {
    setMarked(line);
    if (line !== undefined) editor.current?.reveal(line);
  }, []);
  const marking: Marking = { marked, mark };

  const editorHost = useEditor(editor, latest, {
    client,
    changed: (source) => {
      setMarked(undefined);
      const { program } = latest.current;
      rerunLatest.current(
        { ...latest.current, program: { ...program, source }, edited: true },
        editPause,
      );
    },
    moved: setMarked,
    run: runNow,
  });
  useEffect(() => {
    if (first.trusted) void start(first);
  }, []);
  useRest(runner, run.kind === "finished" || !first.trusted);

  const findings = run.kind === "finished" ? run.report.findings : none;
  useEffect(() => {
    editor.current?.mark({
      found: findings.flatMap(({ line }) => line ?? []),
      related: findings.flatMap(({ notes }) => notes.flatMap(({ line }) => line ?? [])),
      marked,
    });
  }, [findings, marked, session.program.source]);

  useEffect(() => {
    const line = run.kind === "finished" ? run.report.kernels[0]?.line : undefined;
    showKernel(editor.current, session, line);
  }, [session.guide, run.kind]);

  const open = (item: GalleryItem): void => {
    const next = sessionOf(item, session.settings, session.seconds);
    history.replaceState(null, "", `#g=${item.id}`);
    show(next);
    void start(next);
  };
  const show = (next: Session): void => {
    client.enable(next.program.language === "typescript");
    editor.current?.setText(next.program.source, next.program.language);
    setMarked(undefined);
    setSession(next);
    forget();
  };
  useEffect(() => onFragment(runner, latest, show, start), []);

  return (
    <>
      <a class="skip" href="#view">
        Skip to the results
      </a>
      <Toolbar
        {...{ session, run, theme, auto, runNow }}
        share={() => shareSession(session)}
        stop={() => {
          runner.stop();
        }}
        change={(settings) => {
          rerun({ ...session, settings }, 0);
        }}
        changeSeconds={(seconds) => {
          setSession({ ...session, seconds });
        }}
        changeAuto={setAuto}
        changeTheme={setTheme}
        openGallery={() => {
          setGalleryOpen(true);
        }}
      />
      <main data-state={run.kind} data-run={started} data-due={isDue}>
        <EditorSide {...{ session, run, types, host: editorHost }} />
        <Panel
          {...{ session, run, runner, marking, printed, refused, view, runNow }}
          show={setView}
        />
      </main>
      <GalleryDialog
        open={isGalleryOpen}
        choose={open}
        close={() => {
          setGalleryOpen(false);
        }}
      />
    </>
  );
}

function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>("system");
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return [theme, setTheme];
}

const none: readonly Finding[] = [];

/** Programs of the gallery begin with what they import; the kernel is what one wants to see. */
function showKernel(editor: Editor | undefined, session: Session, line: number | undefined): void {
  if (!session.edited && session.guide !== undefined && line !== undefined && line > linesInSight)
    editor?.showFrom(line - 1);
}

/** Puts the program into the address, and the address onto the clipboard. */
async function shareSession({ program, settings }: Session): Promise<void> {
  history.replaceState(null, "", await shareFragment({ program, settings }));
  // Where the clipboard is not for pages, the address bar has the link.
  await navigator.clipboard.writeText(location.href).catch(() => undefined);
}

/** Shows what the address asks for when it changes; gives what stops that. */
function onFragment(
  runner: Runner,
  latest: { readonly current: Session },
  show: (session: Session) => void,
  start: (session: Session) => Promise<void>,
): () => void {
  const changed = async (): Promise<void> => {
    runner.stop();
    const asked = await firstSession(location.hash);
    const next = { ...asked, seconds: latest.current.seconds };
    show(next);
    if (next.trusted) await start(next);
  };
  const listener = (): void => void changed();
  addEventListener("hashchange", listener);
  return () => {
    removeEventListener("hashchange", listener);
  };
}

/** What comes later, such as the compiler, is fetched once the first result is there. */
function useRest(runner: Runner, isReady: boolean): void {
  useEffect(() => {
    if (isReady) setTimeout(() => void runner.fetchRest().catch(() => undefined), restPause);
  }, [isReady]);
}

/** Makes the editor once it is loaded and its place is in the page. */
function useEditor(
  editor: { current: Editor | undefined },
  latest: { readonly current: Session },
  options: Pick<EditorOptions, "client" | "changed" | "moved" | "run">,
): RefObject<HTMLDivElement | null> {
  const host = useRef<HTMLDivElement>(null);
  const make = async (): Promise<void> => {
    const { Editor: LoadedEditor } = await import("./editor.ts");
    if (host.current === null) return;
    const { source: text, language } = latest.current.program;
    options.client.enable(language === "typescript");
    host.current.textContent = "";
    editor.current = new LoadedEditor({ ...options, host: host.current, text, language });
  };
  useEffect(() => void make(), []);
  return host;
}

/** How the last run went, in a few words. */
function statusText(run: RunState): string {
  if (run.kind === "none") return "";
  if (run.kind === "running") return `${run.message} …`;
  if (run.kind === "stopped") return "Stopped";
  if (run.kind === "not loaded") return "Not loaded";
  if (run.kind === "cut off") return "Stopped: it sent what no program sends";
  if (run.kind === "timed out") return `Stopped: it took longer than ${run.seconds} s`;
  const { findings, milliseconds } = run.report;
  const codes = [...new Set(findings.map(({ code }) => code))];
  return `${codes.length === 0 ? "No findings" : `Found ${codes.join(", ")}`}, ${Math.round(milliseconds)} ms`;
}

const typesText: { readonly [S in LanguageState]: string } = {
  "not loaded": "",
  loading: "loading types …",
  ready: "types ready",
  failed: "types could not be loaded",
};

/** The left side: the file, how the last run went, what the gallery says, and the editor. */
function EditorSide({
  session,
  run,
  types,
  host,
}: {
  readonly session: Session;
  readonly run: RunState;
  readonly types: LanguageState;
  readonly host: RefObject<HTMLDivElement | null>;
}) {
  return (
    <section class="editor-side" aria-label="Editor">
      <div class="file-bar">
        <span class="file">{session.program.name}</span>
        <span class="types">{typesText[types]}</span>
        <span class="status" role="status" data-testid="status">
          {statusText(run)}
        </span>
      </div>
      {session.guide !== undefined && <Guide session={session} run={run} />}
      <div class="editor" ref={host} />
    </section>
  );
}

/** What the gallery says of its program; what is wrong with a bug is told once it was found. */
function Guide({ session, run }: { readonly session: Session; readonly run: RunState }) {
  const item = gallery.find(({ name }) => name === session.program.name);
  if (item?.reports === undefined) return <p class="guide">{session.guide}</p>;
  const isFound = run.kind === "finished" && run.report.findings.length > 0;
  return (
    <details class="guide">
      <summary>
        {isFound ? "Findings names the lines. What is wrong?" : "Can you see what is wrong?"}
      </summary>
      {session.guide}
    </details>
  );
}
