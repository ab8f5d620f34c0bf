package socket

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// secretText is in the prompt, the tokens and the alternatives of a talker's requests.
const secretText = "the secret"

// talker is a Controller whose requests end before their sender knows their ids, as a fast engine's may.
type talker struct {
	desk
	server *Server
	last   event.RequestID
}

func (t *talker) Control(m *wire.Control) (event.RequestID, error) {
	if m.Type != wire.Generate {
		return t.desk.Control(m)
	}
	t.last++
	t.server.Emit(event.Event{
		Kind: event.KindRequest, Req: t.last, State: event.StateQueued, At: 1, Layer: -1, Data: &event.Request{Prompt: secretText + " prompt", MaxTokens: 2},
	})
	for i := range 2 {
		e := token(t.last, 2, i)
		e.Text, e.Top = secretText+" token", []event.TopProb{{ID: 3, LogP: -1, Text: secretText + " alternative"}}
		t.server.Emit(e)
	}
	if m.Label != "goes on" {
		t.server.Emit(finished(t.last, 3, 2))
	}
	return t.last, nil
}

func talking(t *testing.T, opt Options) *Server {
	t.Helper()
	c := &talker{desk: desk{caps: controlCaps}}
	opt.Controller = c
	opt.Engine = event.EngineInfo{Name: "test", Caps: event.CapTokens | event.CapText, State: event.EngineReady}
	c.server = server(t, path(t), opt)
	return c.server
}

// texts counts the places where text arrived.
func (l *log) texts() string {
	var prompts, pieces, alternatives int
	for _, e := range l.OfKind(event.KindRequest) {
		if p, ok := e.Data.(*event.Request); ok && p.Prompt == secretText+" prompt" {
			prompts++
		}
	}
	for _, e := range l.OfKind(event.KindToken) {
		if e.Text == secretText+" token" {
			pieces++
		}
		for _, top := range e.Top {
			if top.Text == secretText+" alternative" {
				alternatives++
			}
		}
	}
	return fmt.Sprintf("%d prompts, %d tokens, %d alternatives", prompts, pieces, alternatives)
}

func (l *log) ended() int {
	n := 0
	for _, e := range l.OfKind(event.KindRequest) {
		if e.State.Final() {
			n++
		}
	}
	return n
}

func (l *log) caps() event.Caps {
	all := l.OfKind(event.KindEngine)
	return all[len(all)-1].Data.(*event.EngineInfo).Caps
}

