import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Place, type PlacedItem, Placement } from './placement';

interface Item extends PlacedItem {
  id: number;
}

let ids = 0;
const item = (key: string, tokens = 10, keepsTogether = true): Item => ({
  id: ids++,
  key,
  tokens,
  keepsTogether,
  avoid: null,
  stamp: 0,
  arrival: 0,
});

function places(count: number, changes: Partial<Place<Item>> = {}): Place<Item>[] {
  return Array.from({ length: count }, () =>
    Object.assign(new Place<Item>(), { usable: true, maxInFlight: 8, limit: 8 }, changes),
  );
}

/** Everything that can be sent now. */
function sendAll(placement: Placement<Item>): { item: Item; at: number }[] {
  const sent: { item: Item; at: number }[] = [];
  for (let next = placement.next(); next; next = placement.next())
    sent.push({ item: next.item, at: placement.places.indexOf(next.place) });
  return sent;
}

const put = (placement: Placement<Item>, ...items: Item[]) => {
  for (const one of items) placement.add(one);
  return sendAll(placement);
};

describe('placing requests', () => {
  it('sends a new key to the least loaded replica, by requests and by tokens', () => {
    const [a, b, c] = places(3, { maxTokens: 1000 }) as [Place<Item>, Place<Item>, Place<Item>];
    const placement = new Placement([a, b, c]);
    expect(put(placement, item('1'), item('2'), item('3')).map(({ at }) => at)).toEqual([0, 1, 2]);
    expect(put(placement, item('long', 800))).toMatchObject([{ at: 0 }]);
    expect(put(placement, item('4'), item('5')).map(({ at }) => at)).toEqual([1, 2]);
    expect([a.inFlight, b.inFlight, c.inFlight]).toEqual([2, 2, 2]);
    expect(put(placement, item('6')).map(({ at }) => at)).not.toEqual([0]);
  });

  it('keeps a key where it began, until that replica is much fuller than another', () => {
    const placement = new Placement(places(2));
    const [first] = put(placement, item('k'), item('other'));
    expect(first?.at).toBe(0);
    // One more on the first: 2 of 8 against 1 of 8 is within the margin.
    expect(put(placement, item('k'))).toMatchObject([{ at: 0 }]);
    // 2 of 8 against 1 of 8 is still within it, 3 against 1 is not.
    expect(put(placement, item('k'))).toMatchObject([{ at: 0 }]);
    expect(put(placement, item('k'))).toMatchObject([{ at: 1 }]);
    expect(placement.homeOf('k')).toBe(placement.places[1]);
  });

  it('lets those who wait for a full replica go to one that became empty', () => {
    const placement = new Placement(places(2));
    const sent = put(placement, ...Array.from({ length: 16 }, (_, k) => item(`${k}`)));
    const home = sent.find(({ at: place }) => place === 0)?.item as Item;
    expect(put(placement, item(home.key))).toEqual([]);
    for (const { item: done } of sent.filter(({ at: place }) => place === 1).slice(0, 1))
      placement.leave(done, placement.places[1] as Place<Item>);
    expect(sendAll(placement)).toMatchObject([{ at: 1, item: { key: home.key } }]);
  });

  it('prefers the newest weights while they have room', () => {
    const [old, fresh] = places(2) as [Place<Item>, Place<Item>];
    const placement = new Placement([old, fresh]);
    put(placement, item('k'));
    expect(placement.homeOf('k')).toBe(old);
    old.newest = false;
    placement.placesChanged();
    expect(put(placement, item('k'), item('new'))).toMatchObject([{ at: 1 }, { at: 1 }]);
    const rest = put(placement, ...Array.from({ length: 8 }, (_, k) => item(`${k}`)));
    expect(rest.map(({ at }) => at)).toEqual([1, 1, 1, 1, 1, 1, 0, 0]);
  });

  it('goes elsewhere after a failure, and to the same replica when there is no other', () => {
    const [a, b] = places(2) as [Place<Item>, Place<Item>];
    const placement = new Placement([a, b]);
    const [sent] = put(placement, item('k'));
    placement.leave(sent?.item as Item, a);
    placement.addAgain(sent?.item as Item, a);
    expect(sendAll(placement)).toMatchObject([{ at: 1 }]);
    placement.leave(sent?.item as Item, b);
    a.usable = false;
    placement.placesChanged();
    placement.addAgain(sent?.item as Item, b);
    expect(sendAll(placement)).toMatchObject([{ at: 1 }]);
  });

  it('sends those who wait for a replica elsewhere at once when it goes down', () => {
    const [a, b] = places(2) as [Place<Item>, Place<Item>];
    const placement = new Placement([a, b], { margin: 0.5 });
    const sent = put(placement, ...Array.from({ length: 14 }, (_, k) => item(`${k}`)));
    const home = sent.filter(({ at }) => at === 0).map(({ item: one }) => one.key);
    expect(put(placement, item(home[0] as string), item(home[1] as string))).toMatchObject([{ at: 0 }]);
    a.usable = false;
    placement.placesChanged();
    expect(sendAll(placement)).toMatchObject([{ at: 1 }]);
  });

  it('gives a key with a thousand requests no more turns than one with a few', () => {
    const [place] = places(1, { maxInFlight: 1, limit: 1 }) as [Place<Item>];
    const placement = new Placement([place]);
    for (let k = 0; k < 1000; k++) placement.add(item('bulk', 1, false));
    let waits = item('small');
    placement.add(waits);
    const turns: string[] = [];
    for (let k = 0; k < 40; k++) {
      const [sent] = sendAll(placement);
      turns.push(sent?.item.key ?? '');
      placement.leave(sent?.item as Item, place);
      if (sent?.item !== waits) continue;
      waits = item('small');
      placement.add(waits);
    }
    // The small one asks again only after its answer, and still neither starves nor starves the other.
    expect(turns.filter((key) => key === 'small').length).toBeGreaterThan(15);
    expect(turns.filter((key) => key === 'bulk').length).toBeGreaterThan(15);
  });

  it('lets a large request wait for room without being overtaken for ever', () => {
    const [place] = places(1, { maxTokens: 100 }) as [Place<Item>];
    const placement = new Placement([place]);
    const small = put(placement, item('a', 40), item('b', 40)).map(({ item: one }) => one);
    expect(put(placement, item('large', 90), item('c', 10))).toEqual([]);
    placement.leave(small[0] as Item, place);
    expect(sendAll(placement)).toEqual([]);
    placement.leave(small[1] as Item, place);
    expect(sendAll(placement).map(({ item: one }) => one.key)).toEqual(['large', 'c']);
    // Those who are at home there do not overtake it either.
    const home = new Placement(places(1, { maxTokens: 100 }));
    const [first] = put(home, item('a', 40), item('b', 40));
    put(home, item('large', 90), item('a', 10));
    home.leave(first?.item as Item, home.places[0] as Place<Item>);
    expect(sendAll(home)).toEqual([]);
    // Larger than the limit: alone, and not never.
    const alone = new Placement(places(1, { maxTokens: 100 }));
    expect(put(alone, item('huge', 500), item('d', 1))).toMatchObject([{ item: { key: 'huge' } }]);
  });

  it('holds its promises under any order of arrivals, answers, failures and outages', () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          do: fc.constant('add' as const),
          key: fc.nat(12),
          tokens: fc.integer({ min: 1, max: 60 }),
        }),
      },
      { weight: 5, arbitrary: fc.record({ do: fc.constant('leave' as const), pick: fc.nat(1000) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), pick: fc.nat(1000) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('giveUp' as const), pick: fc.nat(1000) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('toggle' as const), place: fc.nat(2) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const all = places(3, { maxInFlight: 4, limit: 4, maxTokens: 100 });
        const placement = new Placement(all, { margin: 0.5, keys: 8 });
        const waiting = new Set<Item>();
        const flying: { item: Item; place: Place<Item> }[] = [];
        const send = () => {
          for (;;) {
            const before = all.map((place) => ({ load: place.load, room: (tokens: number) => place.hasRoom(tokens) }));
            const homes = new Map([...waiting].map((one) => [one, placement.homeOf(one.key)]));
            const rooms = new Map([...waiting].map((one) => [one, all.map((place) => place.hasRoom(one.tokens))]));
            const next = placement.next();
            if (!next) break;
            const { item: sent, place } = next;
            expect(waiting.delete(sent)).toBe(true);
            flying.push(next);
            const at = all.indexOf(place);
            // Only where there was room.
            expect(rooms.get(sent)?.[at]).toBe(true);
            const home = homes.get(sent) ?? null;
            const usable = all.filter(
              (one) => one.usable && (one !== sent.avoid || all.every((o) => !o.usable || o === sent.avoid)),
            );
            const withRoom = usable.filter((one) => rooms.get(sent)?.[all.indexOf(one)]);
            const loads = withRoom.map((one) => before[all.indexOf(one)]?.load ?? 0);
            const least = Math.min(...loads);
            if (home && home !== place && home.usable && home !== sent.avoid)
              expect((before[all.indexOf(home)]?.load ?? 0) - least).toBeGreaterThan(0.5);
            if (home !== place) expect(before[at]?.load).toBe(least);
          }
          for (const place of all) {
            expect(place.inFlight).toBeLessThanOrEqual(place.maxInFlight);
            if (place.inFlight > 1) expect(place.tokensInFlight).toBeLessThanOrEqual(place.maxTokens);
            const here = flying.filter((one) => one.place === place);
            expect(place.inFlight).toBe(here.length);
            expect(place.tokensInFlight).toBe(here.reduce((sum, one) => sum + one.item.tokens, 0));
          }
          expect(placement.waiting).toBe(waiting.size);
        };
        for (const one of steps) {
          if (one.do === 'add') {
            const added = item(`k${one.key}`, one.tokens, one.key > 2);
            waiting.add(added);
            placement.add(added);
          } else if (one.do === 'giveUp') {
            const given = [...waiting][one.pick % Math.max(1, waiting.size)];
            if (given) {
              expect(placement.remove(given)).toBe(true);
              waiting.delete(given);
            }
          } else if (one.do === 'toggle') {
            const place = all[one.place] as Place<Item>;
            place.usable = !place.usable;
            placement.placesChanged();
          } else if (flying.length > 0) {
            const [left] = flying.splice(one.pick % flying.length, 1);
            if (!left) continue;
            placement.leave(left.item, left.place);
            if (one.do === 'fail') {
              waiting.add(left.item);
              placement.addAgain(left.item, left.place);
            }
          }
          send();
        }
        // Nobody is forgotten: with all up and answers coming, all are sent.
        for (const place of all) place.usable = true;
        placement.placesChanged();
        send();
        while (flying.length > 0) {
          const left = flying.shift();
          if (left) placement.leave(left.item, left.place);
          send();
        }
        expect(waiting.size).toBe(0);
      }),
      { numRuns: 300 },
    );
  });
});
