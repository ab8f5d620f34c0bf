package exposition

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// receiver is an OTLP receiver over HTTP that keeps what it receives.
type receiver struct {
	*httptest.Server
	answer      func(w http.ResponseWriter)
	answerSpans func(w http.ResponseWriter) // nil: as to metrics

	mu      sync.Mutex // guards what follows
	bodies  [][]byte
	headers []http.Header
	spans   [][]byte
}

func newReceiver(t *testing.T, answer func(http.ResponseWriter)) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		zip, err := gzip.NewReader(q.Body)
		if err != nil || q.URL.Path != metricsPath && q.URL.Path != tracesPath || q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "no OTLP", http.StatusBadRequest)
			t.Errorf("%s %s %v: %v", q.Method, q.URL, q.Header, err)
			return
		}
		body, err := io.ReadAll(zip)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if q.URL.Path == tracesPath {
			r.spans = append(r.spans, body)
			if r.answerSpans != nil {
				r.answerSpans(w)
				return
			}
			answer(w)
			return
		}
		r.bodies, r.headers = append(r.bodies, body), append(r.headers, q.Header)
		answer(w)
	}))
	t.Cleanup(r.Close)
	return r
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"partialSuccess":{}}`)
}

// TestPush checks that the last push is valid OTLP with the same values as the exposition.
func TestPush(t *testing.T) {
	r := newReceiver(t, accept)
	x := New("1.0")
	p, err := x.Push(r.URL, "X-Key=a%20b,Authorization=Bearer%20s", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	engine := addEngine(x, "native")
	engine.emitEverything()
	addEngine(x, "server").emitAggregates()
	p.Close()
	if len(r.bodies) != 1 || r.headers[0].Get("X-Key") != "a b" || r.headers[0].Get("Authorization") != "Bearer s" {
		t.Fatalf("%d messages, headers %v", len(r.bodies), r.headers)
	}
	var data metrics.MetricsData // has every field of ExportMetricsServiceRequest; protojson rejects others
	if err := protojson.Unmarshal(r.bodies[0], &data); err != nil {
		t.Fatalf("%v\n%s", err, r.bodies[0])
	}
	checkMapping(t, r.bodies[0])
	resource := data.ResourceMetrics[0]
	if got := resource.Resource.Attributes[0]; got.Key != "service.name" || got.Value.GetStringValue() != "llmtop" {
		t.Errorf("resource %v", resource.Resource)
	}
	pushed := make(map[string]*metrics.Metric)
	for _, m := range resource.ScopeMetrics[0].Metrics {
		pushed[m.Name] = m
	}
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(pushed) != len(families) {
		t.Errorf("%d metrics pushed of %d", len(pushed), len(families))
	}
	for _, i := range instruments {
		m := pushed[i.name]
		if m == nil || m.Unit != i.unit || m.Description != i.help {
			t.Errorf("%s: pushed %v", i.name, m)
			continue
		}
		k := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == i.promName })
		same(t, m, families[k])
	}
}

// same compares an OTLP metric with the family that it was encoded from.
func same(t *testing.T, m *metrics.Metric, f *dto.MetricFamily) {
	t.Helper()
	points := m.GetGauge().GetDataPoints()
	if sum := m.GetSum(); sum != nil {
		points = sum.DataPoints
		if sum.AggregationTemporality != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE || !sum.IsMonotonic {
			t.Errorf("%s is %v", m.Name, sum)
		}
	}
	if h := m.GetHistogram(); h != nil {
		if h.AggregationTemporality != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
			t.Errorf("%s is %v", m.Name, h.AggregationTemporality)
		}
		for k, p := range h.DataPoints {
			sameBuckets(t, m.Name, p, f.Metric[k].Histogram)
		}
		return
	}
	if len(points) != len(f.Metric) {
		t.Errorf("%s has %d points of %d", m.Name, len(points), len(f.Metric))
		return
	}
	for k, p := range points {
		got, want := p.GetAsDouble()+float64(p.GetAsInt()), f.Metric[k].GetGauge().GetValue()+f.Metric[k].GetCounter().GetValue()
		if got != want || (m.GetSum() != nil) != (p.StartTimeUnixNano > 0) || p.TimeUnixNano < p.StartTimeUnixNano {
			t.Errorf("%s: point %v, want %v", m.Name, p, want)
		}
	}
}

func sameBuckets(t *testing.T, name string, p *metrics.HistogramDataPoint, h *dto.Histogram) {
	t.Helper()
	sum := uint64(0)
	for k, n := range p.BucketCounts {
		sum += n
		if k < len(h.Bucket) && (sum != h.Bucket[k].GetCumulativeCount() || p.ExplicitBounds[k] != h.Bucket[k].GetUpperBound()) {
			t.Errorf("%s: bucket %d is %v with %d in all, want %v", name, k, p.ExplicitBounds[k], sum, h.Bucket[k])
		}
	}
	if sum != p.Count || p.Count != h.GetSampleCount() || p.GetSum() != h.GetSampleSum() || len(p.BucketCounts) != len(p.ExplicitBounds)+1 {
		t.Errorf("%s: %d in the buckets of %v, want %d", name, sum, p, h.GetSampleCount())
	}
	if p.StartTimeUnixNano == 0 {
		t.Errorf("%s: no start", name)
	}
}

// digits matches 64-bit integers as OTLP's JSON writes them.
var digits = regexp.MustCompile(`^\d+$`)

// checkMapping checks rules of OTLP's JSON that protojson does not enforce: 64-bit integers are strings and
// enumerations are numbers.
func checkMapping(t *testing.T, body []byte) {
	t.Helper()
	var message any
	if err := json.Unmarshal(body, &message); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch key {
		case "timeUnixNano", "startTimeUnixNano", "asInt", "count":
			if s, ok := v.(string); !ok || !digits.MatchString(s) {
				t.Errorf("%s is %v", key, v)
			}
		case "asDouble", "sum", "aggregationTemporality":
			if _, ok := v.(map[string]any); !ok {
				if _, ok := v.(float64); !ok {
					t.Errorf("%s is %v", key, v)
				}
			}
		}
		seen[key]++
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				walk(k, inner)
			}
		case []any:
			for _, inner := range v {
				if s, ok := inner.(string); key == "bucketCounts" && (!ok || !digits.MatchString(s)) {
					t.Errorf("%s has %v", key, inner)
				}
				walk("", inner)
			}
		}
	}
	walk("", message)
	for _, key := range []string{"timeUnixNano", "startTimeUnixNano", "asInt", "asDouble", "count", "bucketCounts", "aggregationTemporality"} {
		if seen[key] == 0 {
			t.Errorf("no %s in the message", key)
		}
	}
}

// TestManyPointsAreSplit checks that no message is larger than collectors accept, and that together they hold every
// point once.
func TestManyPointsAreSplit(t *testing.T) {
	r := newReceiver(t, accept)
	x := New("1.0")
	p, err := x.Push(r.URL, "", func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	addEngine(x, "native").emitEverything()
	big := addEngine(x, "big")
	big.introduce("native", "big")
	big.emit(0, routed(picks(40, 128, 1)))
	if err := p.send(context.Background()); err != nil { // not by Close, whose timeout is short
		t.Fatal(err)
	}
	p.cancel()
	p.done.Wait()
	cells := make(map[string]bool)
	for _, body := range r.bodies {
		var data metrics.MetricsData
		if err := protojson.Unmarshal(body, &data); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			n += len(m.GetGauge().GetDataPoints()) + len(m.GetSum().GetDataPoints()) + len(m.GetHistogram().GetDataPoints())
			for _, point := range m.GetSum().GetDataPoints() {
				if m.Name == expertPicks.name {
					cells[fmt.Sprint(point.Attributes)] = true
				}
			}
		}
		if n == 0 || n > maxPoints || len(body) > 10<<20 {
			t.Errorf("message of %d points and %d bytes", n, len(body))
		}
	}
	if want := 2 * (40*128 + 2*4); len(cells) != want || len(r.bodies) < 2 {
		t.Errorf("%d cells in %d messages, want %d", len(cells), len(r.bodies), want)
	}
}

// TestReceiverErrors checks that failures are reported once, counted each time, and stop nothing.
func TestReceiverErrors(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"busy":      {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, "503 Service Unavailable"},
		"moved":     {func(w http.ResponseWriter) { w.Header().Set("Location", "http://x/"); w.WriteHeader(307) }, "307"},
		"rejected":  {respond(`{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too\u001b[2J many"}}`), "rejects 3 data points: too\uFFFD many"},
		"number":    {respond(`{"partialSuccess":{"rejectedDataPoints":2}}`), "rejects 2 data points"},
		"none":      {respond(`{"partialSuccess":{"rejectedDataPoints":"0","errorMessage":"a hint"}}`), ""},
		"malformed": {respond(`{"partialSuccess":7`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, c.answer)
			x := New("1.0")
			var reported []error
			p, err := x.Push(r.URL, "", func(err error) { reported = append(reported, err) })
			if err != nil {
				t.Fatal(err)
			}
			p.push(context.Background())
			p.push(context.Background())
			p.Close()
			failed := find(samples(t, x), pushFailures.promName)[""]
			if c.want == "" {
				if len(reported) != 0 || failed != 0 {
					t.Errorf("%v, %v failures", reported, failed)
				}
				return
			}
			if len(reported) != 1 || !strings.Contains(reported[0].Error(), c.want) || failed != 3 {
				t.Errorf("reported %v and counted %v, want one error with %q and 3", reported, failed, c.want)
			}
		})
	}
}

