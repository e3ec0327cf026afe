/** The gallery as a dialog: groups of programs, each opened with a click. */
import { useEffect, useRef } from "preact/hooks";
import { gallery, galleryGroups } from "../../gallery/index.ts";
import type { GalleryItem } from "../../gallery/index.ts";

export function GalleryDialog({
  open,
  choose,
  close,
}: {
  readonly open: boolean;
  readonly choose: (item: GalleryItem) => void;
  readonly close: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} class="gallery" aria-labelledby="gallery-title" onClose={close}>
      <header>
        <h2 id="gallery-title">Gallery</h2>
        <button type="button" onClick={close}>
          Close
        </button>
      </header>
      <div class="groups">
        {galleryGroups.map((group) => (
          <section key={group}>
            <h3>{group}</h3>
            <ul>
              {gallery
                .filter((item) => item.group === group)
                .map((item) => (
                  <li key={item.id}>
                    <button
                      type="button"
                      data-item={item.id}
                      onClick={() => {
                        choose(item);
                        close();
                      }}
                    >
                      <strong>{item.title}</strong>
                      {item.reports === undefined && <small>{item.guide}</small>}
                    </button>
                  </li>
                ))}
            </ul>
          </section>
        ))}
      </div>
    </dialog>
  );
}
