//go:build unix

package program_test

import (
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sample is a line of a metrics text.
type sample struct {
	head   string // text before the value, or a full comment line
	value  float64
	number bool // the line has a value
	kind   rising
}

// rising is how a value changes over time.
type rising uint8

const (
	stays  rising = iota // a gauge, which differs from server to server
	counts               // in whole numbers
	sums
)

// samples parses the lines of a metrics text.
func samples(text string) (out []sample) {
	for line := range strings.Lines(text) {
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		if strings.HasPrefix(line, "#") || i < 0 || err != nil {
			out = append(out, sample{head: line})
			continue
		}
		name, _, _ := strings.Cut(line[:i], "{")
		s := sample{head: line[:i+1], value: v, number: true}
		switch {
		case strings.HasSuffix(name, "_sum"):
			s.kind = sums
		case strings.HasSuffix(name, "_total"), strings.HasSuffix(name, "_bucket"), strings.HasSuffix(name, "_count"):
			s.kind = counts
		}
		out = append(out, s)
	}
	return out
}

// risesBy is the fraction by which the slowest server's counters rise per second.
const risesBy = 0.005

// metrics appends the server's current metrics. All its counters have grown by the same factor, so that they stay
// consistent.
func (s *Farmed) metrics(into []byte) []byte {
	elapsed := time.Since(s.farm.began).Seconds()
	factor := 1 + risesBy*(1+float64(s.index%7)/6)*elapsed
	for _, l := range s.farm.text {
		into = append(into, l.head...)
		if !l.number {
			continue
		}
		switch l.kind {
		case counts:
			into = strconv.AppendFloat(into, math.Floor(l.value*factor), 'f', 1, 64)
		case sums:
			into = strconv.AppendFloat(into, l.value*factor, 'f', 6, 64)
		default:
			into = strconv.AppendFloat(into, l.value*(0.7+0.1*float64((s.index*7+int(elapsed))%7)), 'f', -1, 64)
		}
		into = append(into, '\n')
	}
	return into
}

// every is the interval of single bytes from a server that trickles.
const every = 50 * time.Millisecond

func (f *Farm) serve(w http.ResponseWriter, r *http.Request) {
	_, port, _ := strings.Cut(r.Host, ":")
	n, _ := strconv.Atoi(port)
	s := f.byPort[n]
	if s == nil {
		http.NotFound(w, r)
		return
	}
	defer s.begin(r)()
	switch Manner(s.manner.Load()) {
	case Hangs:
		<-r.Context().Done()
	case Trickles:
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "#")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(every)
		}
	case Fails:
		http.Error(w, `{"error":{"message":"CUDA error: out of memory"}}`, http.StatusInternalServerError)
	case BreaksOff:
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(s.metrics(nil))
	default:
		s.answer(w, r.URL.Path)
	}
}

// answer answers like vLLM.
func (s *Farmed) answer(w http.ResponseWriter, path string) {
	switch path {
	case "/v1/models":
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"Qwen/Qwen3-30B-A3B","object":"model","owned_by":"vllm"}]}`)
	case "/version":
		_, _ = io.WriteString(w, `{"version":"0.11.2"}`)
	case "/metrics":
		body := s.metrics(make([]byte, 0, 48<<10))
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
		s.answered.Add(1)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
