package exposition

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Path is where the metrics are.
const Path = "/metrics"

// maxScrapes bounds the scrapes that are answered at a time; who comes beyond that is told to come again.
const maxScrapes = 4

// Handler answers those who fetch metrics: as OpenMetrics 1.0, Prometheus text 0.0.4 or protobuf, which alone holds native histograms,
// whichever they prefer. Unless token is "", they must know it: "Authorization: Bearer TOKEN".
func (x *Exporter) Handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, guard(token, promhttp.HandlerFor(x, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes,
	})))
	return mux
}

// guard keeps out who does not know the token.
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
