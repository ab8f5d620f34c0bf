package event

import "testing"

// TestTurn checks when a connection has news, and that its time is that of the link and not of the reason.
func TestTurn(t *testing.T) {
	r := Remote{Address: "http://a", Link: LinkDisconnected, Why: "not asked yet"}
	for i, c := range []struct {
		link  Link
		why   string
		at    Time
		news  bool
		since Time
	}{
		{LinkDisconnected, "not asked yet", 5, true, 5}, // of which it was not known since when
		{LinkDisconnected, "refused", 6, true, 5},
		{LinkDisconnected, "refused", 7, false, 5},
		{LinkConnected, "", 8, true, 8},
		{LinkConnected, "", 9, false, 8},
	} {
		if news := r.Turn(c.link, c.why, c.at); news != c.news || r.Since != c.since || r.Link != c.link || r.Why != c.why || r.Address != "http://a" {
			t.Errorf("turn %d: news %v, %+v", i, news, r)
		}
	}
}
