// Hands opencode's events to takeback's hook and acts on its answer. `takeback unprotect opencode` removes this file.
import { spawn } from "node:child_process"

const HOOK = HOOK_COMMAND
const LIMIT = 60_000 // milliseconds
const SOON = 500 // milliseconds within which a call that was stopped is over
const SAID = 4_000 // characters of what a command said that failed: they may tell that it never ran
const READING = new Set(["read", "glob", "grep", "list", "webfetch", "websearch", "codesearch", "todowrite", "todoread"])
const OF_SESSIONS = new Set(["session.created", "session.idle", "session.error", "session.deleted"])

// Resolves to the hook's answer; to nothing if it has none or cannot run, so that opencode goes on.
const ask = (name, payload) =>
  new Promise((resolve) => {
    let out = "", err = ""
    const child = spawn(`${HOOK} ${name}`, { shell: true, stdio: ["pipe", "pipe", "pipe"], timeout: LIMIT })
    child.stdout.on("data", (part) => (out += part))
    child.stderr.on("data", (part) => (err += part))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve({}))
    child.on("close", (code) => {
      let answer = {}
      try {
        answer = JSON.parse(out || "{}") ?? {}
      } catch {}
      resolve(code === 2 ? { decision: "deny", reason: err.trim() || answer.reason } : answer)
    })
    child.stdin.end(JSON.stringify(payload))
  })

export const Takeback = async ({ directory }) => {
  const parents = new Map() // a subagent's session → the one that started it
  const begun = new Map() // a call at work → its session, and when it began
  const asked = new Map() // a question to the person → the call that it is about
  const told = (input, output) => ({ input, output, directory, parentID: parents.get(input.sessionID) })
  const answered = async (type, { id, requestID, sessionID, tool, reply }) => {
    const callID = tool?.callID ?? asked.get(requestID)
    if (!begun.has(callID)) return
    asked.delete(requestID)
    if (type === "permission.asked") asked.set(id, callID)
    else if (reply === "reject") begun.delete(callID)
    else begun.set(callID, { sessionID, at: Date.now() })
    if (type === "permission.asked" || reply === "reject") await ask(type, told({ type, sessionID, callID }))
  }
  // A person may stop a session whose call then takes a moment to end, and is told of after that.
  const ended = async (session) => {
    const atWork = () => [...begun.keys()].filter((call) => begun.get(call).sessionID === session)
    for (const until = Date.now() + SOON; atWork().length && Date.now() < until; ) await new Promise((go) => setTimeout(go, 20))
    atWork().forEach((call) => begun.delete(call)) // failed, of which nothing is told
  }
  return {
    event: async ({ event }) => {
      const about = event.properties ?? {}
      if (event.type === "permission.asked" || event.type === "permission.replied") await answered(event.type, about)
      if (!OF_SESSIONS.has(event.type)) return
      const sessionID = about.sessionID ?? about.info?.id
      if (about.info?.parentID) parents.set(sessionID, about.info.parentID)
      if (event.type === "session.idle" || event.type === "session.error") await ended(sessionID)
      await ask(event.type, told({ type: event.type, sessionID }))
      if (event.type === "session.deleted") parents.delete(sessionID)
    },
    "chat.message": async (input, output) => {
      const last = output.parts.at(-1)
      const sessionID = input.sessionID ?? output.message.sessionID
      const { context } = await ask("chat.message", told({ ...input, sessionID }, output))
      if (!context || !last) return
      const { sessionID: session, messageID } = last
      output.parts.push({ id: `${last.id}0`, sessionID: session, messageID, type: "text", synthetic: true, text: context })
    },
    "tool.execute.before": async (input, output) => {
      if (READING.has(input.tool)) return
      const { decision, reason } = await ask("tool.execute.before", told(input, output))
      if (decision === "deny") throw new Error(reason || "takeback denied this call")
      begun.set(input.callID, { sessionID: input.sessionID, at: Date.now() })
    },
    "tool.execute.after": async (input, output) => {
      if (READING.has(input.tool)) return
      const { at } = begun.get(input.callID) ?? {}
      const duration_ms = at && Date.now() - at
      const said = output?.metadata?.exit ? String(output.output ?? "").slice(0, SAID) : undefined
      await ask("tool.execute.after", { ...told(input, { ...output, output: said }), duration_ms })
      begun.delete(input.callID)
    },
  }
}
