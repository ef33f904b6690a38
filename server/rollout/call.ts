/**
 * The one way of a tool call: permission → audit → execute → audit → log. Nothing else in the product executes a tool.
 *
 * Written before the effect: the permission decision, the start and their audit entries are durable before the tool
 * runs. A call that the log shows as started and not finished (a crash lies between) is run again only when its tool is
 * idempotent; otherwise the model is told it was interrupted.
 */
import type { AuditRecord } from '../core/audit';
import type { NewEvent, ToolCall, ToolResult } from '../core/events';
import { decidePermission } from '../core/permissions/decide';
import type { Skill, Task } from '../core/skills/skill';
import type { Json, JsonObject, ToolStatus } from '../core/vocabulary';
import type { SandboxPool } from '../sandbox/sandbox';
import type { ToolRegistry } from '../tools/registry';
import type { BaseTool, ToolOutcome } from '../tools/tool';
import type { EnvAction } from './agent-env';

export interface CallSite {
  trajectoryId: string;
  skill: Skill;
  task: Task;
  tools: ToolRegistry;
  sandboxes: SandboxPool;
  /** Milliseconds a call may take, its wait for a sandbox included. */
  callLimitMs: number;
  now: () => number;
  /** Counts the call for metrics; called once, when it has ended. */
  observe: (call: { tool: string; status: ToolStatus; durationMs: number }) => void;
}

const SENTENCE_CHARS = 1_000;
const VALUE_CHARS = 64 * 1024;

/** Never rejects for what the call did; rejects when the log could not be written or the trajectory was stopped. */
export async function performCall(site: CallSite, call: ToolCall, action: EnvAction): Promise<ToolResult> {
  const done = action.resumed.results.get(call.index);
  if (done) return done;
  const started = site.now();
  const tool = site.tools.get(call.tool);
  const refusal = refuse(site, call, tool);
  if (refusal !== null || !tool || call.arguments === null)
    return complete(site, call, action, started, failed('error', refusal ?? 'unreadable'), [], []);

  const args = call.arguments;
  if (action.resumed.started.has(call.index) && !tool.idempotent) {
    const told = `The call was interrupted: the studio stopped while ${call.tool} ran, and it is not known how far it came.`;
    return complete(site, call, action, started, failed('interrupted', told), [], []);
  }
  const touched = guarded(() => tool.resources(args));
  // What a call touches is not known, so nothing can permit it.
  if (touched instanceof Error)
    return complete(site, call, action, started, failed('error', faultOf(tool, touched)), [], []);
  const decision = decidePermission({
    permissions: site.skill.permissions,
    tool: call.tool,
    resources: touched,
    nowMs: started,
  });
  const decided: NewEvent = {
    type: 'permission.decided',
    data: {
      stepNumber: action.stepNumber,
      callIndex: call.index,
      tool: call.tool,
      level: decision.level,
      outcome: decision.outcome,
      rule: decision.rule,
      reason: decision.reason,
    },
  };
  const check = audit(site, call, 'permission_check', decision.outcome === 'allow' ? 'allowed' : 'denied', {
    level: decision.level,
    rule: decision.rule,
    outcome: decision.outcome,
  });
  if (decision.outcome !== 'allow') {
    const why =
      decision.outcome === 'ask'
        ? `${call.tool} needs a person's approval (${decision.level}), and this version has no approvals inbox yet. The call was not run.`
        : `${call.tool} is not permitted: ${decision.reason}`;
    return complete(site, call, action, started, failed('permission_denied', why), [decided], [check]);
  }
  await action.journal.append(
    [
      decided,
      {
        type: 'tool.started',
        data: {
          stepNumber: action.stepNumber,
          callIndex: call.index,
          tool: call.tool,
          arguments: args,
          idempotent: tool.idempotent,
        },
      },
    ],
    [check, audit(site, call, 'tool_execution_start', 'started', { arguments: args })],
  );
  const outcome = await execute(site, tool, args, action.signal);
  // A trajectory that was stopped while the tool ran has no result: the log shows a call that started.
  if (action.signal.aborted) throw action.signal.reason;
  return complete(site, call, action, started, outcome, [], []);
}

/** Why the call cannot even be asked for, as a sentence for the model; null when it can. */
function refuse(site: CallSite, call: ToolCall, tool: BaseTool | null): string | null {
  if (call.error !== null || call.arguments === null) return call.error ?? 'The action could not be read.';
  if (!tool || !site.skill.availableTools.includes(call.tool))
    return `There is no tool ${JSON.stringify(call.tool)}. Available: ${site.skill.availableTools.join(', ')}.`;
  const { arguments: args } = call;
  const problem = guarded(() => tool.validate(args));
  return problem instanceof Error ? faultOf(tool, problem) : problem;
}

