'use client';
import { type ReactNode, useEffect, useRef } from 'react';

/** A modal on the browser's own <dialog>: focus is kept inside, Escape closes, focus returns. */
export function Dialog({
  open,
  title,
  onClose,
  children,
}: {
  open: boolean;
  title: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (!element) return;
    if (open && !element.open) element.showModal();
    if (!open && element.open) element.close();
  }, [open]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape is the browser's own way to close a dialog
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
      className="m-auto max-h-[85dvh] w-[min(32rem,calc(100vw-2rem))] rounded-md border border-line bg-raised p-0 text-ink shadow-raised focus-visible:outline-none backdrop:bg-veil"
    >
      {open ? (
        <div className="p-4">
          <h2 className="mb-3 text-lg font-semibold">{title}</h2>
          {children}
        </div>
      ) : null}
    </dialog>
  );
}
