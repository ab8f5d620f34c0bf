package fleet

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// scraped is a target of a made-up Prometheus: an engine that generates 100 tokens/s, scraped every 5 s.
type scraped struct {
	labels string  // besides the instance
	offset float64 // s of its scrapes
	tokens float64 // generated at fakeEpoch
	start  float64 // of the process; 0: not reported
	down   bool
}

// serveTargets returns the answers of a Prometheus to the queries for targets with one address.
func serveTargets(f *fake, list []scraped) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		at := f.now
		if text := r.URL.Query().Get("time"); text != "" {
			_, _ = fmt.Sscan(text, &at)
		}
		query, out := r.URL.Query().Get("query"), []string(nil)
		pattern := regexp.MustCompile(`__name__=~"([^"]*)"`).FindStringSubmatch(query)
		for _, t := range list {
			st := float64(int(at-t.offset)/5*5) + t.offset
			add := func(name, labels string, v float64) {
				labels = fmt.Sprintf(`%s%s,"instance":"10.0.0.5:8000"`, labels, t.labels)
				if name != "" {
					labels = fmt.Sprintf(`"__name__":%q,%s`, name, labels)
				}
				out = append(out, fmt.Sprintf(`{"metric":{%s},"value":[%f,"%f"]}`, labels, at, v))
			}
			switch up := map[bool]float64{false: 1}[t.down]; {
			case strings.HasPrefix(query, "up{"):
				add("up", "", up)
			case strings.HasPrefix(query, "timestamp("):
				add("", "", st)
			case strings.HasPrefix(query, "max_over_time("), t.down:
			case strings.HasPrefix(query, "count by("):
				add("vllm:generation_tokens_total", "", 1)
				add("vllm:num_requests_running", "", 1)
			case pattern != nil:
				add("vllm:num_requests_running", `"engine":"0",`, 3)
				add("vllm:generation_tokens_total", `"engine":"0",`, t.tokens+100*(st-fakeEpoch))
				if t.start > 0 {
					add("process_start_time_seconds", "", t.start)
				}
			}
		}
		_, _ = io.WriteString(w, vector(out...))
	}
}

// TestCopies: targets with one address are one replica if their counters could be those of one process.
func TestCopies(t *testing.T) {
	const job = `"job":"llm"`
	for name, c := range map[string]struct {
		targets []scraped
		want    []string // names of replicas
	}{
		"a pair of Prometheus servers":       {[]scraped{{job + `,"prometheus_replica":"a"`, 0, 1e6, 0, false}, {job + `,"prometheus_replica":"b"`, 2, 1e6, 0, false}}, []string{"10.0.0.5:8000"}},
		"with another label":                 {[]scraped{{job + `,"pod":"p","receive":"x"`, 0, 1e6, 7, false}, {job + `,"pod":"p","receive":"y"`, 4, 1e6, 7, false}}, []string{"p"}},
		"three of them":                      {[]scraped{{job + `,"r":"a"`, 0, 1e6, 0, false}, {job + `,"r":"b"`, 2, 1e6, 0, false}, {job + `,"r":"c"`, 3, 1e6, 0, false}}, []string{"10.0.0.5:8000"}},
		"two jobs":                           {[]scraped{{job, 0, 1e6, 0, false}, {`"job":"pods","container":"vllm"`, 2, 1e6, 0, false}}, []string{"10.0.0.5:8000"}},
		"one job cannot reach it":            {[]scraped{{job, 0, 1e6, 0, false}, {`"job":"pods"`, 2, 1e6, 0, true}}, []string{"10.0.0.5:8000"}},
		"one address in two clusters":        {[]scraped{{job + `,"cluster":"eu"`, 0, 1e6, 0, false}, {job + `,"cluster":"us"`, 2, 3e6, 0, false}}, []string{"10.0.0.5:8000", "10.0.0.5:8000 (cluster=us)"}},
		"in two clusters, scraped at once":   {[]scraped{{job + `,"cluster":"eu"`, 0, 1e6, 0, false}, {job + `,"cluster":"us"`, 0, 3e6, 0, false}}, []string{"10.0.0.5:8000", "10.0.0.5:8000 (cluster=us)"}},
		"processes that started in turn":     {[]scraped{{job + `,"cluster":"eu"`, 0, 1e6, 7, false}, {job + `,"cluster":"us"`, 2, 1e6, 9, false}}, []string{"10.0.0.5:8000", "10.0.0.5:8000 (cluster=us)"}},
		"two engines at one node":            {[]scraped{{job, 0, 1e6, 0, false}, {`"job":"other"`, 2, 3e6, 0, false}}, []string{"10.0.0.5:8000", "10.0.0.5:8000 (other)"}},
		"scraped at the same moment":         {[]scraped{{job, 0, 1e6, 0, false}, {`"job":"other"`, 0, 3e6, 0, false}}, []string{"10.0.0.5:8000", "10.0.0.5:8000 (other)"}},
		"with a copy of each":                {[]scraped{{job + `,"c":"eu","r":"a"`, 0, 1e6, 0, false}, {job + `,"c":"eu","r":"b"`, 0, 1e6, 0, false}, {job + `,"c":"us","r":"a"`, 0, 3e6, 0, false}, {job + `,"c":"us","r":"b"`, 0, 3e6, 0, false}}, []string{"10.0.0.5:8000", "10.0.0.5:8000 (c=us, r=a)"}},
		"two clusters with two servers each": {[]scraped{{job + `,"c":"eu","r":"a"`, 0, 1e6, 0, false}, {job + `,"c":"eu","r":"b"`, 2, 1e6, 0, false}, {job + `,"c":"us","r":"a"`, 1, 3e6, 0, false}, {job + `,"c":"us","r":"b"`, 3, 3e6, 0, false}}, []string{"10.0.0.5:8000", "10.0.0.5:8000 (c=us, r=a)"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.handler = serveTargets(f, c.targets)
			w := startPoller(t, Options{Address: f.URL})
			for _, name := range c.want {
				w.waitForReplica(name)
			}
			f.change(func() { f.now += 15 })
			for _, name := range c.want {
				w.waitForReplica(name).waitFor(event.KindAggregates, func(p any) bool {
					a := p.(*event.Aggregates)
					return a.Interval > 0 && a.Interval < 60e9 && a.Running.V == 3 && a.Decode.V == 100
				})
				w.waitForReplica(name).waitForLastLink(event.LinkConnected)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.replicas) != len(c.want) {
				t.Errorf("%d replicas, want %d", len(w.replicas), len(c.want))
			}
		})
	}
}

// TestCopyGoes: if the copy that was read is no longer scraped, another one continues.
func TestCopyGoes(t *testing.T) {
	f := newFake(t)
	list := []scraped{{`"job":"llm","r":"a"`, 0, 1e6, 0, false}, {`"job":"llm","r":"b"`, 2, 1e6, 0, false}}
	f.handler = serveTargets(f, list)
	w := startPoller(t, Options{Address: f.URL})
	r := w.waitForReplica("10.0.0.5:8000")
	r.waitFor(event.KindAggregates, func(p any) bool { return p.(*event.Aggregates).Interval > 0 })
	f.change(func() { f.now, f.handler = f.now+30, serveTargets(f, list[1:]) })
	r.waitFor(event.KindAggregates, func(p any) bool {
		a := p.(*event.Aggregates)
		return a.Interval == 27e9 && a.Generated.V == 2700
	})
	r.waitForLastLink(event.LinkConnected)
	time.Sleep(50 * time.Millisecond)
	if n := len(w.replicas); n != 1 {
		t.Errorf("%d replicas, want 1", n)
	}
}
