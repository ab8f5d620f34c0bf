package answers

import (
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// lmStudio is the end of an answer of LM Studio's own interface.
type lmStudio struct {
	Model  word   `json:"model_instance_id"`
	Output filled `json:"output"`
	Stats  struct {
		Prompt    count  `json:"input_tokens"`
		Generated count  `json:"total_output_tokens"` // reasoning included
		Reasoning count  `json:"reasoning_output_tokens"`
		Load      millis `json:"model_load_time_seconds"`
	} `json:"stats"`
}

// readLMStudio reads an event of LM Studio's /api/v1/chat, or the complete answer.
func readLMStudio(m *Message, value []byte) error {
	var v struct {
		Type      word      `json:"type"`
		Content   text      `json:"content"`
		Tool      text      `json:"tool"`
		Arguments text      `json:"arguments"`
		Result    *lmStudio `json:"result"` // of chat.end
		Error     failure   `json:"error"`
		lmStudio            // an answer that is not streamed
	}
	if err := m.parse(value, &v); err != nil {
		return err
	}
	m.Provider, m.Named = "LM Studio", true
	p := m.part(0, 0)
	switch {
	case v.Type == "reasoning.delta":
		p.reason(v.Content)
	case v.Type == "message.delta":
		p.say(v.Content)
	case strings.HasPrefix(string(v.Type), "tool_call.a"): // its arguments
		p.say(v.Tool, v.Arguments)
	}
	m.write(p)
	m.fail(v.Error)
	r := v.Result
	if r == nil {
		r = &v.lmStudio
	}
	m.Model = string(r.Model)
	m.Prompt = int(r.Stats.Prompt)
	m.count(r.Stats.Generated, r.Stats.Reasoning, 0)
	m.Load = time.Duration(min(int64(r.Stats.Load), int64(event.MaxRequestTime)/1000)) * 1000 // sent in s
	if v.Type == "chat.end" || v.Type == "" && bool(r.Output) {
		m.Done, m.Why = true, "stop"
	}
	return nil
}
