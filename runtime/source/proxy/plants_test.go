package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// conversation is a conversation of which tests change one thing.
type conversation struct {
	system   string
	tools    []string
	messages []string // user, assistant, user, ...
}

const (
	manual = "You are a careful assistant of a hotel. Answer in one short sentence, and never name a price that is not in the list. "
	rules  = "The list of rooms follows. Single rooms have a desk, double rooms have a sofa, and suites have both of them."
)

func hotel() conversation {
	return conversation{
		system: manual + rules,
		tools:  []string{`{"name":"book","parameters":{"room":"string"}}`, `{"name":"cancel","parameters":{"room":"string"}}`, `{"name":"list","parameters":{}}`},
		messages: []string{
			"Do you have a single room with a view of the sea for two nights in the first week of May?", "Yes, we have one single room with a view of the sea.",
			"And a double room for my parents, on the same floor if that is possible at all?", "Yes, it is next door.", "Then please book both of them.",
		},
	}
}

func (c conversation) body(t *testing.T, model string) string {
	t.Helper()
	type message map[string]any
	all := []message{{"role": "system", "content": c.system}}
	for i, text := range c.messages {
		all = append(all, message{"role": [...]string{"user", "assistant"}[i%2], "content": text})
	}
	var tools []json.RawMessage
	for _, x := range c.tools {
		tools = append(tools, json.RawMessage(x))
	}
	body, err := json.Marshal(map[string]any{"model": model, "messages": all, "tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestPlantedBreaks plants breaks of all kinds in conversations, and looks for each.
func TestPlantedBreaks(t *testing.T) {
	stamp := func(text string) func(*conversation) {
		return func(c *conversation) { c.system = manual + text + rules }
	}
	type plant struct {
		name          string
		first, second func(*conversation)
		kind          event.BreakKind
		place         string
		at            int // -1: not checked
	}
	keep := func(*conversation) {}
	var plants []plant
	for _, x := range []struct {
		kind       event.BreakKind
		now, later string
	}{
		{event.BreakTimestamp, "2026-11-23T07:30:12Z", "2026-11-23T07:30:19Z"},
		{event.BreakTimestamp, "2026-11-23 07:30", "2026-11-23 08:30"},
		{event.BreakTimestamp, "2026-11-23", "2026-11-24"},
		{event.BreakTimestamp, "23 November 2026", "24 November 2026"},
		{event.BreakTimestamp, "Nov 23, 2026", "Nov 24, 2026"},
		{event.BreakTimestamp, "07:30:12", "07:30:13"},
		{event.BreakTimestamp, "1795420800", "1795420900"},
		{event.BreakIdentifier, "6f1c2a9e-0b1d-4c58-9a55-1d2f3a4b5c6d", "6f1c2a9e-0b1d-4c58-9a55-1d2f3a4b5c6e"},
		{event.BreakIdentifier, "sess_A81hd72hDk", "sess_B81hd72hDk"},
		{event.BreakIdentifier, "d41d8cd98f00b204e9800998ecf8427e", "e41d8cd98f00b204e9800998ecf8427e"},
		{event.BreakNumber, "visitor 17", "visitor 18"},
		{event.BreakNumber, "3.5 stars", "4.5 stars"},
		{event.BreakNumber, "request 100234", "request 100235"},
	} {
		at := len(manual) + len("It is ")
		if x.kind == event.BreakNumber {
			at += strings.IndexFunc(x.now, func(r rune) bool { return r >= '0' && r <= '9' })
		}
		plants = append(plants, plant{x.kind.String() + " " + x.now, stamp("It is " + x.now + ". "), stamp("It is " + x.later + ". "), x.kind, "messages[0].content", at})
	}
	user := func(i int, text string) func(*conversation) { return func(c *conversation) { c.messages[i] = text } }
	plants = append(plants,
		plant{"timestamp in a message", user(2, "It is 2026-11-23 07:30 now. Is there a double room?"), user(2, "It is 2026-11-23 07:31 now. Is there a double room?"), event.BreakTimestamp, "messages[3].content", 6},
		plant{"identifier in a message", user(0, "Call call_8fh2nA71 wants a room."), user(0, "Call call_9fh2nA71 wants a room."), event.BreakIdentifier, "messages[1].content", 5},
		plant{"tools reversed", keep, func(c *conversation) { c.tools[0], c.tools[2] = c.tools[2], c.tools[0] }, event.BreakToolOrder, "tools[0]", len(`{"name":"`)},
		plant{"last tools exchanged", keep, func(c *conversation) { c.tools[1], c.tools[2] = c.tools[2], c.tools[1] }, event.BreakToolOrder, "tools[1]", -1},
		plant{"tools rotated", keep, func(c *conversation) { c.tools = append(c.tools[1:], c.tools[0]) }, event.BreakToolOrder, "tools[0]", len(`{"name":"`)},
		plant{"tool added in front", keep, func(c *conversation) { c.tools = append([]string{`{"name":"ask"}`}, c.tools...) }, event.BreakTools, "tools[0]", -1},
		plant{"tool changed", keep, func(c *conversation) { c.tools[1] = `{"name":"cancel","parameters":{"night":"string"}}` }, event.BreakTools, "tools[1]", -1},
		plant{"tool removed", keep, func(c *conversation) { c.tools = c.tools[:2] }, event.BreakTools, "messages[1].content", -1},
		plant{"other instructions", keep, func(c *conversation) { c.system = manual + "Be brief. " + rules }, event.BreakInstructions, "messages[0].content", -1},
		plant{"word beside a timestamp", stamp("It is 07:30, Ann. "), stamp("It is 07:30, Bob. "), event.BreakInstructions, "messages[0].content", len(manual) + len("It is 07:30, ")},
		plant{"word before a number", stamp("Ann has room 7. "), stamp("Bob has room 7. "), event.BreakInstructions, "messages[0].content", len(manual)},
		plant{"longer number", stamp("Guest 9. "), stamp("Guest 10. "), event.BreakNumber, "messages[0].content", len(manual) + len("Guest ")},
		plant{"other month", stamp("It is 30 October 2026. "), stamp("It is 30 November 2026. "), event.BreakTimestamp, "messages[0].content", len(manual) + len("It is ")},
		plant{"nothing in common", keep, func(c *conversation) { c.system = "Always " + c.system }, event.BreakNone, "", 0},
		plant{"instructions shortened", keep, func(c *conversation) { c.system = manual + "There are no rooms." }, event.BreakInstructions, "messages[0].content", -1},
		plant{"answer with spaces", keep, user(1, "Yes, we have one single room with a view of the sea. \n"), event.BreakAnswer, "messages[2].content", -1},
		plant{"answer without thoughts", user(1, "<think>They want a room.</think>Yes, we do."), user(1, "Yes, we do."), event.BreakAnswer, "messages[2].content", 0},
		plant{"answer edited", keep, user(3, "Yes, it is across the hall."), event.BreakAnswer, "messages[4].content", -1},
		plant{"oldest turn dropped", keep, func(c *conversation) { c.messages = c.messages[2:] }, event.BreakTrimmed, "messages[1].content", 0},
		plant{"two turns dropped", keep, func(c *conversation) { c.messages = c.messages[4:] }, event.BreakTrimmed, "messages[1].content", 0},
		plant{"question edited", keep, user(2, "And a suite for my parents, on the same floor if that is possible at all?"), event.BreakMessage, "messages[3].content", -1},
		plant{"last question edited", keep, user(4, "Then please book none of them."), event.BreakMessage, "messages[5].content", -1},
	)
	if len(plants) < 30 {
		t.Fatalf("%d plants", len(plants))
	}
	r := behind(t, answering(http.StatusOK, "application/json", `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`))
	for _, x := range plants {
		send := func(change func(*conversation)) (event.RequestID, event.Reuse) {
			c := hotel()
			change(&c)
			_, _, logged := r.one(t, chat, c.body(t, x.name))
			return logged.ended.Req, logged.outcome.Reuse
		}
		first, b := send(x.first)
		if b != (event.Reuse{}) {
			t.Errorf("%s: the first prompt: %+v", x.name, b)
		}
		_, b = send(x.second)
		if (b.With == first) != (x.place != "") || b.Kind != x.kind || b.Place != x.place || x.at >= 0 && b.At != x.at {
			t.Errorf("%s: %+v, want %v at %s, character %d", x.name, b, x.kind, x.place, x.at)
		}
	}
}
