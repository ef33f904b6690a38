CREATE TABLE "backends" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"settings" json NOT NULL,
	"is_default" boolean DEFAULT false NOT NULL,
	"created_at_ms" bigint NOT NULL,
	CONSTRAINT "backends_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE TABLE "datasets" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"content_hash" text NOT NULL,
	"task_count" integer NOT NULL,
	"created_at_ms" bigint NOT NULL,
	CONSTRAINT "datasets_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE TABLE "skill_versions" (
	"id" text PRIMARY KEY NOT NULL,
	"skill_id" text NOT NULL,
	"version" integer NOT NULL,
	"yaml" text NOT NULL,
	"yaml_hash" text NOT NULL,
	"created_by" text,
	"created_at_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "skills" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at_ms" bigint NOT NULL,
	CONSTRAINT "skills_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE TABLE "tasks" (
	"dataset_id" text NOT NULL,
	"position" integer NOT NULL,
	"task_id" text NOT NULL,
	"prompt" text NOT NULL,
	"answer" json,
	"metadata" json NOT NULL,
	"skill" text
);
--> statement-breakpoint
CREATE TABLE "audit_entries" (
	"id" text PRIMARY KEY NOT NULL,
	"at_ms" bigint NOT NULL,
	"agent_id" text,
	"user_id" text,
	"action_type" text NOT NULL,
	"resource" text NOT NULL,
	"operation" text NOT NULL,
	"status" text NOT NULL,
	"details" json NOT NULL,
	"ip_address" text
);
--> statement-breakpoint
CREATE TABLE "sign_ins" (
	"id" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"kind" text NOT NULL,
	"secret_hash" text NOT NULL,
	"created_at_ms" bigint NOT NULL,
	"expires_at_ms" bigint NOT NULL,
	"used_at_ms" bigint,
	CONSTRAINT "sign_ins_secret_hash_unique" UNIQUE("secret_hash")
);
--> statement-breakpoint
CREATE TABLE "users" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"role" text NOT NULL,
	"created_at_ms" bigint NOT NULL,
	CONSTRAINT "users_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE TABLE "groups" (
	"id" text PRIMARY KEY NOT NULL,
	"run_id" text NOT NULL,
	"position" integer NOT NULL,
	"task_id" text NOT NULL,
	"completed_at_ms" bigint,
	"mean_reward" double precision,
	"std_reward" double precision,
	"counted_members" integer,
	"has_signal" boolean
);
--> statement-breakpoint
CREATE TABLE "runs" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"status" text NOT NULL,
	"skill_version_id" text NOT NULL,
	"dataset_id" text NOT NULL,
	"backend_id" text NOT NULL,
	"group_size" integer NOT NULL,
	"task_count" integer NOT NULL,
	"seed" integer NOT NULL,
	"options" json NOT NULL,
	"notices" json NOT NULL,
	"started_by" text,
	"created_at_ms" bigint NOT NULL,
	"finished_at_ms" bigint,
	"next_event_seq" bigint DEFAULT 0 NOT NULL,
	"error" text
);
--> statement-breakpoint
CREATE TABLE "session_events" (
	"session_id" text NOT NULL,
	"seq" integer NOT NULL,
	"run_id" text,
	"run_seq" bigint,
	"at_ms" bigint NOT NULL,
	"type" text NOT NULL,
	"data" json NOT NULL,
	"tokens" "bytea",
	"weights" json,
	CONSTRAINT "session_events_session_id_seq_pk" PRIMARY KEY("session_id","seq")
);
--> statement-breakpoint
CREATE TABLE "token_sequences" (
	"trajectory_id" text NOT NULL,
	"sequence_index" integer NOT NULL,
	"length" integer NOT NULL,
	"generated_length" integer NOT NULL,
	"token_ids" "bytea" NOT NULL,
	"logprobs" "bytea" NOT NULL,
	"generation_mask" "bytea" NOT NULL,
	"step_index" "bytea" NOT NULL,
	"segment_kind" "bytea" NOT NULL,
	"bytes" "bytea" NOT NULL,
	"byte_ends" "bytea" NOT NULL,
	"policy_logprobs" "bytea",
	"ref_logprobs" "bytea",
	"weight_versions" json NOT NULL,
	"logprob_kind" text NOT NULL,
	"truncated" boolean NOT NULL,
	"approximate" boolean NOT NULL,
	CONSTRAINT "token_sequences_trajectory_id_sequence_index_pk" PRIMARY KEY("trajectory_id","sequence_index")
);
--> statement-breakpoint
CREATE TABLE "tool_outputs" (
	"id" text PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"content" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "trajectories" (
	"id" text PRIMARY KEY NOT NULL,
	"run_id" text NOT NULL,
	"group_id" text NOT NULL,
	"session_id" text NOT NULL,
	"member" integer NOT NULL,
	"seed" integer NOT NULL,
	"status" text NOT NULL,
	"worker_id" text,
	"lease_until_ms" bigint,
	"claims" integer DEFAULT 0 NOT NULL,
	"queue_order" bigint GENERATED ALWAYS AS IDENTITY (sequence name "trajectories_queue_order_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"step_rewards" json,
	"step_components" json,
	"state_keys" json,
	"advantages" json,
	"reward" double precision,
	"reward_components" json,
	"success" boolean,
	"end_reason" text,
	"error_message" text,
	"error_stack" text,
	"generated_tokens" integer,
	"total_tokens" integer,
	"tool_failures" json,
	"sandbox_levels" json,
	"human_edited" boolean DEFAULT false NOT NULL,
	"approximate" boolean DEFAULT false NOT NULL,
	"started_at_ms" bigint,
	"finished_at_ms" bigint,
	CONSTRAINT "trajectories_session_id_unique" UNIQUE("session_id")
);
--> statement-breakpoint
ALTER TABLE "skill_versions" ADD CONSTRAINT "skill_versions_skill_id_skills_id_fk" FOREIGN KEY ("skill_id") REFERENCES "public"."skills"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_dataset_id_datasets_id_fk" FOREIGN KEY ("dataset_id") REFERENCES "public"."datasets"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sign_ins" ADD CONSTRAINT "sign_ins_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "groups" ADD CONSTRAINT "groups_run_id_runs_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_skill_version_id_skill_versions_id_fk" FOREIGN KEY ("skill_version_id") REFERENCES "public"."skill_versions"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_dataset_id_datasets_id_fk" FOREIGN KEY ("dataset_id") REFERENCES "public"."datasets"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_backend_id_backends_id_fk" FOREIGN KEY ("backend_id") REFERENCES "public"."backends"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_started_by_users_id_fk" FOREIGN KEY ("started_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "token_sequences" ADD CONSTRAINT "token_sequences_trajectory_id_trajectories_id_fk" FOREIGN KEY ("trajectory_id") REFERENCES "public"."trajectories"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "trajectories" ADD CONSTRAINT "trajectories_run_id_runs_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "trajectories" ADD CONSTRAINT "trajectories_group_id_groups_id_fk" FOREIGN KEY ("group_id") REFERENCES "public"."groups"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "backends_by_name" ON "backends" USING btree ("name");--> statement-breakpoint
CREATE UNIQUE INDEX "skill_versions_unique" ON "skill_versions" USING btree ("skill_id","version");--> statement-breakpoint
CREATE UNIQUE INDEX "tasks_by_position" ON "tasks" USING btree ("dataset_id","position");--> statement-breakpoint
CREATE UNIQUE INDEX "tasks_by_task_id" ON "tasks" USING btree ("dataset_id","task_id");--> statement-breakpoint
CREATE INDEX "audit_by_time" ON "audit_entries" USING btree ("at_ms","id");--> statement-breakpoint
CREATE INDEX "audit_by_agent" ON "audit_entries" USING btree ("agent_id","at_ms");--> statement-breakpoint
CREATE UNIQUE INDEX "groups_by_position" ON "groups" USING btree ("run_id","position");--> statement-breakpoint
CREATE INDEX "runs_by_time" ON "runs" USING btree ("created_at_ms","id");--> statement-breakpoint
CREATE UNIQUE INDEX "session_events_by_run" ON "session_events" USING btree ("run_id","run_seq");--> statement-breakpoint
CREATE UNIQUE INDEX "trajectories_by_member" ON "trajectories" USING btree ("group_id","member");--> statement-breakpoint
CREATE INDEX "trajectories_by_run" ON "trajectories" USING btree ("run_id","group_id");--> statement-breakpoint
CREATE INDEX "trajectories_queue" ON "trajectories" USING btree ("queue_order") WHERE status in ('queued', 'running');