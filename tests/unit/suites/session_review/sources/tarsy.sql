-- A database as TARSy makes it. One session is over, with a parallel stage, a pause, a chat and a judge; one is running.
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

INSERT INTO alert_sessions VALUES('over','{"title": "disk full"}','chain:c','Disk','completed',1,9,NULL,'the disk',NULL,NULL,'c');
INSERT INTO alert_sessions VALUES('running','{"title": "disk full"}','chain:c','Disk','in_progress',1,9,NULL,'the disk',NULL,NULL,'c');
INSERT INTO llm_interactions VALUES('i1','over','one',3,1,NULL,'investigation','{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "said"}]}','thought');
INSERT INTO llm_interactions VALUES('i2','over','chat',21,1,NULL,'investigation','{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "said"}]}','thought');
INSERT INTO llm_interactions VALUES('judge','over',NULL,30,1,NULL,'investigation','{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "said"}]}','thought');
INSERT INTO mcp_communications VALUES('m1','over','two',4,1,NULL,'logs','tool_call','search','{"q": 1}','{"result": "found"}','null');
INSERT INTO mcp_communications VALUES('m2','over','two',6,0,'denied','logs','tool_call','search','{}','null','null');
INSERT INTO mcp_communications VALUES('m3','over','chat',22,1,NULL,'logs','tool_call','search','{}','{"result": "chatted"}','null');
INSERT INTO stage_executions VALUES('parent','over',0,'both','parallel','completed',2,NULL,8,NULL,NULL,NULL,0,'single');
INSERT INTO stage_executions VALUES('one','over',0,'both - a','a','completed',2,NULL,8,NULL,NULL,'parent',1,'single');
INSERT INTO stage_executions VALUES('two','over',0,'both - b','b','completed',2,5,8,NULL,NULL,'parent',2,'single');
INSERT INTO stage_executions VALUES('chat','over',0,'Chat','ChatAgent','completed',20,NULL,8,NULL,'chat-1',NULL,0,'single');
