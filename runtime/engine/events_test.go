package engine_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

var update = flag.Bool("update", false, "update golden files")

// line formats an event for the golden file.
func line(e event.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3fms %-7v", float64(e.At)/1e6, e.Kind)
	if e.Req != 0 {
		fmt.Fprintf(&b, " #%d", e.Req)
	}
	switch p := e.Data.(type) {
	case *event.EngineInfo:
		fmt.Fprintf(&b, " %s %v slots=%d pace=%v caps=%09b", p.Name, p.State, p.Slots, p.Pace, p.Caps)
	case *event.Model:
		fmt.Fprintf(&b, " %s in %v", p.Name, time.Duration(e.Dur))
	case *event.Request:
		fmt.Fprintf(&b, " %v label=%s prompt=%q max=%d cold=%v", e.State, p.Label, p.Prompt, p.MaxTokens, p.Cold)
	case *event.Outcome:
		fmt.Fprintf(&b, " %v %s prompt=%d generated=%d", e.State, p.Reason, p.Prompt, p.Generated)
	case *event.KV:
		fmt.Fprintf(&b, " %d/%d freed=%d after %v", p.Used, p.Total, p.Freed, time.Duration(p.Residency))
	case *event.Experts:
		fmt.Fprintf(&b, " prompt=%d decode=%d", p.PromptTokens, p.DecodeTokens)
	}
	split := fmt.Sprintf(" split e%d a%d r%d x%d h%d s%d", e.Split.Embed, e.Split.Attention, e.Split.Router,
		e.Split.Experts, e.Split.Head, e.Split.Sample)
	switch {
	case e.Kind == event.KindRequest && e.Data == nil:
		fmt.Fprintf(&b, " %v", e.State)
	case e.Kind == event.KindStage:
		fmt.Fprintf(&b, " %v layer=%d n=%d %v", e.Stage, e.Layer, e.N, time.Duration(e.Dur))
	case e.Kind == event.KindStep:
		fmt.Fprintf(&b, " %d decode=%d prompt=%d %v%s", e.Step, e.N, e.Prompt, time.Duration(e.Dur), split)
	case e.Kind == event.KindToken:
		fmt.Fprintf(&b, " %d id=%d %q step=%d logp=%v%s", e.Index, e.ID, e.Text, e.Step, e.LogP, split)
	case e.Kind == event.KindLog:
		fmt.Fprintf(&b, " %s", e.Text)
	}
	return b.String()
}

// TestEvents compares all events of two requests, first sequential, then partly concurrent, with the golden file.
func TestEvents(t *testing.T) {
	opt := engine.Options{Mixed: 2, Hooks: engine.Hooks{Split: true, Experts: true}}
	var got strings.Builder
	run(t, newFake(t, 2, 64, 8), opt, func(t *testing.T, b *bench) {
		first := b.mustSubmit(t, "abcdefghijkl", 5)
		time.Sleep(time.Millisecond)
		second := b.mustSubmit(t, "wxy", 0)
		<-first.Done()
		<-second.Done()
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		for _, e := range b.events {
			got.WriteString(line(e) + "\n")
		}
	})
	path := filepath.Join("testdata", "events.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wanted, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(wanted), got.String()); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

// TestComponentsAddUp: for any mix of requests, the TTFT components of each request sum to at most its TTFT, the layers
// to at most the prompt, and the parts of a step to at most the step.
func TestComponentsAddUp(t *testing.T) {
	opt := engine.Options{Mixed: 5, Hooks: engine.Hooks{Split: true}}
	run(t, newFake(t, 3, 256, 32), opt, func(t *testing.T, b *bench) {
		var handles []*engine.Handle
		for i := range 12 {
			handles = append(handles, b.mustSubmit(t, strings.Repeat("a", 1+17*i), 1+i%7))
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
		for _, h := range handles {
			<-h.Done()
			b.checkComponents(t, h.ID)
		}
		for _, s := range b.byKind(event.KindStep, 0) {
			parts := int64(s.Split.Embed) + int64(s.Split.Attention) + int64(s.Split.Router) + int64(s.Split.Experts) +
				int64(s.Split.Head) + int64(s.Split.Sample)
			if parts != s.Dur {
				t.Errorf("step %d took %d, its parts %d", s.Step, s.Dur, parts)
			}
		}
	})
}

// checkComponents checks one request of TestComponentsAddUp. All time that passes is the fake engine's.
func (b *bench) checkComponents(t *testing.T, id event.RequestID) {
	t.Helper()
	ttft := int64(b.byKind(event.KindToken, id)[0].At - b.byKind(event.KindRequest, id)[0].At)
	var named, layers, prompt int64
	for _, s := range b.byKind(event.KindStage, id) {
		switch {
		case s.Layer >= 0:
			layers += s.Dur
		case s.Stage <= event.StageSend:
			named += s.Dur
		}
		if s.Stage == event.StagePrompt {
			prompt = s.Dur
		}
	}
	if named > ttft || named <= 0 {
		t.Errorf("request #%d: components of %v in a TTFT of %v", id, time.Duration(named), time.Duration(ttft))
	}
	if layers != prompt || prompt == 0 {
		t.Errorf("request #%d: layers of %v in prompt processing of %v", id, time.Duration(layers), time.Duration(prompt))
	}
}
