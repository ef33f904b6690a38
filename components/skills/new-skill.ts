/** What the editor opens with when a skill is written from nothing: every required key, and a comment for each. */
export const NEW_SKILL = `skill_name: my_skill
description: One sentence that says what kind of task this does.
# Names of the tools the model may call.
available_tools: [probe]
# Turns of the model, the answer included.
max_rounds: 8
answer_format:
  required_fields: ["number"]
# A field that breaks its pattern scores 0.
audit_rules:
  - field: "number"
    pattern: "^\\\\d+$"
# Weights sum to 1.
reward_weights:
  tool_accuracy: 0.5
  answer_f1: 0.5
`;
