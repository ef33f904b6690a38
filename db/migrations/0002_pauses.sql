ALTER TABLE "backends" ADD COLUMN "paused" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "weight_updates" ADD COLUMN "unsettled" boolean DEFAULT false NOT NULL;