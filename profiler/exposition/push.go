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
	// maxAnswer is how many bytes of a receiver's answer are read.
	maxAnswer = 64 << 10
)

// Pusher sends metrics to an OTLP receiver as JSON over HTTP. All counts are cumulative, so the next push carries what
// a failed one did not deliver.
type Pusher struct {
	exporter      *Exporter
	url           *url.URL
	headers       http.Header
	client        *http.Client
	encoder       *encoder
	onError       func(error) // called once, for the first failure
	errorReported bool

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Push starts to push to the receiver at an address such as http://HOST:PORT. It appends the path /v1/metrics unless
// the address ends with it. headers are sent with each push, in the format of OTEL_EXPORTER_OTLP_HEADERS:
// key=value,key=value, where values may be percent-encoded. onError receives the first failure; failures do not stop
// the pushes. Push returns an error if the address or the headers are invalid.
func (x *Exporter) Push(address, headers string, onError func(error)) (*Pusher, error) {
	to, err := endpoint(address)
	if err != nil {
		return nil, err
	}
	extra, err := parseHeaders(headers)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pusher{
		exporter: x, url: to, headers: extra, onError: onError, encoder: newEncoder(x.version, newInstance()), cancel: cancel,
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
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
	_, err := endpoint(address)
	return err
}

// endpoint returns the URL that metrics for an address are posted to.
func endpoint(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("parse receiver address: invalid URL: write http://HOST:PORT") // do not repeat the address: it may hold a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("parse receiver address %q: write http://HOST:PORT or https://HOST:PORT", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("parse receiver address %q: remove the query and the fragment", u.Redacted())
	}
	if !strings.HasSuffix(u.Path, "/v1/metrics") {
		u = u.JoinPath("v1/metrics")
	}
	return u, nil
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

// push sends the current metrics. A cancelled push does not count as failed.
func (p *Pusher) push(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	err := p.send(ctx)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	p.exporter.failures.Add(1)
	if !p.errorReported {
		p.errorReported = true
		p.onError(fmt.Errorf("push metrics: %w", err))
	}
}

func (p *Pusher) send(ctx context.Context) error {
	families, err := p.exporter.Gather()
	if err != nil {
		return err
	}
	for _, message := range p.encoder.encode(families, time.Now()) {
		if err := p.post(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// post sends one message, gzipped.
func (p *Pusher) post(ctx context.Context, message []byte) error {
	var body bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed) // the level is valid
	_, _ = zip.Write(message)                            // writes to memory do not fail
	_ = zip.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), &body)
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
	case answer.StatusCode/100 != 2:
		return fmt.Errorf("post to %s: the receiver answers %s", p.url.Redacted(), clean.Name(answer.Status))
	case err != nil:
		return fmt.Errorf("read answer: %w", err)
	}
	return rejection(answer.Header.Get("Content-Type"), raw)
}

// rejection returns an error if the receiver's answer reports rejected data points. Answers that cannot be parsed
// report none.
func rejection(contentType string, raw []byte) error {
	var answer struct {
		PartialSuccess struct {
			Rejected json.RawMessage `json:"rejectedDataPoints"` // a string or a number
			Message  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "application/json" || json.Unmarshal(raw, &answer) != nil {
		return nil
	}
	n := strings.Trim(string(answer.PartialSuccess.Rejected), `"`)
	if n == "" || n == "0" || n == "null" {
		return nil
	}
	return fmt.Errorf("the receiver rejects %s data points: %s", cleanLabel(n), cleanLabel(answer.PartialSuccess.Message))
}