func respond(body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprint(w, body)
	}
}

// TestUnreachableReceiver checks that a missing receiver, and one that never answers, stop nothing.
func TestUnreachableReceiver(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	x := New("1.0")
	var reported error
	p, err := x.Push(closed.URL, "", func(err error) { reported = err })
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if reported == nil || x.failures.Load() != 1 {
		t.Errorf("reported %v and counted %d", reported, x.failures.Load())
	}
	hangs := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hangs }))
	defer slow.Close()
	defer close(hangs)
	p, err = x.Push(slow.URL, "", func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := p.send(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("receiver that hangs: %v", err)
	}
	p.cancel()
	p.done.Wait()
}

// TestCounterResets checks that a count that an engine resets gets a new start time.
func TestCounterResets(t *testing.T) {
	x := New("1.0")
	p := addEngine(x, "native")
	p.introduce("native", "tiny")
	start := func() int64 {
		return family(t, x, expertPicks).Metric[0].Counter.CreatedTimestamp.AsTime().UnixNano()
	}
	p.emit(0, routed(picks(2, 4, 7)))
	first := start()
	p.emit(ms, routed(picks(2, 4, 9)))
	if first != x.began.AsTime().UnixNano() || start() != first {
		t.Error("growing picks were treated as reset")
	}
	p.emit(ms, routed(picks(2, 4, 1)))
	second := start()
	if second <= first || start() != second {
		t.Errorf("picks after a restart start at %d, those before at %d", second, first)
	}
	p.emit(ms, routed(picks(3, 4, 50)))
	if start() <= second {
		t.Error("picks of another model were not treated as reset")
	}
}