// TestTextGoesToTheReaderThatAskedForIt: only that reader gets the text, however early the events are written, and no
// earlier or later reader.
func TestTextGoesToTheReaderThatAskedForIt(t *testing.T) {
	s := talking(t, Options{})
	var asker, other, late log
	a := attach(t, s.Address(), "", &asker)
	attach(t, s.Address(), "", &other)
	eventtest.Wait(t, "both readers", func() bool { return s.Readers() == 2 && a.Offers().Has(event.CapPrompt) })
	const requests = 50
	for i := range requests {
		if _, err := a.Generate(t.Context(), wire.Generation{Prompt: "x", Text: true}); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := a.Generate(t.Context(), wire.Generation{Prompt: "x", Text: true, Label: "goes on"}); err != nil {
		t.Fatal(err)
	}
	attach(t, s.Address(), "", &late)
	eventtest.Wait(t, "the late reader", func() bool { return len(late.OfKind(event.KindToken)) > 0 })
	eventtest.Wait(t, "all tokens", func() bool {
		return len(asker.OfKind(event.KindToken)) == 2*requests+2 && len(other.OfKind(event.KindToken)) == 2*requests+2
	})
	if got, want := asker.texts(), "51 prompts, 102 tokens, 102 alternatives"; got != want {
		t.Errorf("the requesting reader got %s, want %s", got, want)
	}
	for name, l := range map[string]*log{"another reader": &other, "a late reader": &late} {
		if got := l.texts(); got != "0 prompts, 0 tokens, 0 alternatives" {
			t.Errorf("%s gets %s", name, got)
		}
		if !l.caps().Has(event.CapText) {
			t.Errorf("%s cannot see that text can be had", name)
		}
	}
}

// TestTextThatWasNotAskedFor: text that was not requested is not sent, not even to the reader that sent the request.
func TestTextThatWasNotAskedFor(t *testing.T) {
	s := talking(t, Options{})
	var got log
	c := attach(t, s.Address(), "", &got)
	eventtest.Wait(t, "a connection", func() bool { return c.Offers().Has(event.CapPrompt) })
	if _, err := c.Generate(context.Background(), wire.Generation{Prompt: "x"}); err != nil {
		t.Fatal(err)
	}
	eventtest.Wait(t, "the end", func() bool { return got.ended() == 1 })
	if text := got.texts(); text != "0 prompts, 0 tokens, 0 alternatives" {
		t.Errorf("it got %s", text)
	}
}

// TestTextForAll: with Options.Text every reader gets the text.
func TestTextForAll(t *testing.T) {
	s := talking(t, Options{Text: true})
	var asker, other log
	a := attach(t, s.Address(), "", &asker)
	attach(t, s.Address(), "", &other)
	eventtest.Wait(t, "both readers", func() bool { return s.Readers() == 2 && a.Offers().Has(event.CapPrompt) })
	if _, err := a.Generate(t.Context(), wire.Generation{Prompt: "x"}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*log{&asker, &other} {
		eventtest.Wait(t, "the end", func() bool { return l.ended() == 1 })
		if got := l.texts(); got != "1 prompts, 2 tokens, 2 alternatives" {
			t.Errorf("it got %s", got)
		}
	}
}

// TestTextAfterALoss: a state repeated after drops holds no text that the reader did not request.
func TestTextAfterALoss(t *testing.T) {
	s := talking(t, Options{Buffer: 64})
	var asker log
	a := attach(t, s.Address(), "", &asker)
	eventtest.Wait(t, "a connection", func() bool { return a.Offers().Has(event.CapPrompt) })
	conn := connection(t, s)
	eventtest.Wait(t, "both readers", func() bool { return s.Readers() == 2 })
	for range 3 {
		if _, err := a.Generate(t.Context(), wire.Generation{Prompt: "x", Text: true, Label: "goes on"}); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	past := s.state.since(0, s.ring.head)
	s.mu.Unlock()
	prompts := 0
	for _, e := range past {
		if e.HasText() {
			prompts++
		}
	}
	if prompts != 3 {
		t.Fatalf("the state holds %d prompts, want 3", prompts)
	}
	for i := range DefaultBuffer { // more than the system buffers: the reader falls behind
		s.Emit(token(1, 4, 2+i))
	}
	s.Emit(finished(1, 5, 2+DefaultBuffer))
	var all strings.Builder
	for syncs, l := 0, newLines(conn); syncs < 2; {
		line, err := l.next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(line), `{"t":"synced"`) {
			syncs++
		}
		all.Write(line)
	}
	if strings.Contains(all.String(), secretText) {
		t.Error("a reader with drops got text that it did not request")
	}
}

// TestRequestsWithTextAreForgotten: requests are removed when they end, and limited while they run.
func TestRequestsWithTextAreForgotten(t *testing.T) {
	s := talking(t, Options{})
	r := &reader{server: s}
	for id := range event.RequestID(maxAsked + 10) {
		r.withText.Lock()
		r.withText.add(id + 1)
		r.withText.Unlock()
	}
	if len(r.withText.ids) != maxAsked || r.withText.has(10) || !r.withText.has(11) || !r.withText.has(maxAsked+10) {
		t.Errorf("the set has %d requests, want the newest %d", len(r.withText.ids), maxAsked)
	}
	for id := range event.RequestID(maxAsked + 10) {
		r.withhold([]event.Event{finished(id+1, 1, 1)})
	}
	if len(r.withText.ids) != 0 {
		t.Errorf("%d requests are left", len(r.withText.ids))
	}
}
