/** What a run is made from: skills and their versions, datasets and their tasks, backends. */
import { bigint, boolean, index, integer, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { BackendKind } from '../../server/core/inference';
import type { Json, JsonObject } from '../../server/core/vocabulary';
import { json } from './column-types';

export const skills = pgTable('skills', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  createdAtMs: bigint('created_at_ms', { mode: 'number' }).notNull(),
});

/** Immutable: a save makes a new row. */
export const skillVersions = pgTable(
  'skill_versions',
  {
    id: text('id').primaryKey(),
    skillId: text('skill_id')
      .notNull()
      .references(() => skills.id),
    version: integer('version').notNull(),
    yaml: text('yaml').notNull(),
    yamlHash: text('yaml_hash').notNull(),
    createdBy: text('created_by'),
    createdAtMs: bigint('created_at_ms', { mode: 'number' }).notNull(),
  },
  (t) => [uniqueIndex('skill_versions_unique').on(t.skillId, t.version)],
);

export const datasets = pgTable('datasets', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  contentHash: text('content_hash').notNull(),
  taskCount: integer('task_count').notNull(),
  createdAtMs: bigint('created_at_ms', { mode: 'number' }).notNull(),
});

export const tasks = pgTable(
  'tasks',
  {
    datasetId: text('dataset_id')
      .notNull()
      .references(() => datasets.id),
    position: integer('position').notNull(),
    taskId: text('task_id').notNull(),
    prompt: text('prompt').notNull(),
    answer: json<Json>()('answer'),
    metadata: json<JsonObject>()('metadata').notNull(),
    skill: text('skill'),
  },
  (t) => [
    uniqueIndex('tasks_by_position').on(t.datasetId, t.position),
    uniqueIndex('tasks_by_task_id').on(t.datasetId, t.taskId),
  ],
);

/** `settings` holds no secret: keys of servers are in backend_keys, sealed. */
export const backends = pgTable(
  'backends',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull().unique(),
    kind: text('kind').$type<BackendKind>().notNull(),
    settings: json<JsonObject>()('settings').notNull(),
    isDefault: boolean('is_default').notNull().default(false),
    /** By an operator, until one resumes it: whoever opens it keeps requests back, and its servers stand paused. */
    paused: boolean('paused').notNull().default(false),
    /** Grows with each change after which it must be opened anew: kind, settings or keys, but not a check. */
    revision: integer('revision').notNull().default(0),
    createdAtMs: bigint('created_at_ms', { mode: 'number' }).notNull(),
  },
  (t) => [index('backends_by_name').on(t.name)],
);
