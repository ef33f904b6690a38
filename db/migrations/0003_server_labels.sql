CREATE TABLE "server_labels" (
	"backend_id" text NOT NULL,
	"url" text NOT NULL,
	"fingerprint" text NOT NULL,
	"version" text NOT NULL,
	CONSTRAINT "server_labels_backend_id_url_pk" PRIMARY KEY("backend_id","url")
);
--> statement-breakpoint
ALTER TABLE "server_labels" ADD CONSTRAINT "server_labels_backend_id_backends_id_fk" FOREIGN KEY ("backend_id") REFERENCES "public"."backends"("id") ON DELETE no action ON UPDATE no action;