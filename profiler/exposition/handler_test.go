package exposition

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// get requests a path; headers are key, value pairs.
func get(t *testing.T, h http.Handler, method, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// TestNegotiation checks that a scraper gets the format that it prefers.
func TestNegotiation(t *testing.T) {
	x := New("1.0")
	addEngine(x, "native").emitEverything()
	const (
		open  = "application/openmetrics-text; version=1.0.0"
		plain = "text/plain; version=0.0.4"
		proto = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
	)
	for accept, want := range map[string]string{
		"": plain, "*/*": plain, "text/html": plain, open: open, open + ";q=0.5,text/plain;version=0.0.4;q=0.9": plain, proto: proto,
	} {
		r := get(t, x.Handler(""), "GET", Path, "Accept", accept)
		if got := r.Header.Get("Content-Type"); r.StatusCode != http.StatusOK || !strings.HasPrefix(got, want) {
			t.Errorf("Accept %q: %d, %q", accept, r.StatusCode, got)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		switch want {
		case open:
			if _, err := parseOpenMetrics(string(body)); err != nil {
				t.Error(err)
			}
		case proto:
			native(t, body)
		}
	}
	if r := get(t, x.Handler(""), "GET", "/"); r.StatusCode != http.StatusNotFound {
		t.Errorf("another path: %d", r.StatusCode)
	}
	if r := get(t, x.Handler(""), "POST", Path); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("another method: %d", r.StatusCode)
	}
}

// native checks that histograms in protobuf have native buckets.
func native(t *testing.T, body []byte) {
	t.Helper()
	d := expfmt.NewDecoder(strings.NewReader(string(body)), expfmt.NewFormat(expfmt.TypeProtoDelim))
	found := 0
	for {
		var f dto.MetricFamily
		if err := d.Decode(&f); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, m := range f.Metric {
			if h := m.Histogram; h != nil && len(h.PositiveSpan) > 0 {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("no native histograms")
	}
}

// TestToken checks that requests without the right token get no metrics.
func TestToken(t *testing.T) {
	h := New("1.0").Handler("secret")
	for header, want := range map[string]int{
		"": 401, "Bearer": 401, "Bearer wrong": 401, "Basic secret": 401, "secret": 401, "Bearer secret2": 401, "Bearer secret ": 401,
		"Bearer secret": 200, "bearer secret": 200,
	} {
		r := get(t, h, "GET", Path, "Authorization", header)
		body, _ := io.ReadAll(r.Body)
		if r.StatusCode != want || want == 401 && strings.Contains(string(body), "llmtop_") {
			t.Errorf("Authorization %q: %d, want %d: %s", header, r.StatusCode, want, body)
		}
	}
}
