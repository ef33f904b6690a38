'use client';
import { useTranslations } from 'next-intl';
import { oneOf } from '@/components/ui/url-state';
import { TOOL_STATUSES, TRAJECTORY_STATUSES } from '@/server/core/vocabulary';

const END_REASONS = ['answer', 'round limit', 'context full'] as const;
const END_REASON_KEYS = { answer: 'answer', 'round limit': 'roundLimit', 'context full': 'contextFull' } as const;

/**
 * The closed words among the reasons of the log (`round limit`, `tool: timeout`, `failed`) in the person's language;
 * anything else is a sentence of its own and stays as it is.
 */
export function useReasonWords(): (reason: string) => string {
  const t = useTranslations('reasons');
  const status = useTranslations('status');
  return (reason) => {
    const end = oneOf(reason, END_REASONS);
    if (end) return t(END_REASON_KEYS[end]);
    const ended = oneOf(reason, TRAJECTORY_STATUSES);
    if (ended) return status(ended);
    const tool = reason.startsWith('tool: ') ? oneOf(reason.slice('tool: '.length), TOOL_STATUSES) : undefined;
    return tool ? t(`tool.${tool}`) : reason;
  };
}
