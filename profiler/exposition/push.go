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
)

const (
	// PushEvery is how often metrics are pushed.
	PushEvery = 10 * time.Second
	// pushWithin bounds how long a push may take.
	pushWithin = 5 * time.Second
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 64 << 10
)

// Pusher sends metrics to a receiver of OpenTelemetry's protocol, as JSON over HTTP. What one push fails to bring the next one brings, since all
// counts are cumulative.
type Pusher struct {
	exporter *Exporter
	url      *url.URL
	headers  http.Header
	client   *http.Client
	encoder  *encoder
	tell     func(error) // of the first failure
	told     bool

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Push begins to push to the receiver at an address, http://HOST:PORT for example, to which the path /v1/metrics is added unless it is there.
// headers are sent along, as OTEL_EXPORTER_OTLP_HEADERS lists them: key=value,key=value with values that may be percent-encoded. tell is
// told of the first failure, which ends nothing. Error: the address or the headers cannot be used.
func (x *Exporter) Push(address, headers string, tell func(error)) (*Pusher, error) {
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
		exporter: x, url: to, headers: extra, tell: tell, encoder: newEncoder(x.version, newInstance()), cancel: cancel,
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	x.pushing.Store(true)
	p.done.Go(func() { p.run(ctx) })
	return p, nil
}

// Close ends the pushing with a last push.
func (p *Pusher) Close() {
	p.cancel()
	p.done.Wait()
	p.push(context.Background())
	p.client.CloseIdleConnections()
}

// CheckAddress refuses addresses that cannot be pushed to.
func CheckAddress(address string) error {
	_, err := endpoint(address)
	return err
}

// endpoint is where the metrics go for an address.
func endpoint(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("address of receiver: write http://HOST:PORT") // and do not repeat what may hold a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("address %q: write http://HOST:PORT or https://HOST:PORT", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("address %q: it must end with its path", u.Redacted())
	}
	if !strings.HasSuffix(u.Path, "/v1/metrics") {
		u = u.JoinPath("v1/metrics")
	}
	return u, nil
}

// parseHeaders reads key=value,key=value.
func parseHeaders(list string) (http.Header, error) {
	out := make(http.Header)
	for item := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		key, value, ok := strings.Cut(item, "=")
		key = strings.TrimSpace(key)
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !token(key) || strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, errors.New("read headers of pushes: they must be key=value,key=value") // and are not repeated: they may be secret
		}
		out.Set(key, plain)
	}
	return out, nil
}

// token reports whether a text is fit for the name of a header.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// newInstance makes a name of this process among all, a random UUID.
func newInstance() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (p *Pusher) run(ctx context.Context) {
	tick := time.NewTicker(PushEvery)
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

// push sends what there is to tell now. A push that was called off has not failed.
func (p *Pusher) push(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pushWithin)
	defer cancel()
	err := p.send(ctx)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	p.exporter.failures.Add(1)
	if !p.told {
		p.told = true
		p.tell(fmt.Errorf("push metrics: %w", err))
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

// post sends one message.
func (p *Pusher) post(ctx context.Context, message []byte) error {
	var body bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed) // the level exists
	_, _ = zip.Write(message)                            // memory takes everything
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
		return fmt.Errorf("%s answers %s", p.url.Redacted(), answer.Status)
	case err != nil:
		return fmt.Errorf("read answer: %w", err)
	}
	return rejected(answer.Header.Get("Content-Type"), raw)
}

// rejected is the error of an answer that says that some points were not taken. What cannot be understood says nothing.
func rejected(contentType string, raw []byte) error {
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
	return fmt.Errorf("the receiver refuses %s data points: %s", word(n), word(answer.PartialSuccess.Message))
}
