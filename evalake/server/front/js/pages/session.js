/** One session: its score, its conversation, its technical side; scores it, and shows how that goes on. */

import {here, keepAddress} from "/js/address.js";
import {pathOf} from "/js/addresses.js";
import {get, send, sessionPath} from "/js/api.js";
import {badge} from "/js/badge.js";
import {h, show} from "/js/dom.js";
import {duration, name, time, words} from "/js/format.js";
import {listen} from "/js/live.js";
import {announce, confirmed, heading, message, problem, showPage} from "/js/page.js";
import {after, isActive, phase} from "/js/scoring.js";
import {tabs} from "/js/tabs.js";
import {conversationView} from "/js/pages/conversation_view.js";
import {scoreView} from "/js/pages/score_view.js";
import {technicalView} from "/js/pages/technical_view.js";

const VIEWS = [["score", "Score", scoreView], ["conversation", "Conversation", conversationView], ["technical", "Technical", technicalView]];

/** Show a session; `query` says which view, and which of its scores. */
export async function sessionPage({parts: [id], query, signal}) {
  showPage(heading(name(id)), h("p", {class: "note"}, "Loading …"));
  const page = new SessionPage(id, query, signal);
  await page.load();
}

class SessionPage {
  constructor(id, query, signal) {
    Object.assign(this, {id, signal, session: null, history: [], service: {}, reading: 0});
    this.view = VIEWS.find(([key]) => key === query.get("view"))?.[0] ?? "score";
    this.chosen = query.get("score");
    this.state = h("div", {class: "head"});
    this.button = h("button", {type: "button", class: "primary", onclick: () => this.score()});
    this.stop = h("button", {type: "button", onclick: () => this.cancel()}, "Cancel the scoring");
    this.messages = h("div");
    this.tabs = tabs("Views of the session", VIEWS.map(([key, label]) => [key, label]), this.view, (view) => this.turnTo(view));
  }

  async load() {
    try {
      await this.read();
    } catch (error) {
      if (error.name === "AbortError") return;
      const back = h("p", {}, h("a", {href: pathOf("sessions")}, "All sessions"));
      showPage(heading(error.status === 404 ? "No such session" : name(this.id)), problem(error, "The session cannot be shown", () => this.load()), back);
      return;
    }
    const {session} = this;
    const about = `${name(session.alert_type)} · ${name(session.agent)} · ${words(session.session_status)} · ${time(session.started_at_us)}, ${duration(session.started_at_us, session.completed_at_us)}`;
    const hasFocus = document.activeElement === document.body || document.activeElement?.matches("h1");
    const title = heading(name(this.id));
    showPage(
      h("p", {}, h("a", {href: pathOf("sessions")}, "← All sessions")),
      h("div", {class: "title"}, h("div", {}, title, h("p", {class: "note"}, about)), h("div", {class: "actions"}, this.button)),
      this.state, this.messages, this.tabs.list, this.tabs.panel);
    if (hasFocus) title.focus({preventScroll: true});
    this.render();
    listen(`session:${this.id}`, (event) => this.hear(event), this.signal);
  }

  /** Read all of it anew; of two readings that overlap, the later one counts. */
  async read() {
    this.reading += 1;
    const mine = this.reading;
    const path = `/sessions/${encodeURIComponent(this.id)}`;
    const [session, history, service] = await Promise.all([
      get(path, {}, this.signal), get(sessionPath(this.id, "/history"), {}, this.signal), get("/status", {}, this.signal),
    ]);
    if (mine === this.reading) Object.assign(this, {session, history: history.scores, service});
  }

  async refresh() {
    try {
      await this.read();
      this.render();
    } catch (error) {
      if (error.name !== "AbortError") show(this.messages, problem(error, "The session cannot be read", () => this.refresh()));
    }
  }

