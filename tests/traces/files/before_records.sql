BEGIN TRANSACTION;
CREATE TABLE kantan_agents_changed(trace_id TEXT PRIMARY KEY, unstorable INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
INSERT INTO "kantan_agents_changed" VALUES('trace_01a20923ad5e7c2a9ab489b4b27a2649',0);
CREATE TABLE kantan_agents_run_figures(trace_id TEXT, place INTEGER, prompt TEXT, version TEXT, is_judge INTEGER NOT NULL, started_at TEXT, failed INTEGER NOT NULL, microseconds INTEGER, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, total_tokens INTEGER NOT NULL, PRIMARY KEY(trace_id, place)) WITHOUT ROWID;
CREATE TABLE kantan_agents_trace_figures(trace_id TEXT PRIMARY KEY, newest TEXT, spans INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE kantan_agents_verdicts(trace_id TEXT, place INTEGER, score REAL NOT NULL, judged TEXT, prompt TEXT, version TEXT, PRIMARY KEY(trace_id, place)) WITHOUT ROWID;
CREATE TABLE spans (
                  id TEXT PRIMARY KEY,
                  trace_id TEXT,
                  parent_id TEXT,
                  started_at TEXT,
                  ended_at TEXT,
                  span_type TEXT,
                  name TEXT,
                  ingest_seq INTEGER,
                  input TEXT,
                  output TEXT,
                  output_kind TEXT,
                  tool_calls_json TEXT,
                  structured_json TEXT,
                  rubric_json TEXT,
                  error_json TEXT,
                  raw_json TEXT
                , usage_json TEXT);
INSERT INTO "spans" VALUES('span_2368f48c715e4d71938866d6','trace_01a20923ad5e7c2a9ab489b4b27a2649','span_c7c92301c08a42a09d52d1ad','2026-11-23T16:01:02.816931+00:00','2026-11-23T16:01:02.867987+00:00','response',NULL,1,'[
  {
    "content": "Where is 7?",
    "role": "user"
  }
]','[
  {
    "arguments": "{\"order_id\": \"7\"}",
    "call_id": "call_645786904f9f",
    "name": "look",
    "type": "function_call",
    "id": "fc_call_645786904f9f",
    "status": "completed"
  }
]','tool_calls','[{"arguments": "{\"order_id\": \"7\"}", "call_id": "call_645786904f9f", "name": "look", "type": "function_call", "id": "fc_call_645786904f9f", "status": "completed"}]',NULL,NULL,'null','{"object": "trace.span", "id": "span_2368f48c715e4d71938866d6", "trace_id": "trace_01a20923ad5e7c2a9ab489b4b27a2649", "parent_id": "span_c7c92301c08a42a09d52d1ad", "started_at": "2026-11-23T16:01:02.816931+00:00", "ended_at": "2026-11-23T16:01:02.867987+00:00", "span_data": {"type": "response", "response_id": "resp_1e7cb33714b8", "usage": {"requests": 1, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}, "input": [{"content": "Where is 7?", "role": "user"}], "output": [{"arguments": "{\"order_id\": \"7\"}", "call_id": "call_645786904f9f", "name": "look", "type": "function_call", "id": "fc_call_645786904f9f", "status": "completed"}], "model": "offline-model"}, "error": null}','{"requests": 1, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}');
INSERT INTO "spans" VALUES('span_dc5496502d3942ad9de36014','trace_01a20923ad5e7c2a9ab489b4b27a2649','span_c7c92301c08a42a09d52d1ad','2026-11-23T16:01:02.869451+00:00','2026-11-23T16:01:02.870222+00:00','function','look',2,'{"order_id": "7"}','in the yard','text',NULL,NULL,NULL,'null','{"object": "trace.span", "id": "span_dc5496502d3942ad9de36014", "trace_id": "trace_01a20923ad5e7c2a9ab489b4b27a2649", "parent_id": "span_c7c92301c08a42a09d52d1ad", "started_at": "2026-11-23T16:01:02.869451+00:00", "ended_at": "2026-11-23T16:01:02.870222+00:00", "span_data": {"type": "function", "name": "look", "input": "{\"order_id\": \"7\"}", "output": "in the yard", "mcp_data": null}, "error": null}',NULL);
INSERT INTO "spans" VALUES('span_c7c92301c08a42a09d52d1ad','trace_01a20923ad5e7c2a9ab489b4b27a2649','span_6cb19d2c00df46d0bfd0d6fb','2026-11-23T16:01:02.816507+00:00','2026-11-23T16:01:02.870415+00:00','custom','turn',3,NULL,NULL,NULL,NULL,NULL,NULL,'null','{"object": "trace.span", "id": "span_c7c92301c08a42a09d52d1ad", "trace_id": "trace_01a20923ad5e7c2a9ab489b4b27a2649", "parent_id": "span_6cb19d2c00df46d0bfd0d6fb", "started_at": "2026-11-23T16:01:02.816507+00:00", "ended_at": "2026-11-23T16:01:02.870415+00:00", "span_data": {"type": "custom", "name": "turn", "data": {"sdk_span_type": "turn", "turn": 1, "agent_name": "support", "usage": {"input_tokens": 10, "output_tokens": 5, "cached_input_tokens": 0, "cache_write_input_tokens": 0}}}, "error": null}',NULL);
INSERT INTO "spans" VALUES('span_641bacdc288c41a59bf89fef','trace_01a20923ad5e7c2a9ab489b4b27a2649','span_afc29702c0a943b68976d201','2026-11-23T16:01:02.870965+00:00','2026-11-23T16:01:02.874752+00:00','response',NULL,4,'[
  {
    "content": "Where is 7?",
    "role": "user"
  },
  {
    "arguments": "{\"order_id\": \"7\"}",
    "call_id": "call_645786904f9f",
    "name": "look",
    "type": "function_call",
    "id": "fc_call_645786904f9f",
    "status": "completed"
  },
  {
    "call_id": "call_645786904f9f",
    "output": "in the yard",
    "type": "function_call_output"
  }
]','In the yard.','text',NULL,NULL,NULL,'null','{"object": "trace.span", "id": "span_641bacdc288c41a59bf89fef", "trace_id": "trace_01a20923ad5e7c2a9ab489b4b27a2649", "parent_id": "span_afc29702c0a943b68976d201", "started_at": "2026-11-23T16:01:02.870965+00:00", "ended_at": "2026-11-23T16:01:02.874752+00:00", "span_data": {"type": "response", "response_id": "resp_34ed58ccf85d", "usage": {"requests": 1, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}, "input": [{"content": "Where is 7?", "role": "user"}, {"arguments": "{\"order_id\": \"7\"}", "call_id": "call_645786904f9f", "name": "look", "type": "function_call", "id": "fc_call_645786904f9f", "status": "completed"}, {"call_id": "call_645786904f9f", "output": "in the yard", "type": "function_call_output"}], "output": "In the yard.", "model": "offline-model"}, "error": null}','{"requests": 1, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}');
INSERT INTO "spans" VALUES('span_afc29702c0a943b68976d201','trace_01a20923ad5e7c2a9ab489b4b27a2649','span_6cb19d2c00df46d0bfd0d6fb','2026-11-23T16:01:02.870586+00:00','2026-11-23T16:01:02.875970+00:00','custom','turn',5,NULL,NULL,NULL,NULL,NULL,NULL,'null','{"object": "trace.span", "id": "span_afc29702c0a943b68976d201", "trace_id": "trace_01a20923ad5e7c2a9ab489b4b27a2649", "parent_id": "span_6cb19d2c00df46d0bfd0d6fb", "started_at": "2026-11-23T16:01:02.870586+00:00", "ended_at": "2026-11-23T16:01:02.875970+00:00", "span_data": {"type": "custom", "name": "turn", "data": {"sdk_span_type": "turn", "turn": 2, "agent_name": "support", "usage": {"input_tokens": 10, "output_tokens": 5, "cached_input_tokens": 0, "cache_write_input_tokens": 0}}}, "error": null}',NULL);
INSERT INTO "spans" VALUES('span_6cb19d2c00df46d0bfd0d6fb','trace_01a20923ad5e7c2a9ab489b4b27a2649','span_d02bda759eaf4eea842802ac','2026-11-23T16:01:02.816473+00:00','2026-11-23T16:01:02.876170+00:00','agent','support',6,NULL,NULL,NULL,NULL,NULL,NULL,'null','{"object": "trace.span", "id": "span_6cb19d2c00df46d0bfd0d6fb", "trace_id": "trace_01a20923ad5e7c2a9ab489b4b27a2649", "parent_id": "span_d02bda759eaf4eea842802ac", "started_at": "2026-11-23T16:01:02.816473+00:00", "ended_at": "2026-11-23T16:01:02.876170+00:00", "span_data": {"type": "agent", "name": "support", "handoffs": [], "tools": ["look"], "output_type": "str"}, "error": null}',NULL);
INSERT INTO "spans" VALUES('span_d02bda759eaf4eea842802ac','trace_01a20923ad5e7c2a9ab489b4b27a2649',NULL,'2026-11-23T16:01:02.815831+00:00','2026-11-23T16:01:02.876208+00:00','custom','task',7,NULL,NULL,NULL,NULL,NULL,NULL,'null','{"object": "trace.span", "id": "span_d02bda759eaf4eea842802ac", "trace_id": "trace_01a20923ad5e7c2a9ab489b4b27a2649", "parent_id": null, "started_at": "2026-11-23T16:01:02.815831+00:00", "ended_at": "2026-11-23T16:01:02.876208+00:00", "span_data": {"type": "custom", "name": "task", "data": {"sdk_span_type": "task", "name": "Agent workflow", "usage": {"input_tokens": 20, "output_tokens": 10, "cached_input_tokens": 0, "cache_write_input_tokens": 0, "requests": 2, "total_tokens": 30}}}, "error": null}',NULL);
INSERT INTO "spans" VALUES('span_755a2f85b70942a19c97c192','trace_01a20923ad5e7c2a9ab489b4b27a2649',NULL,'2026-11-23T16:01:02.876338+00:00','2026-11-23T16:01:02.876343+00:00','generation',NULL,8,'Where is 7?','In the yard.','text',NULL,NULL,NULL,'null','{"object": "trace.span", "id": "span_755a2f85b70942a19c97c192", "trace_id": "trace_01a20923ad5e7c2a9ab489b4b27a2649", "parent_id": null, "started_at": "2026-11-23T16:01:02.876338+00:00", "ended_at": "2026-11-23T16:01:02.876343+00:00", "span_data": {"type": "generation", "input": "Where is 7?", "output": "In the yard.", "model": null, "model_config": null, "usage": null}, "error": null}',NULL);
CREATE TABLE traces (
                  id TEXT PRIMARY KEY,
                  workflow_name TEXT,
                  group_id TEXT,
                  metadata_json TEXT
                );
INSERT INTO "traces" VALUES('trace_01a20923ad5e7c2a9ab489b4b27a2649','Agent workflow',NULL,'{"agent_name": "support", "prompt_name": "support", "prompt_version": "v1", "prompt_id": "32675d22b2d5abd5b7da51816bfb90018d47510b4ff2a1210558c7c36a71d714", "tool_origins": "own: look", "agent_run_id": "01a20923ad5e7c2a9ab489b4b27a2649", "usage_total": {"requests": 2, "input_tokens": 20, "output_tokens": 10, "total_tokens": 30}}');
CREATE INDEX kantan_agents_spans_of_trace ON spans(trace_id, ingest_seq);
CREATE INDEX kantan_agents_spans_by_name ON spans(name, span_type, trace_id);
CREATE INDEX kantan_agents_spans_with_error ON spans(trace_id) WHERE error_json IS NOT NULL AND error_json != 'null';
CREATE TRIGGER kantan_agents_span_added BEFORE INSERT ON spans WHEN NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = NEW.trace_id) BEGIN INSERT INTO kantan_agents_changed(trace_id) SELECT NEW.trace_id WHERE 1 AND NEW.trace_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = NEW.trace_id); END;
CREATE TRIGGER kantan_agents_span_replaced BEFORE INSERT ON spans WHEN EXISTS (SELECT 1 FROM spans s WHERE s.id = NEW.id) BEGIN INSERT INTO kantan_agents_changed(trace_id) SELECT s.trace_id FROM spans s WHERE s.id = NEW.id AND s.trace_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = s.trace_id); END;
CREATE TRIGGER kantan_agents_span_updated AFTER UPDATE ON spans WHEN NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = OLD.trace_id) OR NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = NEW.trace_id) BEGIN INSERT INTO kantan_agents_changed(trace_id) SELECT OLD.trace_id WHERE 1 AND OLD.trace_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = OLD.trace_id); INSERT INTO kantan_agents_changed(trace_id) SELECT NEW.trace_id WHERE 1 AND NEW.trace_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = NEW.trace_id); END;
CREATE TRIGGER kantan_agents_span_deleted AFTER DELETE ON spans WHEN NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = OLD.trace_id) BEGIN INSERT INTO kantan_agents_changed(trace_id) SELECT OLD.trace_id WHERE 1 AND OLD.trace_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = OLD.trace_id); END;
CREATE TRIGGER kantan_agents_trace_added BEFORE INSERT ON traces WHEN NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = NEW.id) BEGIN INSERT INTO kantan_agents_changed(trace_id) SELECT NEW.id WHERE 1 AND NEW.id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = NEW.id); END;
CREATE TRIGGER kantan_agents_trace_updated AFTER UPDATE ON traces WHEN NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = OLD.id) OR NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = NEW.id) BEGIN INSERT INTO kantan_agents_changed(trace_id) SELECT OLD.id WHERE 1 AND OLD.id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = OLD.id); INSERT INTO kantan_agents_changed(trace_id) SELECT NEW.id WHERE 1 AND NEW.id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = NEW.id); END;
CREATE TRIGGER kantan_agents_trace_deleted AFTER DELETE ON traces WHEN NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = OLD.id) BEGIN INSERT INTO kantan_agents_changed(trace_id) SELECT OLD.id WHERE 1 AND OLD.id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kantan_agents_changed c WHERE c.trace_id = OLD.id); END;
COMMIT;
PRAGMA user_version = 0;
