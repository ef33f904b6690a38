import { NextIntlClientProvider } from 'next-intl';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import english from '../../messages/en.json';
import { divergingScale } from './scale';
import { ScaleLegend } from './scale-legend';

const legendOf = (values: number[]): string => {
  const scale = divergingScale(values);
  return renderToStaticMarkup(
    <NextIntlClientProvider locale="en" messages={english} timeZone="UTC">
      <ScaleLegend scale={scale} low="low" high="high" bound={`±${scale.limit}`} />
    </NextIntlClientProvider>,
  );
};

describe('the legend of a scale', () => {
  const small = Array.from({ length: 1000 }, (_, i) => ((i % 100) - 50) / 100);

  it('says at which percentile it was clipped, at what value, and how many lie beyond', () => {
    const legend = legendOf([...small, 40]);
    const { limit, clipped } = divergingScale([...small, 40]);
    expect(limit).toBeLessThan(1);
    expect(legend).toContain('p99');
    expect(legend).toContain(`±${limit}`);
    expect(legend).toMatch(new RegExp(`\\b${clipped}\\b`));
  });

  it('says nothing of the kind where nothing was', () => {
    expect(legendOf(small)).not.toContain('p99');
  });
});
