"""A database as TARSy makes it, with a session that is over and one that is running."""

import json
import sqlite3
from pathlib import Path

SCHEMA = """
CREATE TABLE alert_sessions (session_id VARCHAR PRIMARY KEY, alert_data JSON, agent_type VARCHAR, alert_type VARCHAR,
  status VARCHAR, started_at_us BIGINT, completed_at_us BIGINT, error_message VARCHAR, final_analysis VARCHAR,
  final_analysis_summary VARCHAR, runbook_url VARCHAR, chain_id VARCHAR);
CREATE TABLE stage_executions (execution_id VARCHAR PRIMARY KEY, session_id VARCHAR, stage_index INTEGER,
  stage_name VARCHAR, agent VARCHAR, status VARCHAR, started_at_us BIGINT, paused_at_us BIGINT, completed_at_us BIGINT,
  error_message VARCHAR, chat_id VARCHAR, parent_stage_execution_id VARCHAR, parallel_index INTEGER,
  parallel_type VARCHAR);
CREATE TABLE llm_interactions (interaction_id VARCHAR PRIMARY KEY, session_id VARCHAR, stage_execution_id VARCHAR,
  timestamp_us BIGINT, success BOOLEAN, error_message VARCHAR, interaction_type VARCHAR, conversation JSON,
  thinking_content VARCHAR);
CREATE TABLE mcp_communications (communication_id VARCHAR PRIMARY KEY, session_id VARCHAR, stage_execution_id VARCHAR,
  timestamp_us BIGINT, success BOOLEAN, error_message VARCHAR, server_name VARCHAR, communication_type VARCHAR,
  tool_name VARCHAR, tool_arguments JSON, tool_result JSON, available_tools JSON);
"""


def fill(connection: sqlite3.Connection) -> None:
    """Two sessions: one that is over, with a parallel stage, a pause, a chat and a judge; one that is running."""
    add = connection.execute
    for name, status in (("over", "completed"), ("running", "in_progress")):
        add(
            "INSERT INTO alert_sessions VALUES (?, ?, 'chain:c', 'Disk', ?, 1, 9, NULL, 'the disk', NULL, NULL, 'c')",
            (name, json.dumps({"title": "disk full"}), status),
        )
    stage = "INSERT INTO stage_executions VALUES (?, 'over', 0, ?, ?, 'completed', ?, ?, 8, NULL, ?, ?, ?, 'single')"
    add(stage, ("parent", "both", "parallel", 2, None, None, None, 0))
    add(stage, ("one", "both - a", "a", 2, None, None, "parent", 1))
    add(stage, ("two", "both - b", "b", 2, 5, None, "parent", 2))
    add(stage, ("chat", "Chat", "ChatAgent", 20, None, "chat-1", None, 0))
    conversation = json.dumps(
        {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "said"}]}
    )
    spoken = "INSERT INTO llm_interactions VALUES (?, 'over', ?, ?, 1, NULL, 'investigation', ?, 'thought')"
    add(spoken, ("i1", "one", 3, conversation))
    add(spoken, ("i2", "chat", 21, conversation))
    add(spoken, ("judge", None, 30, conversation))
    called = (
        "INSERT INTO mcp_communications VALUES (?, 'over', ?, ?, ?, ?, 'logs', 'tool_call', 'search', ?, ?, 'null')"
    )
    add(called, ("m1", "two", 4, 1, None, '{"q": 1}', '{"result": "found"}'))
    add(called, ("m2", "two", 6, 0, "denied", "{}", "null"))
    add(called, ("m3", "chat", 22, 1, None, "{}", '{"result": "chatted"}'))


def make_database(path: Path) -> Path:
    """A SQLite file with the two sessions."""
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    fill(connection)
    connection.commit()
    connection.close()
    return path
