"""The tables of the lab's server: append-only by trigger, chained, with three roles and two views, as one SQL script.

May not: hold data, or anything that a role below the owner could change.
"""

from __future__ import annotations

from labctl.store.server.connecting import APPEND_ONLY, ARM_DEPENDENT, FORM, NOT_NEXT, Server

OWNER, WRITER, READER = "labctl_owner", "labctl_writer", "labctl_reader"
TABLES = ("campaign", "event", "command", "witnessed", "stream", "chunk")

_ROLES = """
DO $$ DECLARE role text; BEGIN
  FOREACH role IN ARRAY ARRAY['labctl_owner', 'labctl_writer', 'labctl_reader'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', role);
    END IF;
  END LOOP;
END $$;
GRANT labctl_owner TO CURRENT_USER;
CREATE SCHEMA IF NOT EXISTS labctl AUTHORIZATION labctl_owner;
SET LOCAL ROLE labctl_owner;
"""

# Columns are those of journal.db and traces.db. `campaign` is NAME@ and 16 digits of its first entry's hash: two labs
# may have a campaign of one name. `writer` and the times are the server's own, which no role may give.
_TABLES = """
CREATE TABLE IF NOT EXISTS labctl.campaign (
  campaign text PRIMARY KEY,
  name text NOT NULL,
  first text NOT NULL,
  writer text NOT NULL DEFAULT session_user,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK (campaign = name || '@' || left(first, 16) AND first ~ '^[0-9a-f]{64}$'));
CREATE TABLE IF NOT EXISTS labctl.event (
  campaign text NOT NULL REFERENCES labctl.campaign, seq bigint NOT NULL, kind text NOT NULL, at_ns bigint NOT NULL,
  boot text NOT NULL, wall text NOT NULL, who text NOT NULL, trial text, episode text, body text NOT NULL,
  prev text NOT NULL, hash text NOT NULL,
  PRIMARY KEY (campaign, seq));
CREATE INDEX IF NOT EXISTS event_unblinded ON labctl.event (campaign) WHERE kind = 'CampaignUnblinded';
CREATE INDEX IF NOT EXISTS event_episode ON labctl.event (campaign, episode) WHERE episode IS NOT NULL;
CREATE TABLE IF NOT EXISTS labctl.command (
  campaign text NOT NULL, command_id text NOT NULL, seq bigint NOT NULL,
  PRIMARY KEY (campaign, command_id), FOREIGN KEY (campaign, seq) REFERENCES labctl.event);
CREATE TABLE IF NOT EXISTS labctl.witnessed (
  campaign text NOT NULL, seq bigint NOT NULL, hash text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (campaign, seq), FOREIGN KEY (campaign, seq) REFERENCES labctl.event);
CREATE TABLE IF NOT EXISTS labctl.stream (
  campaign text NOT NULL REFERENCES labctl.campaign, episode text NOT NULL, name text NOT NULL, spec text NOT NULL,
  PRIMARY KEY (campaign, episode, name));
CREATE TABLE IF NOT EXISTS labctl.chunk (
  campaign text NOT NULL, episode text NOT NULL, stream text NOT NULL, seq bigint NOT NULL, t0_ns bigint NOT NULL,
  t1_ns bigint NOT NULL, n bigint NOT NULL, sha256 text NOT NULL, payload bytea NOT NULL,
  PRIMARY KEY (campaign, episode, stream, seq),
  FOREIGN KEY (campaign, episode, stream) REFERENCES labctl.stream,
  CHECK (sha256 = encode(sha256(payload), 'hex')));
ALTER TABLE labctl.chunk ALTER payload SET STORAGE EXTERNAL;
"""

# A role is asked for by its row: pg_has_role of a name that was dropped or renamed is an error, and whoever asks about
# samples asks about the writers of all campaigns. A campaign whose writer is gone is nobody's until the role is back.
_MINE = """labctl.campaign c JOIN pg_catalog.pg_roles r ON r.rolname = c.writer
    WHERE pg_has_role(session_user, r.oid, 'MEMBER')"""

# The lock is taken before the head is read: of two hosts that hold one campaign the second sees what the first wrote.
_GUARDS = f"""
CREATE OR REPLACE FUNCTION labctl.next_entry() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE last record;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(NEW.campaign, 0));
  SELECT seq, hash INTO last FROM labctl.event WHERE campaign = NEW.campaign ORDER BY seq DESC LIMIT 1;
  IF NEW.seq <> 1 + coalesce(last.seq, 0) OR NEW.prev <> coalesce(last.hash, repeat('0', 64))
     OR (NEW.seq = 1 AND NEW.hash <> (SELECT first FROM labctl.campaign WHERE campaign = NEW.campaign)) THEN
    RAISE EXCEPTION 'entry % of % is not the next of the chain', NEW.seq, NEW.campaign USING ERRCODE = '{NOT_NEXT}';
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE FUNCTION labctl.open_stream() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF coalesce((NEW.spec::json ->> 'arm_dependent')::boolean, false) AND NOT EXISTS (
    SELECT FROM labctl.event WHERE campaign = NEW.campaign AND kind = 'CampaignUnblinded') THEN
    RAISE EXCEPTION 'stream % of % tells arms apart, and the campaign is not unblinded', NEW.name, NEW.campaign
      USING ERRCODE = '{ARM_DEPENDENT}';
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE FUNCTION labctl.refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN RAISE EXCEPTION '% of % refused', TG_OP, TG_TABLE_NAME USING ERRCODE = '{APPEND_ONLY}'; END $$;
CREATE OR REPLACE FUNCTION labctl.mine(named text) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog AS $$
  SELECT EXISTS (SELECT FROM {_MINE} AND c.campaign = named) $$;
CREATE OR REPLACE TRIGGER next_entry BEFORE INSERT ON labctl.event FOR EACH ROW EXECUTE FUNCTION labctl.next_entry();
CREATE OR REPLACE TRIGGER open_stream BEFORE INSERT ON labctl.stream
  FOR EACH ROW EXECUTE FUNCTION labctl.open_stream();
"""

