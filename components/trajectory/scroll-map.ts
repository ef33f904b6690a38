/**
 * Scroll positions of content that may be taller than a browser lets an element be (Firefox stops near 17 million
 * pixels): beyond the limit the scroll bar's range stands for the whole content in proportion.
 */
export const TALLEST_ELEMENT = 8_000_000;

export interface ScrollMap {
  /** Height to give the element. */
  elementHeight: number;
  toContent(scrollTop: number): number;
  toScroll(contentTop: number): number;
}

export function scrollMap(contentHeight: number, windowHeight: number): ScrollMap {
  const elementHeight = Math.min(contentHeight, TALLEST_ELEMENT);
  const contentRange = Math.max(0, contentHeight - windowHeight);
  const scrollRange = Math.max(0, elementHeight - windowHeight);
  const scale = scrollRange > 0 ? contentRange / scrollRange : 1;
  return {
    elementHeight,
    toContent: (scrollTop) => Math.max(0, Math.min(contentRange, scrollTop * scale)),
    toScroll: (contentTop) => Math.max(0, Math.min(contentRange, contentTop)) / scale,
  };
}
