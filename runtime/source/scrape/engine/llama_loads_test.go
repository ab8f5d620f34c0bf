package engine

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// collectLoads processes a stream of messages, one every 100 ms. It returns the waterfall rows and the log lines.
func collectLoads(t testing.TB, text string) (rows []event.Event, logs []string, l *loadTracker) {
	t.Helper()
	l = &loadTracker{
		emit: func(e event.Event) { rows = event.AddLoadStage(rows, e, 64, (*event.Event).LoadStage) },
		logf: func(format string, args ...any) { logs = append(logs, fmt.Sprintf(format, args...)) },
	}
	at := event.Time(0)
	err := readLoads(strings.NewReader(text), func() {}, func(m *loadMessage) {
		at += 100e6
		l.handle(m, at)
	})
	if err != io.EOF {
		t.Errorf("reading ended with %v", err)
	}
	return rows, logs, l
}

// describeStages lists the stages with start and duration in ms.
func describeStages(rows []event.Event) (out []string) {
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

func loadEvent(model, event, data string) string {
	return fmt.Sprintf(`data: {"model":%q,"event":%q,"data":%s}`, model, event, data) + "\n\n"
}

func progressEvent(model, stage string, share float64) string {
	return loadEvent(model, "status_change", fmt.Sprintf(`{"status":"loading","progress":{"stages":["text_model"],"current":%q,"value":%g}}`, stage, share))
}

func TestLoads(t *testing.T) {
	const began, up, gone = `{"status":"loading"}`, `{"status":"loaded","info":{}}`, `{"status":"unloaded","exit_code":1}`
	for _, c := range []struct{ name, text, rows, logs string }{
		{
			"the sample", sampleOf(t, "llamacpp_models_sse.txt"),
			"start of qwen3-30b-a3b 100+100|text_model 200+100|set-up 300+100|mmproj_model 400+100|model_load 100+400",
			"qwen3-30b-a3b loaded in 0.4 s",
		},
		{
			"progress", loadEvent("m", "model_status", began) + progressEvent("m", "text_model", 0) + progressEvent("m", "text_model", 0.2) + progressEvent("m", "text_model", 0.4) +
				progressEvent("m", "text_model", 0.9) + progressEvent("m", "text_model", 0.95),
			"start of m 100+100|text_model 200+300", "",
		},
		{
			"a load that failed", loadEvent("m", "model_status", began) + loadEvent("m", "status_change", gone),
			"start of m 100+100|model_load 100+100", "m failed to load: the process exited after 0.1 s",
		},
		{
			"start not seen", progressEvent("m", "text_model", 0.5) + loadEvent("m", "status_change", up),
			"text_model 100+100|model_load 100+100", "m loaded in 0.1 s (start not seen)",
		},
		{
			"two at the same time", loadEvent("a", "model_status", began) + loadEvent("b", "model_status", began) + progressEvent("a", "text_model", 0) + progressEvent("b", "text_model", 0) +
				loadEvent("a", "status_change", up) + loadEvent("b", "status_change", up),
			"start of a 100+200|start of b 200+200|text_model 300+200|a: total 100+400|b: text_model 400+200|model_load 200+400",
			"a loaded in 0.4 s|b loaded in 0.4 s",
		},
		{
			"a download, and the load after it", loadEvent("m", "download_progress", `{"progress":{"https://h/1":{"done":1,"total":4}}}`) +
				loadEvent("m", "download_progress", `{"progress":{"https://h/1":{"done":4,"total":4}}}`) + loadEvent("m", "download_finished", `{}`) +
				loadEvent("m", "model_status", began) + loadEvent("m", "status_change", up),
			"start of m 400+100|model_load 400+100", "m downloaded in 0.2 s|m loaded in 0.1 s",
		},
		{"not a load", loadEvent("m", "status_change", gone) + loadEvent("m", "model_remove", "null") + "data: {\n\ndata: 7\n\n: nothing\n\n", "", ""},
		{
			"a line without end", "data: " + strings.Repeat("x", 1<<20) + "\ndata: y\n\n" + loadEvent("m", "model_status", began) + loadEvent("m", "status_change", up),
			"start of m 100+100|model_load 100+100", "m loaded in 0.1 s",
		},
	} {
		rows, logs, _ := collectLoads(t, c.text)
		if got := strings.Join(describeStages(rows), "|"); got != c.rows || strings.Join(logs, "|") != c.logs {
			t.Errorf("%s: %s, logs %q; want %s, %q", c.name, got, logs, c.rows, c.logs)
		}
	}
}

// TestLongModelNames: names with the same beginning stay distinct, and shown names are not cut within a character.
func TestLongModelNames(t *testing.T) {
	long := strings.Repeat("a", maxModelName-1) + "é"
	text := loadEvent(long+"1", "model_status", `{"status":"loading"}`) + loadEvent(long+"2", "model_status", `{"status":"loading"}`) +
		loadEvent(long+"1", "status_change", `{"status":"loaded"}`) + loadEvent(long+"2", "status_change", `{"status":"loaded"}`)
	rows, logs, _ := collectLoads(t, text)
	shown := strings.Repeat("a", maxModelName-1)
	if got, want := strings.Join(logs, "|"), shown+" loaded in 0.2 s|"+shown+" loaded in 0.2 s"; got != want {
		t.Errorf("logs %q, want %q", got, want)
	}
	for _, row := range describeStages(rows) {
		if !utf8.ValidString(row) {
			t.Errorf("invalid UTF-8: %q", row)
		}
	}
}

// TestLoadProgress checks the reported share of a stage, and of a download with several files.
func TestLoadProgress(t *testing.T) {
	for text, want := range map[string]string{
		loadEvent("m", "model_status", `{"status":"loading"}`):                                                  " 0 false",
		progressEvent("m", "text_model", 0.37):                                                                  "text_model 0.37 true",
		progressEvent("m", "text_model", 0.37) + progressEvent("m", "text_model", 1):                            " 0 false",
		progressEvent("m", "a b/c\u202e", 9) + progressEvent("m", "mmproj_model", -3):                           "mmproj_model 0 true",
		loadEvent("m", "download_progress", `{"progress":{"a":{"done":4,"total":4},"b":{"done":2,"total":8}}}`): "download 0.5 true",
		loadEvent("m", "download_progress", `{}`):                                                               " 0 false",
	} {
		_, _, l := collectLoads(t, text)
		stage, share, ok := l.progress()
		if got := fmt.Sprint(stage, " ", share, " ", ok); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestFloodingStream checks that reading is slowed down.
func TestFloodingStream(t *testing.T) {
	waits := 0
	flood := strings.NewReader(strings.Repeat("x\n", 5<<20))
	if err := readLoads(flood, func() { waits++ }, func(*loadMessage) {}); err != io.EOF || waits != 10 { // the tenth wait comes before the end is seen
		t.Errorf("10 MiB read with %d waits, %v", waits, err)
	}
}

func FuzzLoads(f *testing.F) {
	f.Add([]byte(sampleOf(f, "llamacpp_models_sse.txt")))
	f.Add([]byte(loadEvent("m", "download_progress", `{"progress":{"u":{"done":1e300,"total":1e308}}}`) + loadEvent("m", "download_failed", "[]")))
	f.Add([]byte(progressEvent("a", "x", 1) + progressEvent("b", "x", 2) + loadEvent("a", "", `{"status":"loaded"}`) + "event: error\ndata: {}\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, _, l := collectLoads(t, string(text))
		if len(l.byModel) > maxLoads {
			t.Errorf("%d loads are kept", len(l.byModel))
		}
		for _, e := range rows {
			if s := e.LoadStage(); s.Begin < 0 || s.End < s.Begin || len(e.Text) > 2*maxModelName+64 {
				t.Errorf("%+v", e)
			}
		}
		if _, share, ok := l.progress(); ok && !(share >= 0 && share <= 1) {
			t.Errorf("share %v", share)
		}
	})
}