  hear(event) {
    const before = this.session.score;
    const now = after(before, event);
    const isNews = before?.score_id !== now?.score_id || before?.status !== now?.status || before?.phase !== now?.phase ||
      (event.type === "scoring.completed" && before?.error_message);
    if (!isNews) return;
    this.session.score = now;
    if (before?.score_id !== now.score_id) this.chosen = null;
    if (isActive(now)) {
      announce(phase(now)[0]);
      if (isActive(before) && before.score_id === now.score_id) this.renderHead();
      else this.render();
      return;
    }
    announce(now.status === "completed" ? `Scoring is complete: ${now.total_score} of 100` : `Scoring has failed: ${name(now.error_message, 300)}`);
    this.renderHead();
    this.refresh();
  }

  async score() {
    const {score} = this.session;
    if (isActive(score) || this.isAsking) return;
    if (score?.status === "completed") {
      const text = "The judge reads the session again, which may cost money. The score of now stays in the history.";
      if (!(await confirmed({title: "Score this session again?", text, yes: "Score again"}))) return;
    }
    show(this.messages);
    this.isAsking = true;
    this.renderHead();
    try {
      const body = {force_rescore: score?.status === "completed" || score?.status === "failed"};
      const started = await send("POST", sessionPath(this.id, "/score"), body);
      if (this.signal.aborted) return;
      this.chosen = null;
      // An event of this scoring may have come first, and knows more than the answer to the request.
      if (this.session.score?.score_id !== started.score_id) this.session.score = started;
      announce("Scoring was asked for");
    } catch (error) {
      show(this.messages, problem(error, "The session was not scored", () => this.score()));
    } finally {
      this.isAsking = false;
    }
    this.render();
  }

  async askForTools() {
    show(this.messages);
    try {
      await send("POST", sessionPath(this.id, "/score"), {missing_tools_only: true});
      announce("Missing tools were asked for");
    } catch (error) {
      show(this.messages, problem(error, "The judge was not asked", () => this.askForTools()));
    }
  }

  async cancel() {
    show(this.messages);
    try {
      await send("POST", sessionPath(this.id, "/cancel"));
      this.button.focus();
    } catch (error) {
      show(this.messages, problem(error, "The scoring was not cancelled", () => this.cancel()));
    }
    this.refresh();
  }

  turnTo(view) {
    this.view = view;
    keepAddress(this.address());
    this.render();
  }

  choose(scoreId) {
    this.chosen = scoreId === this.session.score?.score_id ? null : scoreId;
    keepAddress(this.address());
    this.renderPanel();
    this.tabs.panel.focus();
  }

  address() {
    const said = new URLSearchParams();
    if (this.view !== "score") said.set("view", this.view);
    if (this.chosen) said.set("score", this.chosen);
    return here().pathname + (said.size ? `?${said}` : "");
  }

  render() {
    this.renderHead();
    this.renderPanel();
  }

  renderHead() {
    const {score} = this.session;
    const isBusy = isActive(score) || this.isAsking;
    this.button.textContent = isBusy ? "Scoring …" : {completed: "Score again", failed: "Try again"}[score?.status] ?? "Score session";
    if (isBusy) this.button.setAttribute("aria-disabled", "true");
    else this.button.removeAttribute("aria-disabled");
    const isTold = this.view === "score" && score?.status === "completed"; // large, in the view itself
    show(this.state, !isTold && badge(score), isActive(score) && [progress(score), this.stop]);
  }

  renderPanel() {
    const [, , view] = VIEWS.find(([key]) => key === this.view);
    const {session, history: scores, service} = this;
    const newest = session.score;
    const score = scores.find((each) => each.score_id === this.chosen) ?? newest;
    const isOld = score && newest && score.score_id !== newest.score_id;
    show(this.tabs.panel, isOld && this.view === "score" && message("info", "This is an earlier score",
      h("p", {}, h("button", {type: "button", onclick: () => this.choose(newest.score_id)}, "Show the newest"))),
    view({session, score, scores, service, choose: (id) => this.choose(id), refresh: () => this.refresh(), askForTools: () => this.askForTools()}));
  }
}

function progress(score) {
  const [text, step] = phase(score);
  return h("div", {class: "progress"}, h("progress", {max: 3, value: step || null, "aria-label": "Progress of the scoring"}), h("span", {}, `${text} …`));
}
