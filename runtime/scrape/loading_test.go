package scrape

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// waterfall takes in a stream of messages, one every 100 ms, and is what came of them: the rows as they are kept, and the words in the log.
func waterfall(t testing.TB, text string) (rows []event.Event, said []string, l *loading) {
	t.Helper()
	l = &loading{
		emit: func(e event.Event) { rows = event.KeepLoad(rows, e, 64, (*event.Event).LoadStage) },
		say:  func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
	}
	at := event.Time(0)
	err := readLoads(strings.NewReader(text), func(m *loadMessage) {
		at += 100e6
		l.take(m, at)
	})
	if err != io.EOF {
		t.Errorf("reading ends with %v", err)
	}
	return rows, said, l
}

// drawn is what rows are called, with their beginnings and lengths in ms.
func drawn(rows []event.Event) (out []string) {
	for i := range rows {
		s := rows[i].LoadStage()
		name := s.Name
		if name == "" {
			name = s.Stage.String()
		}
		out = append(out, fmt.Sprintf("%s %d+%d", name, s.Begin/1e6, (s.End-s.Begin)/1e6))
	}
	return out
}

func message(model, event, data string) string {
	return fmt.Sprintf(`data: {"model":%q,"event":%q,"data":%s}`, model, event, data) + "\n\n"
}

func progress(model, stage string, share float64) string {
	return message(model, "status_change", fmt.Sprintf(`{"status":"loading","progress":{"stages":["text_model"],"current":%q,"value":%g}}`, stage, share))
}

func TestLoads(t *testing.T) {
	const began, up, gone = `{"status":"loading"}`, `{"status":"loaded","info":{}}`, `{"status":"unloaded","exit_code":1}`
	for _, c := range []struct{ name, text, rows, said string }{
		{
			"the sample", sampleOf(t, "llamacpp_models_sse.txt"),
			"start of qwen3-30b-a3b 100+100|text_model 200+100|set-up 300+100|mmproj_model 400+100|model_load 100+400",
			"qwen3-30b-a3b was loaded in 0.4 s",
		},
		{
			"progress", message("m", "model_status", began) + progress("m", "text_model", 0) + progress("m", "text_model", 0.2) + progress("m", "text_model", 0.4) +
				progress("m", "text_model", 0.9) + progress("m", "text_model", 0.95),
			"start of m 100+100|text_model 200+300", "",
		},
		{
			"a load that failed", message("m", "model_status", began) + message("m", "status_change", gone),
			"start of m 100+100|model_load 100+100", "m could not be loaded: its process ended after 0.1 s",
		},
		{
			"a beginning that was not seen", progress("m", "text_model", 0.5) + message("m", "status_change", up),
			"text_model 100+100|model_load 100+100", "m was loaded in 0.1 s, of which the beginning was not seen",
		},
		{
			"two at a time", message("a", "model_status", began) + message("b", "model_status", began) + progress("a", "text_model", 0) + progress("b", "text_model", 0) +
				message("a", "status_change", up) + message("b", "status_change", up),
			"start of a 100+200|start of b 200+200|text_model 300+200|a: in all 100+400|b: text_model 400+200|model_load 200+400",
			"a was loaded in 0.4 s|b was loaded in 0.4 s",
		},
		{
			"a download, and the load after it", message("m", "download_progress", `{"progress":{"https://h/1":{"done":1,"total":4}}}`) +
				message("m", "download_progress", `{"progress":{"https://h/1":{"done":4,"total":4}}}`) + message("m", "download_finished", `{}`) +
				message("m", "model_status", began) + message("m", "status_change", up),
			"start of m 400+100|model_load 400+100", "m was downloaded in 0.2 s|m was loaded in 0.1 s",
		},
		{"what is no load", message("m", "status_change", gone) + message("m", "model_remove", "null") + "data: {\n\ndata: 7\n\n: nothing\n\n", "", ""},
		{
			"a line without end", "data: " + strings.Repeat("x", 1<<20) + "\ndata: y\n\n" + message("m", "model_status", began) + message("m", "status_change", up),
			"start of m 100+100|model_load 100+100", "m was loaded in 0.1 s",
		},
	} {
		rows, said, _ := waterfall(t, c.text)
		if got := strings.Join(drawn(rows), "|"); got != c.rows || strings.Join(said, "|") != c.said {
			t.Errorf("%s: %s, said %q; want %s, %q", c.name, got, said, c.rows, c.said)
		}
	}
}

// TestLongNames: two models whose names begin alike are two, and what is shown of a name ends with a whole character.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("a", maxModelName-1) + "é"
	text := message(long+"1", "model_status", `{"status":"loading"}`) + message(long+"2", "model_status", `{"status":"loading"}`) +
		message(long+"1", "status_change", `{"status":"loaded"}`) + message(long+"2", "status_change", `{"status":"loaded"}`)
	rows, said, _ := waterfall(t, text)
	shown := strings.Repeat("a", maxModelName-1)
	if got, want := strings.Join(said, "|"), shown+" was loaded in 0.2 s|"+shown+" was loaded in 0.2 s"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	for _, row := range drawn(rows) {
		if !utf8.ValidString(row) {
			t.Errorf("a character is cut through: %q", row)
		}
	}
}

// TestHowFarALoadIs: what is told of a stage on its way, and of a download whose files come one after another.
func TestHowFarALoadIs(t *testing.T) {
	for text, want := range map[string]string{
		message("m", "model_status", `{"status":"loading"}`):                                                  " 0 false",
		progress("m", "text_model", 0.37):                                                                     "text_model 0.37 true",
		progress("m", "text_model", 0.37) + progress("m", "text_model", 1):                                    " 0 false",
		progress("m", "a b/c\u202e", 9) + progress("m", "mmproj_model", -3):                                   "mmproj_model 0 true",
		message("m", "download_progress", `{"progress":{"a":{"done":4,"total":4},"b":{"done":2,"total":8}}}`): "download 0.5 true",
		message("m", "download_progress", `{}`):                                                               " 0 false",
	} {
		_, _, l := waterfall(t, text)
		stage, share, ok := l.far()
		if got := fmt.Sprint(stage, " ", share, " ", ok); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestAStreamThatFloods is read at a pace that costs little.
func TestAStreamThatFloods(t *testing.T) {
	waits := 0
	p := &paced{from: strings.NewReader(strings.Repeat("x\n", 5<<20)), wait: func() { waits++ }}
	if err := readLoads(p, func(*loadMessage) {}); err != io.EOF || waits != 10 { // the tenth is before the end shows
		t.Errorf("10 MiB are read with %d waits, %v", waits, err)
	}
}

func FuzzLoads(f *testing.F) {
	f.Add([]byte(sampleOf(f, "llamacpp_models_sse.txt")))
	f.Add([]byte(message("m", "download_progress", `{"progress":{"u":{"done":1e300,"total":1e308}}}`) + message("m", "download_failed", "[]")))
	f.Add([]byte(progress("a", "x", 1) + progress("b", "x", 2) + message("a", "", `{"status":"loaded"}`) + "event: error\ndata: {}\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, _, l := waterfall(t, string(text))
		if len(l.of) > maxLoads {
			t.Errorf("%d loads are remembered", len(l.of))
		}
		for _, e := range rows {
			if s := e.LoadStage(); s.Begin < 0 || s.End < s.Begin || len(e.Text) > 2*maxModelName+64 {
				t.Errorf("%+v", e)
			}
		}
		if _, share, ok := l.far(); ok && !(share >= 0 && share <= 1) {
			t.Errorf("%v is done", share)
		}
	})
}
