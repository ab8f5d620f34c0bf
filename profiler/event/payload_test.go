package event

import "testing"

// TestRemoteUpdate checks when a connection has changed, and that Since follows the link, not the reason.
func TestRemoteUpdate(t *testing.T) {
	r := Remote{Address: "http://a", Link: LinkDisconnected, Reason: "not polled yet"}
	for i, c := range []struct {
		link    Link
		why     string
		at      Time
		changed bool
		since   Time
	}{
		{LinkDisconnected, "not polled yet", 5, true, 5}, // Since was unknown
		{LinkDisconnected, "refused", 6, true, 5},
		{LinkDisconnected, "refused", 7, false, 5},
		{LinkConnected, "", 8, true, 8},
		{LinkConnected, "", 9, false, 8},
	} {
		if changed := r.Update(c.link, c.why, c.at); changed != c.changed || r.Since != c.since || r.Link != c.link || r.Reason != c.why || r.Address != "http://a" {
			t.Errorf("update %d: changed %v, %+v", i, changed, r)
		}
	}
}
