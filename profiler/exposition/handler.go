package exposition

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Path is the URL path of the metrics.
const Path = "/metrics"

// maxScrapes is how many scrapes are answered concurrently; more get 503.
const maxScrapes = 4

// Handler serves the metrics as OpenMetrics 1.0, Prometheus text 0.0.4 or protobuf (the only one with native
// histograms), whichever the scraper prefers. If token is not empty, requests need "Authorization: Bearer TOKEN".
func (x *Exporter) Handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, guard(token, promhttp.HandlerFor(x, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes,
	})))
	return mux
}

// guard refuses requests without the token; an empty token allows all.
func guard(token string, inner http.Handler) http.Handler {
	if token == "" {
		return inner
	}
	wanted := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given := sha256.Sum256([]byte(secret))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(given[:], wanted[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "missing or wrong token", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
}
