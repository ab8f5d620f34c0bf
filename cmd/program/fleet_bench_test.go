//go:build linux

package program_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// prometheus answers the queries of llmtop like a Prometheus that scrapes replicas of vLLM every 15 s.
type prometheus struct {
	*httptest.Server
	replicas int
	series   []series
	asked    atomic.Int64
	sent     atomic.Int64 // bytes
}

// series is one series of every replica.
type series struct {
	name, labels string // labels as JSON, each followed by a comma
	value        float64
	rises        bool
}

var metricLine = regexp.MustCompile(`(?m)^(vllm:[a-z_0-9]+)\{(.*)\} (\S+)$`)

func newPrometheus(tb testing.TB, replicas int) *prometheus {
	tb.Helper()
	text, err := os.ReadFile("../../runtime/source/scrape/gather/testdata/vllm.txt")
	if err != nil {
		tb.Fatal(err)
	}
	p := &prometheus{replicas: replicas}
	for _, m := range metricLine.FindAllStringSubmatch(string(text), -1) {
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			tb.Fatal(err)
		}
		labels := regexp.MustCompile(`(\w+)="`).ReplaceAllString(m[2], `"$1":"`) + ","
		p.series = append(p.series, series{m[1], labels, v, regexp.MustCompile("_(total|bucket|count|sum)$").MatchString(m[1])})
	}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	tb.Cleanup(p.Close)
	return p
}

// scrapedEvery is the scrape interval in s.
const scrapedEvery = 15

func (p *prometheus) serve(w http.ResponseWriter, r *http.Request) {
	p.asked.Add(1)
	query, at := r.URL.Query().Get("query"), float64(time.Now().UnixMilli())/1e3
	if text := r.URL.Query().Get("time"); text != "" {
		at, _ = strconv.ParseFloat(text, 64)
	}
	scraped := float64(int(at) / scrapedEvery * scrapedEvery)
	out := []byte(`{"status":"success","data":{"resultType":"vector","result":[`)
	add := func(name, labels string, replica int, v float64) {
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		if name != "" {
			labels = `"__name__":"` + name + `",` + labels
		}
		out = fmt.Appendf(out, `{"metric":{%s"instance":"gpu%d:8000","job":"vllm"},"value":[%.3f,"%s"]}`, labels, replica, at, strconv.FormatFloat(v, 'f', -1, 64))
	}
	for replica := range p.replicas {
		switch {
		case strings.HasPrefix(query, "up{"):
			add("up", "", replica, 1)
		case strings.HasPrefix(query, "timestamp("):
			add("", "", replica, scraped)
		case strings.HasPrefix(query, "count by") && replica == 0:
			for _, s := range p.series {
				add(s.name, "", replica, 1)
			}
		case strings.HasPrefix(query, "{__name__"):
			for _, s := range p.series {
				if v := s.value; s.rises {
					add(s.name, s.labels, replica, v*(1+0.01*(scraped-1.7e9)))
				} else {
					add(s.name, s.labels, replica, v)
				}
			}
		}
	}
	out = append(out, "]}}"...)
	p.sent.Add(int64(len(out)))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out) // the client may be gone
}

// BenchmarkFleet measures the cost of watching 500 replicas through a Prometheus that scrapes them every 15 s, without
// a screen, and with their table on a screen of 160x45.
func BenchmarkFleet(b *testing.B) {
	f := newPrometheus(b, 500)
	at := "prometheus+" + f.URL
	measured := func(b *testing.B, p *program) {
		time.Sleep(settling)
		asked, sent, frames, began := f.asked.Load(), f.sent.Load(), p.count(), time.Now()
		p.watch(b, 2*scrapedEvery*time.Second)
		seconds := time.Since(began).Seconds()
		b.ReportMetric(float64(f.asked.Load()-asked)/seconds, "queries/s")
		b.ReportMetric(float64(f.sent.Load()-sent)/seconds/1e6, "MB/s-of-answers")
		b.ReportMetric(float64(p.count()-frames)/seconds, "frames/s")
	}
	b.Run("unseen", func(b *testing.B) {
		for b.Loop() {
			measured(b, startUnseen(b, "attach", "--metrics-listen", "127.0.0.1:0", at))
		}
	})
	b.Run("screen", func(b *testing.B) {
		for b.Loop() {
			p := start(b, 160, 45, "attach", at)
			p.waitFor(b, "500 engines")
			p.keys(b, "7")
			p.waitFor(b, "500 replicas")
			measured(b, p)
			p.kill()
		}
	})
}
