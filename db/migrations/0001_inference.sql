CREATE TABLE "backend_keys" (
	"backend_id" text NOT NULL,
	"url" text,
	"ciphertext" "bytea" NOT NULL,
	"created_at_ms" bigint NOT NULL,
	CONSTRAINT "backend_keys_unique" UNIQUE NULLS NOT DISTINCT("backend_id","url")
);
--> statement-breakpoint
CREATE TABLE "weight_updates" (
	"id" text PRIMARY KEY NOT NULL,
	"backend_id" text NOT NULL,
	"version" text NOT NULL,
	"number" integer NOT NULL,
	"source" json NOT NULL,
	"in_flight" text NOT NULL,
	"status" text NOT NULL,
	"error" text,
	"requested_by" text,
	"started_at_ms" bigint NOT NULL,
	"finished_at_ms" bigint,
	"lease_until_ms" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "backends" ADD COLUMN "revision" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "token_sequences" ADD COLUMN "policy_scored_by" json;--> statement-breakpoint
ALTER TABLE "token_sequences" ADD COLUMN "ref_scored_by" json;--> statement-breakpoint
ALTER TABLE "token_sequences" ADD COLUMN "entropy" "bytea";--> statement-breakpoint
ALTER TABLE "token_sequences" ADD COLUMN "alternatives_k" integer;--> statement-breakpoint
ALTER TABLE "token_sequences" ADD COLUMN "alternative_ids" "bytea";--> statement-breakpoint
ALTER TABLE "token_sequences" ADD COLUMN "alternative_logprobs" "bytea";--> statement-breakpoint
ALTER TABLE "trajectories" ADD COLUMN "redone" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "backend_keys" ADD CONSTRAINT "backend_keys_backend_id_backends_id_fk" FOREIGN KEY ("backend_id") REFERENCES "public"."backends"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "weight_updates" ADD CONSTRAINT "weight_updates_backend_id_backends_id_fk" FOREIGN KEY ("backend_id") REFERENCES "public"."backends"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "weight_updates" ADD CONSTRAINT "weight_updates_requested_by_users_id_fk" FOREIGN KEY ("requested_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "weight_updates_by_number" ON "weight_updates" USING btree ("backend_id","number");--> statement-breakpoint
CREATE UNIQUE INDEX "weight_updates_running" ON "weight_updates" USING btree ("backend_id") WHERE status = 'running';