// TestAddresses checks which receiver addresses are accepted.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:4318":             "http://127.0.0.1:4318/v1/metrics",
		"http://127.0.0.1:4318/":            "http://127.0.0.1:4318/v1/metrics",
		"https://x.example/otlp":            "https://x.example/otlp/v1/metrics",
		"https://x.example/otlp/v1/metrics": "https://x.example/otlp/v1/metrics",
		"http://[::1]:4318":                 "http://[::1]:4318/v1/metrics",
		"127.0.0.1:4318":                    "", "grpc://x:4317": "", "http://": "", "http://:4318": "", "http://x/?a=b": "", "http://x/#a": "", "http://a b": "", "": "",
	} {
		u, _, err := endpoints(address)
		if want == "" && (err == nil || CheckAddress(address) == nil) || want != "" && (err != nil || u.String() != want) {
			t.Errorf("%q: %v, %v; want %q", address, u, err, want)
		}
	}
	_, _, err := endpoints("ftp://me:secret@x")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

// FuzzHeaders checks that accepted headers can be sent.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{"", "a=b", "a=b,c=d%20e", "a", "=b", "a=%zz", "a=b%0d%0ac: d", ",,", "ä=b", "a b=c", "authorization=Bearer%20x=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		headers, err := parseHeaders(list)
		if err != nil {
			return
		}
		r := httptest.NewRequest("POST", "/", nil)
		r.Header = headers
		var out strings.Builder
		if err := r.Write(&out); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\r\n"); lines > len(headers)+5 {
			t.Errorf("%d headers became %d lines: %q", len(headers), lines, out.String())
		}
	})
}

// FuzzAnswer checks that errors made from a receiver's answer are safe to show.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{}`, `{"partialSuccess":{"rejectedDataPoints":"1","errorMessage":"x"}}`, `{"partialSuccess":{"rejectedDataPoints":{}}}`, `[`, "\xff"} {
		f.Add("application/json", []byte(s))
	}
	f.Fuzz(func(t *testing.T, kind string, raw []byte) {
		if err := rejection(kind, raw); err != nil && (len(err.Error()) > 3*maxLabel || strings.ContainsRune(err.Error(), 0x1b)) {
			t.Errorf("%q", err)
		}
	})
}

// FuzzWord checks that a text from outside becomes a short and valid label that cleaning does not change again.
func FuzzWord(f *testing.F) {
	for _, s := range []string{"", "native", "a\"b\\c\n", "\xff\xfe", strings.Repeat("ä", 500), "\u202e\x1b[0m", strconv.Quote("x")} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w := cleanLabel(s)
		if len(w) > maxLabel || w != strings.ToValidUTF8(w, "") || cleanLabel(w) != w {
			t.Errorf("%q became %q", s, w)
		}
	})
}
