package proxy

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// TestLMStudio reads the named events of LM Studio's own interface: a model that loads, reasoning, a tool call and the answer.
func TestLMStudio(t *testing.T) {
	var pieces [][]byte
	for _, text := range []string{
		`{"type":"chat.start","model_instance_id":"q"}`, `{"type":"model_load.end","model_instance_id":"q","load_time_seconds":2.5}`,
		`{"type":"prompt_processing.progress","progress":0.5}`, `{"type":"reasoning.delta","content":"so"}`, `{"type":"reasoning.delta","content":"so"}`,
		`{"type":"tool_call.arguments","tool":"look","arguments":{"at":"sea"}}`, `{"type":"message.delta","content":"yes"}`,
		`{"type":"chat.end","result":{"model_instance_id":"q","stats":{"input_tokens":41,"total_output_tokens":4,"reasoning_output_tokens":2,"model_load_time_seconds":2.5}}}`,
	} {
		pieces = append(pieces, []byte("event: x\ndata: "+text+"\n\n"))
	}
	o, events := observe(answers.Of("/api/v1/chat"), http.StatusOK, typed(stream, ""), pieces)
	var marks []int32
	for _, e := range events {
		if e.Kind == event.KindToken {
			marks = append(marks, e.Reasoning)
		}
	}
	got := o.Outcome()
	if want := (event.Outcome{Prompt: 41, AnyCached: true, Generated: 4, Later: 3, Reasoning: 2, Cold: true}); got != want || !slices.Equal(marks, []int32{1, 1, 0, 0}) {
		t.Errorf("%+v, reasoning %v", got, marks)
	}
	if s := o.Sum; !s.Done || s.Why != "stop" || s.Model != "q" || s.Provider != "LM Studio" || s.Load != 2500*time.Millisecond {
		t.Errorf("%+v", s)
	}
	whole, _ := observe(answers.Of("/api/v1/chat"), http.StatusOK, typed("application/json", ""),
		[][]byte{[]byte(`{"model_instance_id":"q","output":[{"type":"message","content":"yes"}],"stats":{"input_tokens":7,"total_output_tokens":3}}`)})
	if out := whole.Outcome(); out.Prompt != 7 || out.Generated != 3 || !whole.Sum.Done {
		t.Errorf("%+v", out)
	}
	failed, _ := observe(answers.Of("/api/v1/chat"), http.StatusOK, typed(stream, ""), [][]byte{[]byte(`data: {"type":"error","error":{"type":"invalid_request","message":"no"}}` + "\n\n")})
	if !failed.Sum.Failed {
		t.Error("an error is no failure")
	}
}

// TestClumps checks which streams are said to be buffered.
func TestClumps(t *testing.T) {
	for name, c := range map[string]struct {
		reads, messages int
		apart           time.Duration
		want            bool
	}{
		"ten messages every 100 ms": {8, 10, 100 * time.Millisecond, true},
		"one message every 100 ms":  {30, 1, 100 * time.Millisecond, false},
		"a fast model":              {40, 6, time.Millisecond, false},
		"all at once":               {1, 90, time.Second, false},
	} {
		var a answers.Answer
		a.Token = func(*answers.Part, int, int) {}
		end := event.Time(0)
		for i := range c.reads {
			end = event.Time(i+1) * event.Time(c.apart)
			for range c.messages {
				a.Add(&answers.Message{At: end, Named: true, Parts: []answers.Part{{At: end, Answer: 1}}})
			}
		}
		if got := a.Clumped(end); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestStreamsThatAreNotMeasured checks that paths with streams of an unknown format are named, a bounded number of them.
func TestStreamsThatAreNotMeasured(t *testing.T) {
	r := behind(t, answering(200, stream, "data: {}\n\n"))
	for i := range 24 {
		path := "/speak/" + strings.Repeat("x", i/2)
		res, err := r.client.Post(r.proxy.Address()+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	got := r.proxy.Warnings()
	if !slices.Contains(got, "streams on /speak/x are not measured: their format is not known (requests: 2)") || len(got) != 8 {
		t.Errorf("%v", got)
	}
}
