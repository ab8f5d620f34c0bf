package discover

import (
	"net/netip"
	"testing"
)

func TestReachable(t *testing.T) {
	for at, want := range map[string]string{"0.0.0.0:11434": "127.0.0.1:11434", "[::]:80": "127.0.0.1:80", "[::1]:80": "[::1]:80"} {
		if got := reachable(netip.MustParseAddrPort(at)); got != netip.MustParseAddrPort(want) {
			t.Errorf("%s is reached at %v, want %s", at, got, want)
		}
	}
}
