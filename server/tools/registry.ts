/** The tools by name. */
import { ProbeTool } from './probe';
import { PythonTool } from './python';
import type { BaseTool, ToolSchema } from './tool';

export interface ToolRegistry {
  /** Null for a name that no tool has: the caller knows what that means for it. */
  get(name: string): BaseTool | null;
  /** In alphabetical order. */
  names(): string[];
  /** Of the named tools, or of all; names that no tool has are left out. */
  schemas(names?: readonly string[]): ToolSchema[];
}

export function createToolRegistry(tools: readonly BaseTool[] = [new ProbeTool(), new PythonTool()]): ToolRegistry {
  const byName = new Map<string, BaseTool>();
  for (const tool of tools) {
    if (byName.has(tool.name)) throw new Error(`Two tools are called ${tool.name}.`);
    byName.set(tool.name, tool);
  }
  const names = () => [...byName.keys()].sort();
  return {
    get: (name) => byName.get(name) ?? null,
    names,
    schemas: (wanted = names()) => wanted.flatMap((name) => byName.get(name)?.getSchema() ?? []),
  };
}
