/** How a scoring goes on: its phases, and what an event makes of it. */

const PHASES = {
  analyzing_methodology: ["Analysing the methodology", 1],
  identifying_missing_tools: ["Identifying missing tools", 2],
};

/** A scoring that is not over. */
export function isActive(score) {
  return score?.status === "pending" || score?.status === "in_progress";
}

/** What an active scoring is doing, and how many of its two steps it has begun. */
export function phase(score) {
  if (score.status === "pending") return ["Waiting to begin", 0];
  return PHASES[score.phase] ?? ["Scoring", 0];
}

/** The score as an event says that it is now; what the event does not tell stays, if it is the same scoring. */
export function after(score, event) {
  const known = score?.score_id === event.score_id ? score : {score_id: event.score_id, current_prompt_used: true};
  switch (event.type) {
    case "scoring.pending":
      return {...known, status: "pending", phase: null};
    case "scoring.started":
      return {...known, status: "in_progress"};
    case "scoring.progress":
      return {...known, status: "in_progress", phase: event.phase};
    case "scoring.completed":
      return {...known, status: "completed", phase: null, total_score: event.total_score};
    case "scoring.failed":
      return {...known, status: "failed", phase: null, error_message: event.error_message};
    default:
      return score;
  }
}
