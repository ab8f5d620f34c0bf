package discover

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someSockets = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0000000000000000 100 0 0 10 0
   1: 00000000:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:1F9 what
`

const someSockets6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 78 1 0 100 0 0 10 0
   1: 0000000000000000FFFF00000100007F:0051 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 79 1 0 100 0 0 10 0
`

func TestListeners(t *testing.T) {
	got := parseListeners(parseListeners(nil, []byte(someSockets)), []byte(someSockets6))
	want := []listener{
		{netip.MustParseAddrPort("127.0.0.1:8080"), 4242},
		{netip.MustParseAddrPort("0.0.0.0:11434"), 77},
		{netip.MustParseAddrPort("[::1]:80"), 78},
		{netip.MustParseAddrPort("127.0.0.1:81"), 79},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(listener{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if at := reachable(want[1].at); at.String() != "127.0.0.1:11434" {
		t.Errorf("what listens everywhere is reached at %v", at)
	}
	if at := reachable(want[2].at); at != want[2].at {
		t.Errorf("%v is reached at %v", want[2].at, at)
	}
}

func FuzzListeners(f *testing.F) {
	f.Add([]byte(someSockets))
	f.Add([]byte(someSockets6))
	f.Add([]byte("0: : : 0A 1 1 1 1 1 1"))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, l := range parseListeners(nil, file) {
			if !l.at.IsValid() {
				t.Errorf("%v is no address", l.at)
			}
		}
	})
}
