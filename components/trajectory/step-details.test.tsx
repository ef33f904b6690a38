/** What a model, a tool or a task wrote is shown as text, whatever it looks like. */
import { NextIntlClientProvider } from 'next-intl';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import english from '../../messages/en.json';
import type { StepView } from '../../server/core/views';
import { StepCalls, StepScore } from './step-details';

const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '[press me](javascript:alert(2)) javascript:alert(3)',
  '<a href="javascript:alert(4)">x</a>',
  '</script><script>alert(5)</script>',
  '"><svg/onload=alert(6)>',
];

for (const text of HOSTILE)
  it(`shows ${text} as text in every place of a step`, () => {
    const step: StepView = {
      stepNumber: 0,
      thought: text,
      actions: [
        { index: 0, tool: text, arguments: { [text]: text }, raw: text },
        { index: 1, tool: 'probe', arguments: null, raw: text },
      ],
      results: [0, 1].map((callIndex) => ({
        callIndex,
        tool: text,
        status: 'error',
        observation: text,
        error: text,
        durationMs: 1,
        sandboxLevel: null,
        truncated: { keptBytes: 1, totalBytes: 2, outputId: text },
        permission: { level: 'full_trust', outcome: 'allow', rule: text },
      })),
      answer: { [text]: text },
      problem: text,
      reward: 0,
      components: { [text]: 0.5 },
      advantage: null,
    };
    const page = renderToStaticMarkup(
      <NextIntlClientProvider locale="en" messages={english} timeZone="UTC">
        <StepCalls step={step} />
        <StepScore step={step} weights={{}} />
      </NextIntlClientProvider>,
    );
    expect(page).toContain(text.replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'));
    expect(page).not.toMatch(/<(?:img|script|svg)|<[^>]*\son\w+=|href="(?!\/api\/outputs\/)/);
  });
