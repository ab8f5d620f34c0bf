package watch

import (
	"net"
	"net/netip"
	"testing"
)

// TestLook checks that a server is found at whatever address of this machine it listens, and that no other is taken for it.
func TestLook(t *testing.T) {
	for _, test := range []struct {
		listens, at string
		only        bool
	}{
		{"127.0.0.1:0", "127.0.0.1", true},
		{"127.0.0.2:0", "127.0.0.2", true},
		{"0.0.0.0:0", "127.0.0.1", false},
		{"[::1]:0", "::1", true},
		{"[::]:0", "127.0.0.1", false},
	} {
		l, err := net.Listen("tcp", test.listens)
		if err != nil {
			t.Logf("without %s: %v", test.listens, err)
			continue
		}
		port := netip.MustParseAddrPort(l.Addr().String()).Port()
		got := tapped{port: port}
		got.look()
		if want := netip.AddrPortFrom(netip.MustParseAddr(test.at), port); got.at != want || !got.listened || got.only != test.only {
			t.Errorf("%s: found %v, listened %v, only %v", test.listens, got.at, got.listened, got.only)
		}
		_ = l.Close()
		got = tapped{port: port}
		if got.look(); got.listened || got.only {
			t.Errorf("nothing listens: found %v, only %v", got.at, got.only)
		}
	}
}