/** A tool that throws where it must not is a fault of that tool: the call fails, not the trajectory. */
function guarded<T>(ask: () => T): T | Error {
  try {
    return ask();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

const faultOf = (tool: BaseTool, error: Error): string => `${tool.name} met a fault of its own: ${error.message}`;

/** Runs the tool within its limit; a tool that does not come back is left behind, its sandbox killed through the signal. */
async function execute(site: CallSite, tool: BaseTool, args: JsonObject, outer: AbortSignal): Promise<ToolOutcome> {
  const limit = new AbortController();
  const onAbort = (): void => limit.abort(outer.reason);
  if (outer.aborted) onAbort();
  else outer.addEventListener('abort', onAbort, { once: true });
  let timer: NodeJS.Timeout | undefined;
  const ended = new Promise<ToolOutcome>((resolve) => {
    timer = setTimeout(() => {
      // Resolved before the abort, whose listener below would call it cancelled.
      resolve(failed('timeout', `${tool.name} did not finish within ${site.callLimitMs / 1000} s and was stopped.`));
      limit.abort(new Error('The call passed its limit.'));
    }, site.callLimitMs);
    limit.signal.addEventListener('abort', () => resolve(failed('cancelled', `${tool.name} was stopped.`)), {
      once: true,
    });
  });
  try {
    const run = tool.execute(args, {
      sandboxes: site.sandboxes,
      sandbox: site.skill.sandbox,
      taskMetadata: site.task.metadata,
      signal: limit.signal,
      timeoutMs: site.callLimitMs,
    });
    // The race may be over when a late tool fails; its rejection is then nobody's.
    run.catch(() => undefined);
    return await Promise.race([run, ended]);
  } catch (error) {
    return failed('error', error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(timer);
    outer.removeEventListener('abort', onAbort);
  }
}

async function complete(
  site: CallSite,
  call: ToolCall,
  action: EnvAction,
  started: number,
  outcome: ToolOutcome,
  events: NewEvent[],
  audits: AuditRecord[],
): Promise<ToolResult> {
  const tool = site.tools.get(call.tool);
  const formatted =
    outcome.error !== null && outcome.output === ''
      ? `error: ${outcome.error}`
      : guarded(() => tool?.formatOutput(outcome) ?? outcome.output);
  const shown = formatted instanceof Error ? outcome.output : formatted;
  const { text, truncated } = await action.truncate(shown);
  const error = outcome.error === null ? null : shortened(outcome.error);
  const result: ToolResult = {
    callIndex: call.index,
    tool: call.tool,
    status: outcome.status,
    observation: text,
    value: bounded(outcome.value),
    error,
    durationMs: site.now() - started,
    sandboxLevel: outcome.sandboxLevel,
    truncated,
  };
  const type = outcome.status === 'success' ? 'tool_execution_complete' : 'tool_execution_error';
  await action.journal.append(
    [...events, { type: 'tool.completed', data: { stepNumber: action.stepNumber, result } }],
    [
      ...audits,
      audit(site, call, type, outcome.status === 'success' ? 'success' : 'error', {
        status: outcome.status,
        error,
        duration_ms: result.durationMs,
      }),
    ],
  );
  // A name that no tool has is the model's invention: it must not become a label of its own.
  site.observe({ tool: tool ? call.tool : 'unknown', status: outcome.status, durationMs: result.durationMs });
  return result;
}

/** What a tool says beside its output is kept in events and audit entries, which are read by the page: it must stay small. */
function shortened(sentence: string): string {
  if (sentence.length <= SENTENCE_CHARS) return sentence;
  return `${sentence.slice(0, SENTENCE_CHARS)}… (${sentence.length - SENTENCE_CHARS} of ${sentence.length} characters cut here)`;
}

function bounded(value: Json): Json {
  const { length } = JSON.stringify(value);
  return length <= VALUE_CHARS ? value : { omitted: `a value of ${length} characters` };
}

function audit(
  site: CallSite,
  call: ToolCall,
  actionType: string,
  status: AuditRecord['status'],
  details: JsonObject,
): AuditRecord {
  return {
    agentId: site.trajectoryId,
    userId: null,
    actionType,
    resource: `tool://${call.tool}`,
    operation: 'execute',
    status,
    details: { call: call.index, ...details },
    ipAddress: null,
  };
}

function failed(status: ToolStatus, error: string): ToolOutcome {
  return { status, output: '', value: null, error, sandboxLevel: null };
}
