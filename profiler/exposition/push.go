package exposition

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
)

const (
	// PushInterval is the time between two pushes.
	PushInterval = 10 * time.Second
	// pushTimeout is the longest time that a push may take.
	pushTimeout = 5 * time.Second
	// Paths of a receiver.
	metricsPath, tracesPath = "/v1/metrics", "/v1/traces"
	// maxAnswer is how many bytes of a receiver's answer are read.
	maxAnswer = 64 << 10
)

// Pusher sends metrics, and the spans of ended requests, to an OTLP receiver as JSON over HTTP. All counts are
// cumulative, and spans are kept until they are delivered, so the next push carries what a failed one did not deliver.
type Pusher struct {
	exporter      *Exporter
	url           *url.URL // of metrics
	traces        *url.URL // nil: no spans
	instance      string
	headers       http.Header
	client        *http.Client
	onError       func(error) // called once, for the first failure
	errorReported bool

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Push starts to push to the receiver at an address such as http://HOST:PORT, at the paths /v1/metrics and /v1/traces
// below it. An address that ends in /v1/metrics gets metrics only, and so does a receiver without /v1/traces. headers
// are sent with each push, in the format of OTEL_EXPORTER_OTLP_HEADERS: key=value,key=value, where values may be
// percent-encoded. onError receives the first failure; failures do not stop
// the pushes. Push returns an error if the address or the headers are invalid.
func (x *Exporter) Push(address, headers string, onError func(error)) (*Pusher, error) {
	to, traces, err := endpoints(address)
	if err != nil {
		return nil, err
	}
	extra, err := parseHeaders(headers)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pusher{
		exporter: x, url: to, traces: traces, headers: extra, onError: onError, instance: newInstance(), cancel: cancel,
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	x.spans.start(traces != nil)
	x.pushing.Store(true)
	p.done.Go(func() { p.run(ctx) })
	return p, nil
}

// Close stops pushing after a last push.
func (p *Pusher) Close() {
	p.cancel()
	p.done.Wait()
	p.push(context.Background())
	p.client.CloseIdleConnections()
}

// CheckAddress returns an error if metrics cannot be pushed to the address.
func CheckAddress(address string) error {
	_, _, err := endpoints(address)
	return err
}

// endpoints returns the URLs that metrics and spans for an address are posted to. traces is nil if the address is that
// of metrics alone.
func endpoints(address string) (to, traces *url.URL, err error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, nil, errors.New("parse receiver address: invalid URL: write http://HOST:PORT") // do not repeat the address: it may hold a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, nil, fmt.Errorf("parse receiver address %q: write http://HOST:PORT or https://HOST:PORT", clean.URL(address))
	case u.RawQuery != "" || u.Fragment != "":
		return nil, nil, fmt.Errorf("parse receiver address %q: remove the query and the fragment", clean.URL(address))
	}
	if strings.HasSuffix(u.Path, metricsPath) {
		return u, nil, nil
	}
	return u.JoinPath(metricsPath), u.JoinPath(tracesPath), nil
}

// parseHeaders parses key=value,key=value.
func parseHeaders(list string) (http.Header, error) {
	out := make(http.Header)
	for item := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		key, value, ok := strings.Cut(item, "=")
		key = strings.TrimSpace(key)
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !validHeaderName(key) || strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, errors.New("read OTLP headers: write key=value,key=value in OTEL_EXPORTER_OTLP_HEADERS") // do not repeat them: they may be secret
		}
		out.Set(key, plain)
	}
	return out, nil
}

// validHeaderName reports whether a text may be the name of an HTTP header.
func validHeaderName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// newInstance returns a random UUID that identifies this process.
func newInstance() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (p *Pusher) run(ctx context.Context) {
	tick := time.NewTicker(PushInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.push(ctx)
		}
	}
}

// push sends the current metrics and the spans since the last push. A cancelled push does not count as failed.
func (p *Pusher) push(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	err := errors.Join(p.send(ctx), p.sendSpans(ctx))
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	p.exporter.failures.Add(1)
	if !p.errorReported {
		p.errorReported = true
		p.onError(fmt.Errorf("push to OpenTelemetry: %w", err))
	}
}

func (p *Pusher) send(ctx context.Context) error {
	families, err := p.exporter.Gather()
	if err != nil {
		return err
	}
	messages, err := encodeMetrics(families, time.Now(), p.exporter.version, p.instance)
	if err != nil {
		return err
	}
	for _, message := range messages {
		if err := p.post(ctx, p.url, message); err != nil {
			return err
		}
	}
	return nil
}

// sendSpans sends the spans of the requests that have ended. It stops sending spans to a receiver that has no path for
// them.
func (p *Pusher) sendSpans(ctx context.Context) error {
	queue := &p.exporter.spans
	for p.traces != nil {
		spans := queue.next()
		if len(spans) == 0 {
			break
		}
		message, err := encodeOTLP("Spans", spans, p.exporter.version, p.instance)
		if err == nil {
			err = p.post(ctx, p.traces, message)
		}
		switch {
		case errors.Is(err, errNoPath):
			p.traces = nil
			queue.start(false)
			return nil
		case err != nil && !errors.Is(err, errRejected): // the next push sends them again
			return err
		}
		queue.sent(len(spans))
		if err != nil {
			return err
		}
	}
	return nil
}

// errNoPath is the error of a receiver that answers 404.
var errNoPath = errors.New("the receiver answers 404 Not Found")

// errRejected is the error of a receiver that took a message and rejected parts of it.
var errRejected = errors.New("the receiver rejects")

// post sends one message, gzipped.
func (p *Pusher) post(ctx context.Context, to *url.URL, message []byte) error {
	var body bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed) // the level is valid
	_, _ = zip.Write(message)                            // writes to memory do not fail
	_ = zip.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), &body)
	if err != nil {
		return err
	}
	for key, values := range p.headers {
		r.Header[key] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("User-Agent", "llmtop/"+p.exporter.version)
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("post to %s: %w", clean.URL(to.String()), errNoPath)
	case answer.StatusCode/100 != 2:
		return fmt.Errorf("post to %s: the receiver answers %s", clean.URL(to.String()), clean.Name(answer.Status))
	case err != nil:
		return fmt.Errorf("read answer: %w", err)
	}
	return rejection(answer.Header.Get("Content-Type"), raw)
}

// rejection returns an errRejected if the receiver's answer reports rejected data points or spans. Answers that cannot
// be parsed report none.
func rejection(contentType string, raw []byte) error {
	var answer struct {
		PartialSuccess struct {
			Points  json.RawMessage `json:"rejectedDataPoints"` // a string or a number
			Spans   json.RawMessage `json:"rejectedSpans"`
			Message string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "application/json" || json.Unmarshal(raw, &answer) != nil {
		return nil
	}
	for what, rejected := range map[string]json.RawMessage{"data points": answer.PartialSuccess.Points, "spans": answer.PartialSuccess.Spans} {
		if n := strings.Trim(string(rejected), `"`); n != "" && n != "0" && n != "null" {
			return fmt.Errorf("%w %s %s: %s", errRejected, cleanLabel(n), what, cleanLabel(answer.PartialSuccess.Message))
		}
	}
	return nil
}
