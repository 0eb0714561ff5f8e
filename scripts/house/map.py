"""Old module (below takeback) → new module. What is not named stays."""
MAP = {}
def room(folder, **names):
    for old, new in names.items():
        MAP[old.replace("__", ".")] = f"{folder}.{new}" if folder else new
room("model", acts="outside", callers="calls", effects="effects", ids="ids", states="thread_states")
room("system", ancestry="processes", exchange="http", locks="locks", workers="forking", safefs="safefs", installed="installed", handed="handed_over")
room("text", textdiff="linediff", units="units")
room("privacy", redact="redact", masking="masking", marks="value_marks")
room("config", agent_files="agents_own_files", policy="policy", setting_files="toml_file", setting_place="place", settings="settings", variables="variables")
room("journal", journal="journal", head_file="head_file", changes="change_lists", history="history", filters="filters", brackets="brackets", names="names")
room("store", store="layout", blobs="blobs", packs="packs", large="large_blobs", chunked="chunks", records="records", trees="folder_objects")
room("look", observer="observer", index="known_tree", index_file="known_tree_file", reading="read_path", rules="coverage", calls="turns_and_calls",
  capture__counting="count", capture__change_times="change_times", capture__runs="runs_at_work", capture__scan="scan", prompts="prompts")
room("look.watch", moments="moments", capture__inotify="inotify", capture__suspects="suspects", capture__watching="watcher")
room("plan", planner="planner", requests="requests", merging="merge")
room("apply", executor="executor", takebacks="takebacks", results="results")
room("domains.git", capture__git_state="look", git_index="index_file", git_steps="judge", repository="repository", domains__git="apply")
room("domains.threads", capture__thread_state="look", domains__state="apply")
room("domains.email", outbox="outbox", domains__email="domain", mail__message="message", mail__web="web", mail="providers", mail__gmail="providers.gmail", mail__outlook="providers.outlook", mail__smtp="providers.smtp")
room("domains", domains__files="files", recording="recording")
room("threads", threads="threads", handoffs="handoffs", held_values="value_store", lineage="restored_from", plain="plain_data", thread_index="index", thread_prune="prune", thread_reads="reads", thread_turns="turns", thread_twins="awaited", thread_views="compare", values="value_codec", state_stores="stores", state_stores__sealed="stores.sealed", state_stores__walrus="stores.walrus")
room("run", capture__isolate="isolate", capture__landlock="landlock", capture__namespaces="namespaces", capture__run="command", capture__elsewhere="elsewhere")
room("care", prune="prune", budget="budget", reach="reachability", salvage="salvage", verify="verify", inherited="moved_folder")
room("agents", announced="call_of_event", hook_record="hook_problems", hooked="in_workspace", ends="ends")
room("agents.sessions", agents__claude_transcript="claude", agents__codex_rollout="codex", agents__copilot_events="copilot", agents__gemini_session="gemini", agents__transcripts="transcripts", agents__forgetting="forgetting", agents__conversation="conversation")
room("gate.bash", gate__parsing="walk", gate__words="words", gate__builtins="builtins", gate__finding="find_command", gate__globs="globs", gate__grammar="grammar", gate__state="state", gate__wrappers="wrappers", gate__judging="judge", gate__switches="switches")
room("gate.code", gate__foreign="other_languages", gate__inputs="inputs", gate__git_inputs="git_inputs", gate__javascript="javascript", gate__taking="taking", gate__written="written", gate__recipes="recipes", gate__project="project", gate__sending="sending")
room("gate", gate__deciding="decision", gate__files="paths_written", gate__own="own_undo", gate__repositories="git_elsewhere", gate__web="requests_and_statements")
room("show", account="report_values", report="report", span="report_span", blame="blame", board="timeline_items", timeline="timeline", turns="turns", views="views")
room("harness", doing="recorder", steps="steps", toolcalls="tool_calls", conversation="conversation", consent="approval", declared="undo_declarations", transactions="transactions")
room("", guarded="workspace_locks", twins="aio")
cli = "surfaces.cli"
W = dict(acts="effects_outside", diffs="diffs", failures="failures", ledger="ledger", outcomes="outcomes", page="page", paths="paths", plans="plans", refs="git_refs", shapes="json_shapes", states="threads_in_plans", thread_shapes="json_thread_shapes", ways="ways", graph="log_graph")
MAP.update({f"{cli}.capturing": f"{cli}.captured", f"{cli}.masks": f"{cli}.who_is_looking", f"{cli}.takebacks": f"{cli}.take_back_flow"})
for o, n in W.items(): MAP[f"{cli}.{o}"] = f"surfaces.wording.{n}"
verbs = {
 "start": "protect init checkpoint track watch run configuring:agents_configured roots:init_roots",
 "see": "status diff log show blame ui web report",
 "back": "undo redo rollback revert restore thread choosing:choose_checkpoint forgetting:conversations threads_kept:threads.append threads_seen:threads.see threads_tended:threads.tend",
 "plan": "plan apply resume",
 "outside": "record email effects compensate approve resolve policy hook resident mcp",
 "care": "prune label pin unpin verify repair forget unprotect doctor config checks:doctor_checks agent_checks:doctor_agents orphans:doctor_orphans",
 "about": "completion help",
}
for group, names in verbs.items():
    for n in names.split():
        o, _, new = n.partition(":")
        MAP[f"{cli}.{o}"] = f"{cli}.verbs.{group}.{new or o}"
MAP[f"{cli}.manual"] = f"{cli}.docs.manual"; MAP[f"{cli}.reference"] = f"{cli}.docs.reference"; MAP[f"{cli}.shells"] = f"{cli}.docs.completion_scripts"
MAP[f"{cli}.verbs"] = f"{cli}.verb_list"
DATA = {"variables.toml": "config/variables.toml", "gate/code.toml": "gate/code/inputs.toml"}