# Samples are for the cell that recorded them until the campaign is unblinded: motion tells arms apart too, at a closer
# look, and whoever may look at the server need not be one who may open the campaign's folder.
_OWN_OR_OPEN = f"""
  campaign IN (SELECT c.campaign FROM {_MINE})
  OR campaign IN (SELECT e.campaign FROM labctl.event e WHERE e.kind = 'CampaignUnblinded')"""

_GUARD = """
CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON labctl.{table}
  FOR EACH STATEMENT EXECUTE FUNCTION labctl.refuse();
ALTER TABLE labctl.{table} ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE labctl.{table} ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS seen ON labctl.{table};
CREATE POLICY seen ON labctl.{table} FOR SELECT USING ({seen});
DROP POLICY IF EXISTS own ON labctl.{table};
CREATE POLICY own ON labctl.{table} FOR INSERT TO labctl_writer WITH CHECK ({whose});
"""

# Read models: what a list of campaigns and a list of episodes ask. Nothing in them names an arm before unblinding.
_VIEWS = """
CREATE OR REPLACE VIEW labctl.campaigns AS
SELECT c.campaign, c.name, c.writer, c.since,
  (SELECT body::json -> 'cell' ->> 'name' FROM labctl.event e WHERE e.campaign = c.campaign AND seq = 1) AS cell,
  (SELECT json_array_length(body::json -> 'schedule') FROM labctl.event e WHERE e.campaign = c.campaign AND seq = 1)
    AS trials,
  s.scored, s.phase, l.seq AS entries, l.hash AS head, l.wall AS last_entry,
  (SELECT max(at) FROM labctl.witnessed w WHERE w.campaign = c.campaign) AS witnessed
FROM labctl.campaign c
JOIN LATERAL (SELECT seq, hash, wall FROM labctl.event e WHERE e.campaign = c.campaign ORDER BY seq DESC LIMIT 1) l
  ON true
JOIN LATERAL (SELECT count(DISTINCT trial) FILTER (WHERE kind = 'OutcomeRecorded') AS scored,
  CASE WHEN bool_or(kind = 'CampaignUnblinded') THEN 'unblinded' WHEN bool_or(kind = 'CampaignFrozen') THEN 'frozen'
    WHEN bool_or(kind = 'CampaignReviewed') THEN 'reviewed' WHEN bool_or(kind = 'CampaignClosed') THEN 'closed'
    ELSE 'open' END AS phase
  FROM labctl.event e WHERE e.campaign = c.campaign) s ON true;
CREATE OR REPLACE VIEW labctl.episodes AS
SELECT campaign, episode, max(trial) AS trial,
  max(wall) FILTER (WHERE kind = 'EpisodeStarted') AS started, max(wall) FILTER (WHERE kind = 'EpisodeEnded') AS ended,
  max(body::json ->> 'reason') FILTER (WHERE kind = 'EpisodeEnded') AS reason,
  count(*) FILTER (WHERE kind = 'OperationRecorded') AS operations,
  bool_or(kind = 'RecordingSealed') AS sealed, bool_or(kind = 'EpisodeVoided') AS voided,
  bool_or(kind = 'OutcomeRecorded') AS scored
FROM labctl.event WHERE episode IS NOT NULL GROUP BY campaign, episode;
"""

_GRANTS = f"""
REVOKE ALL ON SCHEMA labctl FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA labctl FROM PUBLIC, labctl_writer, labctl_reader;
GRANT USAGE ON SCHEMA labctl TO labctl_writer, labctl_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA labctl TO labctl_writer, labctl_reader;
GRANT INSERT (campaign, name, first) ON labctl.campaign TO labctl_writer;
GRANT INSERT (campaign, seq, hash) ON labctl.witnessed TO labctl_writer;
GRANT INSERT ON labctl.event, labctl.command, labctl.stream, labctl.chunk TO labctl_writer;
COMMENT ON SCHEMA labctl IS '{FORM}';
RESET ROLE;
"""


def script() -> str:
    """All of it. Done twice it changes nothing; whoever runs it may make roles and schemas in the database."""
    guarded = "".join(
        _GUARD.format(
            table=table,
            seen=_OWN_OR_OPEN if table == "chunk" else "true",
            whose="true" if table == "campaign" else "labctl.mine(campaign)",
        )
        for table in TABLES
    )
    return "".join(("BEGIN;\n", _ROLES, _TABLES, _GUARDS, guarded, _VIEWS, _GRANTS, "COMMIT;\n"))


def install(url: str, timeout_s: float) -> list[str]:
    """Set a database up, or bring it up to date; returns lines to print. Raises StorageError."""
    server = Server(url, timeout_s, bare=True)
    try:
        server.run(script())
    finally:
        server.close()
    return [
        f"{server.where}: schema labctl is set up ({', '.join(TABLES)}; views campaigns, episodes)",
        f"who may copy campaigns there: GRANT {WRITER} TO some_login; who may look: GRANT {READER} TO another",
    ]
