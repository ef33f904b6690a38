/** What a server is called in every sentence about it. */

/** A server as a person knows it: by its backend and address, or by its address alone while it belongs to no backend yet. */
export interface NamedServer {
  readonly backend: string | null;
  readonly url: string;
}

/** At the beginning of a sentence. */
export function where({ backend, url }: NamedServer): string {
  return backend === null ? `The server at ${url}` : `The backend ${backend} (${url})`;
}

/** The sentence of a failure behind words that name the server already. */
export function behindName(sentence: string, server: NamedServer): string {
  const name = `${where(server)} `;
  return sentence.startsWith(name) ? `it ${sentence.slice(name.length)}` : sentence;
}
