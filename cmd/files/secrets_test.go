package files

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/exit"
)

// TestUnencryptedKeys checks that a key goes to another machine, or a Prometheus, only over HTTPS or with
// --api-key-over-http.
func TestUnencryptedKeys(t *testing.T) {
	for at, clear := range map[string]bool{
		"http://127.0.0.1:8000": false, "http://localhost:8000/v1": false, "http://[::1]:8000": false, "https://gpu1": false, "unix:/x": false,
		"http://gpu1:8000": true, "http://10.0.0.1": true, "prometheus+http://metrics:9090": true, "prometheus+https://metrics": false,
	} {
		if got := address.Unencrypted(at); got != clear {
			t.Errorf("%s: %v", at, got)
		}
		for _, plain := range []bool{false, true} {
			k := APIKey{OverHTTP: plain}
			err := k.Check("attach", "sk-secret", "http://127.0.0.1:1", at)
			if (err != nil) != (clear && !plain) || err != nil && (strings.Contains(err.Error(), "secret") || exit.Code(err) != exit.CodeUsage) {
				t.Errorf("%s: %v", at, err)
			}
			if err := k.Check("attach", "", at); err != nil {
				t.Errorf("%s without a key: %v", at, err)
			}
		}
	}
}
