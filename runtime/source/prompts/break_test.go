package prompts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// chat is a conversation of which tests change one thing.
type chat struct {
	system   string
	tools    []string
	messages []string // user, assistant, user, ...
}

const (
	manual = "You are a careful assistant of a hotel. Answer in one short sentence, and never name a price that is not in the list. "
	rules  = "The list of rooms follows. Single rooms have a desk, double rooms have a sofa, and suites have both of them."
)

func conversation() chat {
	return chat{
		system: manual + rules,
		tools:  []string{`{"name":"book","parameters":{"room":"string"}}`, `{"name":"cancel","parameters":{"room":"string"}}`, `{"name":"list","parameters":{}}`},
		messages: []string{
			"Do you have a single room with a view of the sea for two nights in the first week of May?", "Yes, we have one single room with a view of the sea.",
			"And a double room for my parents, on the same floor if that is possible at all?", "Yes, it is next door.", "Then please book both of them.",
		},
	}
}

func (c chat) body(t *testing.T) []byte {
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
	body, err := json.Marshal(map[string]any{"messages": all, "tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestPlantedBreaks plants breaks of all kinds in a conversation, and looks for each.
func TestPlantedBreaks(t *testing.T) {
	stamped := func(before, now, later string) (func(*chat), func(*chat)) {
		put := func(text string) func(*chat) {
			return func(c *chat) { c.system = manual + before + text + ". " + rules }
		}
		return put(now), put(later)
	}
	type plant struct {
		name          string
		first, second func(*chat)
		kind          event.BreakKind
		place         string
		at            int // -1: not checked
	}
	keep := func(*chat) {}
	var plants []plant
	for _, x := range []struct {
		kind        event.BreakKind
		now, later_ string
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
		first, second := stamped("It is ", x.now, x.later_)
		at := len(manual) + len("It is ")
		if x.kind == event.BreakNumber {
			at += strings.IndexFunc(x.now, func(r rune) bool { return r >= '0' && r <= '9' })
		}
		plants = append(plants, plant{x.kind.String() + " " + x.now, first, second, x.kind, "messages[0].content", at})
	}
	user := func(i int, text string) func(*chat) { return func(c *chat) { c.messages[i] = text } }
	plants = append(plants,
		plant{"timestamp in a message", user(2, "It is 2026-11-23 07:30 now. Is there a double room?"), user(2, "It is 2026-11-23 07:31 now. Is there a double room?"), event.BreakTimestamp, "messages[3].content", 6},
		plant{"identifier in a message", user(0, "Call call_8fh2nA71 wants a room."), user(0, "Call call_9fh2nA71 wants a room."), event.BreakIdentifier, "messages[1].content", 5},
		plant{"tools reversed", keep, func(c *chat) { c.tools[0], c.tools[2] = c.tools[2], c.tools[0] }, event.BreakToolOrder, "tools[0]", 0},
		plant{"last tools exchanged", keep, func(c *chat) { c.tools[1], c.tools[2] = c.tools[2], c.tools[1] }, event.BreakToolOrder, "tools[1]", -1},
		plant{"tools rotated", keep, func(c *chat) { c.tools = append(c.tools[1:], c.tools[0]) }, event.BreakToolOrder, "tools[0]", 0},
		plant{"tool added in front", keep, func(c *chat) { c.tools = append([]string{`{"name":"ask"}`}, c.tools...) }, event.BreakTools, "tools[0]", -1},
		plant{"tool changed", keep, func(c *chat) { c.tools[1] = `{"name":"cancel","parameters":{"night":"string"}}` }, event.BreakTools, "tools[1]", -1},
		plant{"tool removed", keep, func(c *chat) { c.tools = c.tools[:2] }, event.BreakTools, "messages[1].content", -1},
		plant{"other instructions", keep, func(c *chat) { c.system = manual + "Be brief. " + rules }, event.BreakInstructions, "messages[0].content", -1},
		plant{"nothing in common", keep, func(c *chat) { c.system = "Always " + c.system }, event.BreakNone, "", 0},
		plant{"instructions shortened", keep, func(c *chat) { c.system = manual + "There are no rooms." }, event.BreakInstructions, "messages[0].content", -1},
		plant{"answer with spaces", keep, user(1, "Yes, we have one single room with a view of the sea. \n"), event.BreakAnswer, "messages[2].content", -1},
		plant{"answer without thoughts", user(1, "<think>They want a room.</think>Yes, we do."), user(1, "Yes, we do."), event.BreakAnswer, "messages[2].content", 0},
		plant{"answer edited", keep, user(3, "Yes, it is across the hall."), event.BreakAnswer, "messages[4].content", -1},
		plant{"oldest turn dropped", keep, func(c *chat) { c.messages = c.messages[2:] }, event.BreakTrimmed, "messages[1].content", 0},
		plant{"two turns dropped", keep, func(c *chat) { c.messages = c.messages[4:] }, event.BreakTrimmed, "messages[1].content", 0},
		plant{"question edited", keep, user(2, "And a suite for my parents, on the same floor if that is possible at all?"), event.BreakMessage, "messages[3].content", -1},
		plant{"last question edited", keep, user(4, "Then please book none of them."), event.BreakMessage, "messages[5].content", -1},
	)
	if len(plants) < 30 {
		t.Fatalf("%d plants", len(plants))
	}
	for _, x := range plants {
		h := NewHistory()
		add := func(n event.RequestID, change func(*chat)) (event.Reuse, bool) {
			c := conversation()
			change(&c)
			units, err := Units(c.body(t))
			if err != nil {
				t.Fatal(err)
			}
			return h.Add(n, "", units)
		}
		if _, found := add(1, x.first); found {
			t.Fatalf("%s: found an earlier prompt in an empty history", x.name)
		}
		b, found := add(2, x.second)
		if found != (x.place != "") || b.Kind != x.kind || b.Place != x.place || x.at >= 0 && b.At != x.at {
			t.Errorf("%s: %v at %s, character %d (%+v), want %v at %s, character %d", x.name, b.Kind, b.Place, b.At, b, x.kind, x.place, x.at)
		}
	}
}

// TestPromptsThatGoOn checks that a prompt that goes on breaks nothing, whether it has messages or not.
func TestPromptsThatGoOn(t *testing.T) {
	h := NewHistory()
	c := conversation()
	for n := range 3 {
		c.messages = conversation().messages[:2*n+1]
		units, err := Units(c.body(t))
		if err != nil {
			t.Fatal(err)
		}
		if b, found := h.Add(event.RequestID(n), "", units); found != (n > 0) || b.Kind != event.BreakNone || n > 0 && b.With != event.RequestID(n-1) {
			t.Errorf("turn %d: %+v", n, b)
		}
	}
	h = NewHistory()
	for n := range 3 {
		units, err := Units(fmt.Appendf(nil, `{"prompt":%q}`, strings.Repeat("Once upon a time. ", n+1)))
		if err != nil {
			t.Fatal(err)
		}
		if b, found := h.Add(event.RequestID(n), "", units); found != (n > 0) || b.Kind != event.BreakNone {
			t.Errorf("text %d: %+v", n, b)
		}
	}
	for n := range 200 {
		h.Add(event.RequestID(n), "", []Unit{{Text: strings.Repeat("x", 1<<20)}})
	}
	if len(h.prompts) > maxPrompts || h.hashes > maxHashes {
		t.Errorf("%d prompts of %d hashes are kept", len(h.prompts), h.hashes)
	}
}

// FuzzUnits reads any body: sizes of breaks never exceed the prompt.
func FuzzUnits(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"tools":[{}]}`), []byte(`{"prompt":"a"}`))
	f.Add([]byte(`{"input":"x","instructions":"é"}`), []byte(`{"system":["x"],"input":[{"role":"user","content":"2026-11-23"}]}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		h := NewHistory()
		for i, body := range [][]byte{one, two, one} {
			units, err := Units(body)
			if err != nil {
				continue
			}
			if b, _ := h.Add(event.RequestID(i), "", units); b.Common < 0 || b.Same < 0 || b.Common > b.Bytes || b.Common+b.Same > b.Bytes {
				t.Errorf("%+v", b)
			}
		}
	})
}
