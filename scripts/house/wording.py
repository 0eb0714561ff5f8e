import subprocess
def r(*a):
    print("$", " ".join(a)[:110], flush=True); subprocess.run(["python3","scripts/house/refactor.py",*a],check=True)
C="surfaces.cli"; W="surfaces.wording"; V=f"{C}.verbs"
def names(a,b,n): r("names",a,b,*n.split())
from pathlib import Path
import re
S=Path("src/takeback")
def sub(path,*pairs):
    p=S/path; t=p.read_text()
    for a,b in pairs:
        n=re.sub(a,b,t); assert n!=t,(path,a); t=n
    p.write_text(t)
sub("surfaces/cli/verbs/see/status.py",(r"\b_failures\b","failed_hooks"),(r"\b_lost\b","lost_hooks"))
names(f"{C}.terminal",f"{W}.text","safe safe_line cells pad clip clip_path clip_middle wrapped age moment counted listed")
names(f"{C}.approving",f"{W}.approvals","CANNOT question unbound_said credential_question listing")
names(f"{C}.captured",f"{W}.checkpoints","captured_said")
names(f"{C}.take_back_flow",f"{W}.take_backs","Asked must_be_known fuller_plan write_plan nothing_said write_outcome -domains")
names(f"{W}.ledger",f"{C}.ledger","show -entries -lines -shaped")
names(f"{W}.failures",f"{C}.failures","known bug unknown_verb -told -what_differs")
names(f"{V}.back.threads.see",f"{W}.threads","brief table chain_of chain is_head handoff_lines about state_lines planned difference_lines totals found_lines")
names(f"{V}.back.threads.tend",f"{W}.threads","verified")
names(f"{V}.back.threads.append","threads.compare","captures look_at_files")
names(f"{V}.outside.email",f"{W}.mail","release_question write_mail")
names(f"{V}.outside.record",f"{W}.typed_json","parsed_json _body")
names(f"{V}.outside.resolve",f"{W}.effects_outside","meaning")
names(f"{V}.plan.resume",f"{W}.outcomes","write_resumed")
names(f"{V}.see.log",f"{W}.log","lines oneline grouped heading mark")
names(f"{V}.see.show",f"{W}.entry","lines shape")
names(f"{V}.see.status",f"{W}.status","lines in_order beyond_budget failed_hooks lost_hooks")
r("module",f"{V}.start.init_roots","look.roots")
names(f"{C}.context","care.moved_folder","moved_from")

sub("surfaces/wording/typed_json.py",(r"\b_body\b","text_given"))
sub("surfaces/cli/verbs/outside/record.py",(r"\b_body\b","text_given"))
sub("surfaces/cli/verbs/care/doctor_agents.py",(r"\b_Hooks\b","Hooks"),(r"\b_hooks\b","hooks_at"),(r"\b_lost\b","lost_of"),(r"\b_places\b","places_of"),(r"\b_read\b","read_file"))
names(f"{V}.start.agents_configured","agents.setup.found","place_of ours")
names(f"{V}.care.doctor_agents","agents.setup.found","Hooks hooks_at lost_of places_of lost Lost read_file")

